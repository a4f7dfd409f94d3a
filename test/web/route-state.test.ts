// The state of a route is the same wherever it is shown: in the catalog, on the page of the model, on the pages of providers,
// in the API and on the command line. A provider dies and comes back, and each of them is read after every step.

import { afterAll, expect } from 'bun:test'
import { runHere } from '../parts/command-line.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { startUpstream, type UpstreamHandler } from '../parts/upstream.ts'
import { startConsole } from './console-harness.ts'

const refuseTest: UpstreamHandler = (_call, reply) => reply.json(401, { error: { message: 'wrong key' } })
const fail: UpstreamHandler = (_call, reply) => reply.json(500, { error: { message: 'oh no' } })
const answer: UpstreamHandler = (call, reply) => {
  const { model } = call.json()
  // A connection test sends an empty body.
  if (model === undefined) return reply.json(400, { error: { message: 'you must provide a model parameter' } })
  return reply.json(200, {
    ...{ id: 'c', object: 'chat.completion', created: 1, model, usage: { prompt_tokens: 3, completion_tokens: 2 } },
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hello' } }],
  })
}

const upstream = startUpstream(answer)
const clock = createJumpClock()
const harness = await startConsole({
  clock,
  env: { TOLLGATE_SANDBOX: 'off', ANTHROPIC_API_KEY: '' },
  config: `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: key-of-acme }
models:
  - { id: acme/large, price: { input: "1.00", output: "2.00" }, routes: [{ provider: acme, model: large-v1 }] }
`,
})
afterAll(async () => {
  await harness.stop()
  upstream.stop()
})

async function run(...args: string[]): Promise<string> {
  const { dataFolder, url } = harness.gateway
  const env = { HOME: dataFolder, TOLLGATE_URL: url, TOLLGATE_ADMIN_TOKEN: harness.token }
  const { exit, out } = await runHere(args, { env, cwd: dataFolder })
  expect(exit).toBe(0)
  return out
}

interface Answer {
  readonly data: readonly { readonly id: string; readonly routes: readonly { readonly state: string }[] }[]
  readonly candidates: readonly { readonly state: string }[]
  readonly incidents: readonly { readonly ended_at: string | null }[]
}
const read = async (path: string) => (await harness.manage(`GET ${path}`)) as unknown as Answer

/** What is left of `cooldown 14 s` once the time is taken away, which passes between two readings. */
const word = (text: string | null) => (text ?? '').trim().replace(/ \d+ (s|min|h)$/, '')

/** Of the first row of a table on the terminal. */
const secondCell = (table: string) => word(table.split('\n')[1]?.trim().split(/ {2,}/)[1] ?? '')

harness.test('providers: every page, the API and the command line show the same state of a route', async (opened) => {
  const { page, key, go, allow } = opened
  const { url } = harness.gateway
  allow(503)
  const textOf = async (path: string, selector: string) => {
    await go(`${url}${path}`)
    // The figures come after the page.
    return word(await page.locator(selector).filter({ hasNotText: 'loading' }).first().textContent())
  }
  const everywhere = async () => ({
    catalog: await textOf('/', '[data-row="acme/large"] [data-label="Status"] .status'),
    model: await textOf('/catalog/acme/large', '.model-head .status'),
    'route of the model': await textOf('/catalog/acme/large', '[data-row^="acme"] [data-label="Status"] .status'),
    providers: await textOf('/console/providers', 'section[aria-label="Providers"] [data-row="acme"] .status'),
    provider: await textOf('/console/providers/acme', '.facts-grid .status'),
    'route of the provider': await textOf('/console/providers/acme', 'section[aria-label="Routes"] td .status'),
    'tollgate route': secondCell(await run('route', 'acme/large')),
    'tollgate models': secondCell(await run('models')),
  })
  /** `word` in every text, `state` in both answers of the API, and whether an incident goes on. */
  const expectEverywhere = async (text: string, state: string, incidents: readonly string[]) => {
    const texts = await everywhere()
    expect(texts).toEqual(Object.fromEntries(Object.keys(texts).map((name) => [name, text])) as typeof texts)
    const catalog = (await read('/api/catalog')).data.find(({ id }) => id === 'acme/large')
    expect(catalog?.routes.map((route) => route.state)).toEqual([state])
    expect((await read('/api/models/acme/large/plan')).candidates.map((each) => each.state)).toEqual([state])
    const history = await read('/api/providers/history?period=24h')
    expect(history.incidents.map(({ ended_at: at }) => (at === null ? 'ongoing' : 'over') as string)).toEqual(
      incidents as string[],
    )
    await go(`${url}/console/providers/acme`)
    const section = page.locator('section[aria-label="Incidents"]')
    await section
      .locator(incidents.length === 0 ? '.empty' : 'tbody tr')
      .first()
      .waitFor()
    const shown = await section.locator('td[data-label="State"]').allTextContents()
    expect(shown).toEqual(incidents as string[])
  }
  const ask = () => harness.call(key.secret, 'a client', 'acme/large')

  await expectEverywhere('no recent traffic', 'unused', [])
  expect(await ask()).toBe(200)
  clock.jump(2)
  await expectEverywhere('available', 'available', [])

  // Five failures in a row, two attempts or more for each request.
  upstream.handle(fail)
  for (let calls = 0; calls < 3; calls++) expect(await ask()).not.toBe(200)
  clock.jump(3)
  await expectEverywhere('cooldown', 'cooldown', ['ongoing'])

  // The cooldown is over, and nothing has shown that it answers again.
  clock.jump(3600)
  await expectEverywhere('failing', 'failing', ['ongoing'])

  upstream.handle(answer)
  expect(await ask()).toBe(200)
  clock.jump(6)
  await expectEverywhere('recovering', 'recovering', ['over'])
  for (let calls = 0; calls < 2; calls++) {
    expect(await ask()).toBe(200)
    clock.jump(6)
  }
  clock.jump(31)
  await expectEverywhere('available', 'available', ['over'])

  // The button "Test": the provider refuses the key.
  upstream.handle(refuseTest)
  await harness.manage('POST /api/providers/acme/test', {})
  clock.jump(3)
  await expectEverywhere('failing', 'failing', ['over'])
  upstream.handle(answer)
  await harness.manage('POST /api/providers/acme/test', {})
  clock.jump(3)
  await expectEverywhere('available', 'available', ['over'])
})
