// Price updates from a list that the operator trusts: by command, and regularly by the gateway itself.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parsePriceList } from '../../src/catalog/price-source.ts'
import { runHere } from '../parts/command-line.ts'
import { type Gateway, startGateway, stopAll } from '../parts/gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-prices-'))
const config = `
models:
  - { id: file/priced, price: { input: "1", output: "2" }, routes: [{ provider: sandbox, model: echo }] }
`
let gateway: Gateway | undefined
const run = (...args: string[]) =>
  runHere(args, { cwd: folder, env: { TOLLGATE_URL: gateway?.url ?? '', TOLLGATE_DATA: gateway?.dataFolder ?? '' } })
const list = (prices: Readonly<Record<string, unknown>>) =>
  writeFileSync(
    join(folder, 'list.json'),
    JSON.stringify({ data: Object.entries(prices).map(([id, price]) => ({ id, price })) }),
  )
const priceOf = async (model: string) => JSON.parse((await run('prices', 'history', model, '--json')).out)

beforeAll(async () => {
  gateway = await startGateway({ config })
})
afterAll(async () => {
  if (gateway) await stopAll(gateway)
  rmSync(folder, { recursive: true, force: true })
})

test('takes over changes as versions, and holds back jumps, prices of the file and those set by hand', async () => {
  await run('prices', 'set', 'sandbox/slow', '--input', '3', '--output', '4')
  list({
    'sandbox/echo': { input: '1.50', output: '3.00' },
    // Was $1.00 and $2.00.
    'sandbox/tools': { input: '10.01', output: '2.00' },
    'sandbox/think': 'free',
    'sandbox/flaky': { input: '1.00', output: '2.00' },
    'sandbox/slow': { input: '1', output: '2' },
    'file/priced': { input: '2', output: '2' },
    'nobody/knows': { input: '2', output: '2' },
  })
  const dry = await run('prices', 'update', 'list.json', '--dry-run')
  expect(dry.err).toEndWith('1 would change, 1 equal, 1 of models that are not here.\n')
  expect((await priceOf('sandbox/echo')).version).toBe('sandbox/echo#1')
  const { exit, out } = await run('prices', 'update', 'list.json', '--json')
  expect(exit).toBe(0)
  const answer = JSON.parse(out)
  expect(answer.changed.map(({ model }: { model: string }) => model)).toEqual(['sandbox/echo'])
  expect(answer.held_back.map(({ model }: { model: string }) => model)).toEqual([
    'sandbox/tools',
    'sandbox/think',
    'sandbox/slow',
    'file/priced',
  ])
  expect(answer).toMatchObject({ unchanged: 1, unknown: ['nobody/knows'] })
  const after = await priceOf('sandbox/echo')
  expect([after.version, after.price.input, after.price.output]).toEqual(['sandbox/echo#2', '1.50', '3.00'])
  const audit = JSON.parse((await run('audit', '--json')).out).data
  expect(audit.filter(({ action }: { action: string }) => action === 'price.update')).toMatchObject([
    { object: 'sandbox/echo', details: { from: join(folder, 'list.json') } },
  ])
  const answered = await fetch(`${gateway?.url}/api/catalog`)
  const catalog = (await answered.json()) as { data: { id: string }[] }
  const changed = catalog.data
    .filter((model: object) => 'price_changed_at' in model)
    .map(({ id }: { id: string }) => id)
  expect(changed).toEqual(['sandbox/echo', 'sandbox/slow'])
})

test('applies jumps on request, and changes again what an update has set', async () => {
  list({ 'sandbox/tools': { input: '10.01', output: '2.00' }, 'sandbox/echo': { input: '1.60', output: '3.00' } })
  const { out } = await run('prices', 'update', 'list.json', '--accept-jumps', '--json')
  expect(JSON.parse(out).changed).toHaveLength(2)
  expect((await priceOf('sandbox/tools')).price.input).toBe('10.01')
})

test('refuses what is not a price list', async () => {
  writeFileSync(join(folder, 'list.json'), '{"data":[{"id":"a/b","price":{"input":-1}}]}')
  const { exit, err } = await run('prices', 'update', 'list.json')
  expect([exit, err.includes('is not a price list')]).toEqual([1, true])
  expect((await run('prices', 'update', 'missing.json')).exit).toBe(1)
})

test("reads OpenRouter's list: USD per token become USD per million, and variable prices are left out", () => {
  const pricing = { prompt: '0.00000125', completion: '0.00001', input_cache_read: '0.000000125' }
  const data = [
    { id: 'a/b', pricing },
    { id: 'a/free', pricing: { prompt: '0', completion: '0' } },
    { id: 'a/auto', pricing: { prompt: '-1', completion: '-1' } },
  ]
  expect(parsePriceList(JSON.stringify({ data }))).toEqual([
    { model: 'a/b', price: { input: '1.25', output: '10', cache_read: '0.125' } },
    { model: 'a/free', price: 'free' },
  ])
})
