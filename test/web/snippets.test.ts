// Runs the code on a model's page against the real gateway. The Python clients and Google's are run by the recipes, which
// make the same calls.

import { afterAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type SnippetOptions, snippetsFor } from '../../src/web/catalog/snippets.ts'
import { startGateway } from '../parts/gateway.ts'

const root = join(import.meta.dir, '../..')
const gateway = await startGateway()
afterAll(() => gateway.stop())

/** `Responses, curl` */
function snippet(name: string, more: Partial<SnippetOptions> = {}) {
  const options = { address: gateway.url, modelId: 'sandbox/echo', maxOutputTokens: 64_000, ...more }
  const found = snippetsFor(options).find((each) => `${each.api}, ${each.client}` === name)
  if (!found) throw new Error(`no code for ${name}`)
  return found
}

async function run(...command: string[]): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: '/nonexistent', TOLLGATE_KEY: gateway.key }
  const child = Bun.spawn(command, { cwd: root, env, stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  const output = await new Response(child.stdout).text()
  expect(await child.exited).toBe(0)
  return output
}

const hello = 'hello from the other side of the gate'

for (const client of [
  'Chat Completions, JavaScript',
  'Responses, JavaScript',
  'Messages, JavaScript',
  'Chat Completions, AI SDK',
]) {
  test(`${client} streams an answer and its cost`, async () => {
    const output = await run(process.execPath, '--eval', snippet(client).code)
    expect(output).toContain(hello)
    expect(output).toMatch(/\n\$0\.0000\d+\n$/)
  })
}

test('LangChain streams an answer', async () => {
  expect(await run(process.execPath, '--eval', snippet('Chat Completions, LangChain').code)).toContain(hello)
})

for (const [client, end] of [
  ['Chat Completions, curl', 'data: [DONE]'],
  ['Responses, curl', 'event: response.completed'],
  ['Gemini, curl', '"finishReason":"STOP"'],
] as const) {
  test.skipIf(Bun.which('curl') === null)(`${client} streams an answer and its cost`, async () => {
    const output = await run('bash', '-c', snippet(client).code.replace('curl ', 'curl -sS '))
    expect(output).toMatch(/"cost":0\.0000\d+/)
    expect(output).toContain(end)
  })
}

const embedder = { modelId: 'sandbox/embed', isEmbedder: true }

test('JavaScript embeds a text', async () => {
  // docs/reference/embeddings.md: vectors of 256 numbers.
  const output = await run(process.execPath, '--eval', snippet('Embeddings, JavaScript', embedder).code)
  expect(output).toMatch(/^256 numbers, \$[0-9.e-]+\n$/)
})

test.skipIf(Bun.which('curl') === null)('curl embeds a text', async () => {
  const output = await run('bash', '-c', snippet('Embeddings, curl', embedder).code.replace('curl ', 'curl -sS '))
  expect(JSON.parse(output).data[0].embedding).toHaveLength(256)
})

test('models for embeddings have only code for /v1/embeddings', () => {
  const all = snippetsFor({ address: 'http://gate', maxOutputTokens: undefined, ...embedder })
  expect(all.map(({ client }) => client)).toEqual(['curl', 'JavaScript', 'Python'])
  for (const { code } of all) expect(code).toMatch(/v1\/embeddings|\.embeddings\.create\(/)
})

test('text from the catalog cannot break out of its quotes', () => {
  const options = { address: 'http://gate', modelId: `a/b'"; touch x #`, maxOutputTokens: undefined }
  const [curl, openai] = snippetsFor(options)
  // In a shell only a quote ends single quotes, so it is written outside of them.
  expect(curl?.code).toContain(`"model": "a/b'\\''\\"; touch x #"`)
  expect(openai?.code).toContain(`model: "a/b'\\"; touch x #"`)
})
