// Promise M4 from outside: a thousand requests at once on a wallet that can pay for seven. Seven are served, the others
// get 402, and the remainder is exact: with one process, and with three on one PostgreSQL.

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ask } from '../parts/ask.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
import { bothSurfaces } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { dialectOf, say, usageIn } from './provider-words.ts'
import { openTill } from './till.ts'
import { createWallets } from './wallets.ts'

const requests = 1000
/**
 * 100 tokens in, which is all the model takes, and 50 out: 100 × $0.002 + 50 × $0.009 = $0.65, held and paid. Of the
 * $5.00 of opening credit seven of them leave $0.45.
 */
const price = '{ input: "2000", output: "9000" }'
const size = 'context_tokens: 100, max_output_tokens: 50'
const remainder = 450_000_000n
/** Long enough to be taken for a hundred tokens by any bound. */
const prompt = 'x'.repeat(600)

function answerAll(upstream: Upstream): void {
  upstream.handle((call, reply) =>
    say(call, reply, { texts: ['hello'], usage: usageIn(dialectOf(call), { input: 100, output: 50 }) }),
  )
}

/**
 * Half of them on either surface, half of them streamed. Where a commit takes two seconds, because the machine stood
 * still, the gateway takes nothing new: such a request is sent again.
 */
async function burst(gateways: readonly { readonly url: string; readonly key: string }[]): Promise<number[]> {
  const answers = Array.from({ length: requests }, async (_, at) => {
    const gateway = gateways[at % gateways.length]
    const surface = bothSurfaces[(at >> 1) % 2]
    if (!gateway || !surface) throw new Error('no gateway or surface')
    const body = { messages: [{ role: 'user', content: prompt }], max_tokens: 50, stream: at % 4 < 2 }
    const send = () => ask(gateway, surface, { model: `till/${surface.name}-0`, ...body })
    let response = await send()
    for (; response.status === 503; response = await send()) await response.text().then(() => Bun.sleep(100))
    const text = await response.text()
    if (response.status === 402) expect(text).toMatch(/"reason":"(empty|in_flight)"/)
    return response.status
  })
  return await Promise.all(answers)
}

function expectSeven(statuses: readonly number[]): void {
  const counts = Object.fromEntries([...Map.groupBy(statuses, String)].map(([status, all]) => [status, all.length]))
  expect(counts).toEqual({ 200: 7, 402: requests - 7 })
}

test('on SQLite, in one process', async () => {
  await using till = await openTill({ price, more: size })
  answerAll(till.upstream)
  expectSeven(await burst([{ url: till.gateway.url, key: till.gateway.key }]))
  expect(await till.wallets.read()).toEqual({ posted: remainder, held: 0n })
  expect(till.chargeCount()).toBe(7)
  expect(till.upstream.calls).toHaveLength(7)
})

const launcher = join(import.meta.dir, '..', '..', 'bin', 'tollgate')
const children: Bun.Subprocess[] = []
const folders: string[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A gateway as a separate process, once it listens. */
async function startProcess(config: string, env: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-burst-'))
  folders.push(folder)
  writeFileSync(join(folder, 'tollgate.yaml'), config)
  const child = Bun.spawn([launcher], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', HOME: folder, TOLLGATE_PORT: '0', TOLLGATE_LOG: 'json', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  children.push(child)
  const listening = Promise.withResolvers<string>()
  let text = ''
  void (async () => {
    const decoder = new TextDecoder()
    // Read to the end, or the process would come to wait for its reader.
    for await (const bytes of child.stdout) {
      if (text.length > 100_000) continue
      text += decoder.decode(bytes, { stream: true })
      const url = /listening on (http:\/\/[0-9.:]+)/.exec(text)?.[1]
      if (url !== undefined) listening.resolve(url)
    }
    listening.reject(new Error(`did not start: ${text}`))
  })()
  return { url: await listening.promise, dataFolder: join(folder, 'data'), child }
}

describe.skipIf(findPostgresPrograms() === undefined)('on postgres', () => {
  test('on PostgreSQL, in three processes', async () => {
    const upstream = startUpstream(() => {})
    answerAll(upstream)
    const config = `providers:
  - { id: chatty, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: secret }
  - { id: messy, dialect: anthropic-messages, base_url: "${upstream.url}", api_key: secret }
models:
  - { id: till/chat-0, price: ${price}, ${size}, routes: [{ provider: chatty, model: up }] }
  - { id: till/messages-0, price: ${price}, ${size}, routes: [{ provider: messy, model: up }] }
`
    const env = {
      DATABASE_URL: await (await sharedPostgres()).createDatabase(),
      TOLLGATE_SECRET: 'the-same-secret-for-all-three-of-them-0123456789',
    }
    const first = await startProcess(config, env)
    const others = await Promise.all([startProcess(config, env), startProcess(config, env)])
    const key = readFileSync(join(first.dataFolder, 'first-key'), 'utf8').trim()
    expectSeven(await burst([first, ...others].map(({ url }) => ({ url, key }))))
    expect(await createWallets(first).read()).toEqual({ posted: remainder, held: 0n })
    expect(upstream.calls).toHaveLength(7)
    for (const { child } of [first, ...others]) {
      child.kill('SIGTERM')
      expect(await child.exited).toBe(0)
    }
    upstream.stop()
  })
})
