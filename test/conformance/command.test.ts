// `npm run conformance` on the sandbox, on a gateway that translates, and on endpoints that are broken in one way each.

import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { brokenChat, brokenMessages, startProxy } from './broken-endpoints.ts'
import { conformanceHelp } from './checker/options.ts'
import { runConformance } from './checker/run.ts'

const gateway = await startGateway()
const translating = await startGateway({ config: throughOther(gateway) })
const proxy = startProxy(gateway.url)
afterAll(() => stopAll(proxy, translating, gateway))

/** Models of the first gateway's sandbox, each through a provider of one dialect. */
function throughOther({ url, key }: Gateway): string {
  return `providers:
  - { id: chatty, dialect: openai-chat, base_url: "${url}/v1", api_key: "${key}" }
  - { id: messy, dialect: anthropic-messages, base_url: "${url}", api_key: "${key}" }
models:
  - { id: test/chat, price: free, routes: [{ provider: chatty, model: sandbox/tools }] }
  - { id: test/messages, price: free, routes: [{ provider: messy, model: sandbox/tools }] }
`
}

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function run(options: Partial<Parameters<typeof runConformance>[0]>): Promise<Ran> {
  const defaults = {
    baseUrl: gateway.url,
    apiKey: gateway.key,
    dialect: undefined,
    model: 'sandbox/tools',
    json: false,
  }
  let out = ''
  let err = ''
  const code = await runConformance(
    { ...defaults, ...options },
    {
      print: (text) => {
        out += text
      },
      complain: (text) => {
        err += text
      },
    },
  )
  return { code, out, err }
}

interface JsonReport {
  readonly conformant: boolean
  readonly dialects: {
    readonly dialect: string
    readonly served: boolean
    readonly checks: { readonly name: string; readonly outcome: string; readonly notes: string[] }[]
  }[]
}

test('the sandbox passes every check in both dialects', async () => {
  const { code, out, err } = await run({})
  expect([code, err]).toEqual([0, ''])
  expect(out).toContain('28 passed, 0 failed')
  expect(out).not.toMatch(/[✗–] /)
})

test.each(['test/chat', 'test/messages'])('a gateway that translates passes every check with %s', async (model) => {
  const { code, out } = await run({ baseUrl: translating.url, apiKey: translating.key, model })
  expect([code, out.includes('28 passed, 0 failed')]).toEqual([0, true])
})

test('the command runs from a shell and exits with a code', async () => {
  const checker = (...args: string[]) =>
    Bun.spawn([process.execPath, join(import.meta.dir, 'checker/run.ts'), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  const good = checker('--base-url', gateway.url, '--api-key', gateway.key, '--model', 'sandbox/tools')
  const wrong = checker('--base-url', gateway.url)
  const unknown = checker('--modle', 'x')
  const help = checker('--help')
  expect([await good.stdout.text(), await good.exited]).toEqual([expect.stringContaining('28 passed, 0 failed'), 0])
  // Listing the models requires a key.
  expect([await wrong.stderr.text(), await wrong.exited]).toEqual([expect.stringContaining('with --model'), 2])
  const hint = expect.stringContaining('Try: npm run conformance -- --help')
  expect([await unknown.stderr.text(), await unknown.exited]).toEqual([hint, 2])
  expect([await help.stdout.text(), await help.exited]).toEqual([conformanceHelp, 0])
})

test('the result for programs says the same', async () => {
  const { code, out } = await run({ json: true })
  const report = JSON.parse(out) as JsonReport
  expect([code, report.conformant]).toEqual([0, true])
  expect(report.dialects.map(({ dialect, served, checks }) => [dialect, served, checks.length])).toEqual([
    ['chat', true, 14],
    ['messages', true, 14],
  ])
})

describe('reports once why the checks cannot run', () => {
  test('no server is listening', async () => {
    const { code, out } = await run({ baseUrl: 'http://127.0.0.1:1' })
    expect([code, out.split('nothing else was checked').length]).toEqual([1, 3])
  })

  test('the key is wrong', async () => {
    const { code, out } = await run({ apiKey: 'sk-wrong', dialect: 'chat' })
    expect([code, /✗ first request +401: /.test(out)]).toEqual([1, true])
  })

  test('an unknown model, and a dialect that is not served', async () => {
    const unknown = await run({ model: 'sandbox/nothing' })
    expect([unknown.code, unknown.out.split('not served here: 404').length]).toEqual([1, 3])
    proxy.damage(({ path }) => (path.endsWith('/messages') ? new Response('nope', { status: 404 }) : undefined))
    const chatOnly = await run({ baseUrl: proxy.url })
    expect([chatOnly.code, chatOnly.out.includes('– not served here: 404: nope')]).toEqual([0, true])
    const demanded = await run({ baseUrl: proxy.url, dialect: 'messages' })
    expect([demanded.code, /✗ first request +404: nope/.test(demanded.out)]).toEqual([1, true])
  })
})

test('without a model there must be only one', async () => {
  const { code, out, err } = await run({ model: undefined })
  expect([code, out]).toEqual([2, ''])
  expect(err).toContain('say which model to ask, with --model')
  expect(err).toContain('\n  sandbox/tools')
  const only = '{"object":"list","data":[{"id":"sandbox/tools","object":"model","owned_by":"x"}]}'
  proxy.damage(({ path }) => (path.endsWith('/models') ? Response.json(JSON.parse(only)) : undefined))
  expect((await run({ baseUrl: proxy.url, model: undefined, dialect: 'chat' })).code).toBe(0)
})

describe.each([
  ['chat', brokenChat],
  ['messages', brokenMessages],
] as const)('of a broken %s endpoint that and nothing else is reported:', (dialect, rows) => {
  test.each(rows)('%s', async (_, damage, fails) => {
    proxy.damage(damage)
    const { code, out } = await run({ baseUrl: proxy.url, dialect, json: true })
    const { dialects } = JSON.parse(out) as JsonReport
    const failed = (dialects[0]?.checks ?? []).filter(({ outcome }) => outcome === 'failed')
    expect(failed.map(({ name }) => name).sort()).toEqual(Object.keys(fails).sort())
    for (const { name, notes } of failed) expect(notes.join('\n')).toContain(fails[name] ?? '')
    expect(code).toBe(1)
  })
})
