// The three calls and the command line over them: how a model is named, what is refused, and what a restart keeps.

import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startApp } from '../../src/app.ts'
import { allBuiltInModels } from '../../src/catalog/data/built-in.ts'
import { loadConfig } from '../../src/config/config.ts'
import { createConfigSource } from '../../src/config/source.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { builtInProviderIds, providerVariables } from '../../src/providers/registry.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { gatewayCommand } from '../parts/program.ts'
import { openPriced } from './priced-gateway.ts'

// A few processes per test, on a machine that may be busy.

const priced = await openPriced()
afterAll(() => priced[Symbol.asyncDispose]())

test('a model is named with its slash as it is or as %2F, and what names none is a 404', async () => {
  const { tenancy } = priced
  for (const spelling of ['sandbox/think', 'sandbox%2Fthink', 'sandbox%2fthink', 'sandbox/%74hink']) {
    const { status, body } = await tenancy.api('GET', `/api/models/${spelling}/price`)
    expect([spelling, status, body.model, body.price?.output]).toEqual([spelling, 200, 'sandbox/think', '8.00'])
  }
  const unknown = ['sandbox/thinks', 'sandbox%252Fthink', 'sandbox', 'a/b/c', '%2F'].map((name) => [name, 404] as const)
  const malformed = ['sandbox%2', '/think'].map((name) => [name, 400] as const)
  for (const [spelling, status] of [...unknown, ...malformed]) {
    for (const [method, body] of [['GET'], ['PUT', 'free'], ['DELETE']] as const) {
      const reply = await tenancy.api(method, `/api/models/${spelling}/price`, body)
      expect([method, spelling, reply.status]).toEqual([method, spelling, status])
      expect(reply.body.error.code).toBe(status === 404 ? 'NOT_FOUND' : 'INVALID_REQUEST')
    }
  }
  const wrong = await tenancy.api('POST', '/api/models/sandbox/think/price', {})
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, PUT, DELETE'])
})

const refused: readonly (readonly [string, unknown, string | null])[] = [
  ['a negative price', { input: '-1.00', output: '1.00' }, 'input'],
  ['a seventh decimal', { input: '1.00', output: '1.0000001' }, 'output'],
  ['an exponent', { input: '1e3', output: '1.00' }, 'input'],
  ['a number', { input: 1, output: '1.00' }, 'input'],
  ['no output', { input: '1.00' }, 'output'],
  ['a wrong cache price', { input: '1.00', output: '1.00', cache_write_1h: '' }, 'cache_write_1h'],
  ['an unknown field', { input: '1.00', output: '1.00', cached: '1.00' }, 'cached'],
  ['a wrong price in a tier', { input: '1.00', output: '1.00', over: { '9': { input: '1.00' } } }, 'over.9.output'],
  ['a wrong tier', { input: '1.00', output: '1.00', over: { x: { input: '1.00', output: '1.00' } } }, 'over.x'],
  ['nothing', {}, 'input'],
  ['another word', 'gratis', null],
  ['a list', ['free'], null],
]
test.each(refused)('%s is refused as in the file, and changes nothing', async (_, body, param) => {
  const before = await priced.read('sandbox/slow')
  const { status, body: answer } = await priced.put('sandbox/slow', body)
  expect([status, answer.error.code, answer.error.param]).toEqual([400, 'INVALID_REQUEST', param])
  expect((await priced.read('sandbox/slow')).text).toBe(before.text)
})

test('the command line sets, takes back and lists', async () => {
  const { gateway } = priced.tenancy
  const token = readFileSync(join(gateway.dataFolder, 'admin-token'), 'utf8').trim()
  const run = async (args: string) => {
    const child = Bun.spawn([...gatewayCommand(), 'prices', ...args.split(' ')], {
      cwd: gateway.dataFolder,
      env: { PATH: process.env.PATH ?? '', TOLLGATE_URL: gateway.url, TOLLGATE_ADMIN_TOKEN: token },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [exit, out, err] = await Promise.all([
      child.exited,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    return { exit, out, err }
  }
  expect(await run('set sandbox/cache --input $2.50 --output 30 --cache-read 0.25')).toEqual({
    exit: 0,
    out: 'was  $1.00 in, $2.00 out   sandbox/cache#1, built in\nnow  $2.50 in, $30.00 out   sandbox/cache#2, management API\n',
    err: 'Warning: `output` changed more than tenfold: $2.00 → $30.00 per million tokens.\n',
  })
  await run('set sandbox/echo --input 1 --output 2 --web-search 10')
  expect((await run('set sandbox/echo --input 1 --output 2')).err).toBe(
    'Warning: `web_search` no longer has a price: requests for searches are refused.\n',
  )
  await run('set sandbox/echo --input 1 --output 2 --us-only 1.1')
  const [columns = '', kept = ''] = (await run('history sandbox/echo')).out.split('\n')
  expect([columns.split(/ {2,}/)[8], kept.split(/ {2,}/)[8]]).toEqual(['US ONLY ×', '1.1'])
  expect((await run('set sandbox/echo --input 1 --output 2 --us-only 0.9')).err).toContain('--us-only')
  expect((await run('set sandbox/echo --input 1 --output 2')).err).toBe(
    'Warning: `us_only` no longer has a price: there is no surcharge.\n',
  )
  await run('set sandbox/echo --input 1 --output 2 --audio-input 8 --audio-output 16')
  const [heading = '', newest = ''] = (await run('history sandbox/echo')).out.split('\n')
  expect(heading.split(/ {2,}/).slice(5, 10)).toEqual([
    ...['CACHE WRITE $/M', 'CACHE WRITE, 1 HOUR $/M', 'AUDIO INPUT $/M', 'AUDIO CACHE READ $/M', 'AUDIO OUTPUT $/M'],
  ])
  expect(newest.split(/ {2,}/).slice(7, 10)).toEqual(['8.00', '8.00', '16.00'])
  const lost = (await run('set sandbox/echo --input 1 --output 2 --audio-output 16')).err
  expect(lost.split('\n')).toEqual([
    'Warning: `audio_input` no longer has a price: these tokens cost as much as `input`.',
    'Warning: `audio_cache_read` no longer has a price: these tokens cost as much as `cache_read`.',
    '',
  ])
  expect((await run('set sandbox/cache --free')).out).toContain('now  free   sandbox/cache#3, management API\n')
  expect((await run('reset sandbox/cache')).out).toContain('now  $1.00 in, $2.00 out   sandbox/cache#4, built in\n')
  const [head, ...rows] = (await run('history sandbox/cache')).out.trim().split('\n')
  expect(head).toMatch(
    /^SINCE \(UTC\) +VERSION +INPUT \$\/M +OUTPUT \$\/M +CACHE READ \$\/M +CACHE WRITE \$\/M +CACHE WRITE, 1 HOUR \$\/M +SET BY$/,
  )
  const cells = rows.map((row) => row.split(/ {2,}/).slice(1))
  expect(cells).toEqual([
    ['sandbox/cache#4', '1.00', '2.00', '0.10', '1.25', '2.00', 'built in'],
    ['sandbox/cache#3', 'free', 'free', 'free', 'free', 'free', 'management API'],
    ['sandbox/cache#2', '2.50', '30.00', '0.25', '2.50', '2.50', 'management API'],
    ['sandbox/cache#1', '1.00', '2.00', '0.10', '1.25', '2.00', 'built in'],
  ])
  expect(JSON.parse((await run('history sandbox/cache --json')).out)).toMatchObject({ version: 'sandbox/cache#4' })
  expect((await run('set sandbox/cache --input 1')).exit).toBe(2)
  expect((await run('set sandbox/cache --input 1 --output 1 --free')).exit).toBe(2)
  expect((await run('set acme/filed --input 1 --output 1')).err).toContain('managed by the configuration file')
  expect(await run('history no/such')).toMatchObject({
    exit: 4,
    err: 'tollgate: there is no model no/such.\nTry: tollgate models\n',
  })
  expect((await run('set sandbox/cache --input nothing --output 1')).err).toStartWith('tollgate: --input expected')
})

test('a price that was set outlives a restart, under the version it had', async () => {
  using folder = createThrowAwayFolder()
  const first = await startAgain(folder.path)
  await first.call('PUT', { input: '7.00', output: '9.00' })
  await first.stop()
  const second = await startAgain(folder.path)
  const answer = await second.call('GET')
  await second.stop()
  expect(answer).toMatchObject({
    price: { input: '7.00', output: '9.00' },
    version: 'sandbox/echo#2',
    source: 'management API',
    history: [{ version: 'sandbox/echo#2' }, { version: 'sandbox/echo#1' }],
  })
})

/** A gateway over a folder that may have been used before. */
async function startAgain(folder: string) {
  const load = () =>
    loadConfig({
      env: { TOLLGATE_PORT: '0', TOLLGATE_DATA: join(folder, 'data'), TOLLGATE_LOG: 'json' },
      cwd: folder,
      stdoutIsTerminal: false,
      providerVariables,
      builtInProviderIds,
      builtInModels: allBuiltInModels,
    })
  const initial = load()
  if ('faults' in initial) throw new Error('the configuration is wrong')
  const log = createLog({ format: 'json', clock: systemClock, write: () => {} })
  const source = createConfigSource({ initial, load, report: () => {} })
  const app = await startApp({ source, clock: systemClock, log, onProgress: () => {} })
  const token = readFileSync(join(folder, 'data', 'admin-token'), 'utf8').trim()
  return {
    stop: () => app.stop(),
    async call(method: 'GET' | 'PUT', body?: object) {
      const response = await fetch(`${app.url}/api/models/sandbox/echo/price`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      expect(response.status).toBe(200)
      return await response.json()
    },
  }
}
