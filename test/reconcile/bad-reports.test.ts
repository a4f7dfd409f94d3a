// Reports that are wrong, late or incomplete: named, nothing half-written, and the next run completes them.

import { expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import type { BillFormat } from '../../src/kernel/bill.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { picoOf, readExactJson } from '../../src/reconcile/bill.ts'
import { readCsvBill, readFocusBill } from '../../src/reconcile/bill-files.ts'
import { lineItemOf } from '../../src/reconcile/openai.ts'
import { claimSource, listReconciliations, listSources, readBill } from '../../src/reconcile/rows.ts'
import { reconcile } from '../../src/reconcile/run.ts'
import { parseTable } from '../../src/reconcile/table-file.ts'
import type { Database } from '../../src/store/database.ts'
import { forEachEngine } from '../parts/engines.ts'
import { adminKey, type FakeBills, startFakeBills } from './fake-bills.ts'
import { dayMs, firstDay, gatewayKey, provider, writeTraffic } from './traffic.ts'

const days = 3
const range = { from: firstDay, to: firstDay + days * dayMs }
const clock = { ...systemClock, now: () => firstDay + (days + 1) * dayMs }

test('amounts are read as they are written', () => {
  // By hand: "123.45" cents are $1.2345, which are 1,234,500,000,000 pico-dollars.
  expect(picoOf('123.45', 'cents')).toBe(1_234_500_000_000n)
  expect(picoOf('0.06', 'usd')).toBe(60_000_000_000n)
  expect(picoOf('2.5e-06', 'usd')).toBe(2_500_000n)
  // A float that was added up: seventeen digits, of which the last ones are noise.
  expect(picoOf('0.30000000000000004', 'usd')).toBe(300_000_000_000n)
  expect(picoOf('-1.5', 'usd')).toBe(-1_500_000_000_000n)
  expect(picoOf('0.0000000000005', 'usd')).toBe(1n)
  for (const wrong of ['', '1,5', '1.2.3', 'NaN', '0x10', '$1']) expect(picoOf(wrong, 'usd')).toBeUndefined()
  expect(readExactJson('{"a":0.1234567890123456789,"b":[1e-9]}')).toEqual({ a: '0.1234567890123456789', b: ['1e-9'] })
})

test('line items name a model, a bucket and a tier', () => {
  expect(lineItemOf('gpt-x, cached input')).toEqual({ model: 'gpt-x', bucket: 'cache_read', tier: '' })
  expect(lineItemOf('gpt-x, input_tokens')).toEqual({ model: 'gpt-x', bucket: 'input', tier: '' })
  expect(lineItemOf('gpt-x audio, output')).toEqual({ model: 'gpt-x', bucket: 'audio_output', tier: '' })
  expect(lineItemOf('gpt-x, batch output')).toEqual({ model: 'gpt-x', bucket: 'output', tier: 'batch' })
  expect(lineItemOf('whisper')).toEqual({ model: 'whisper', bucket: 'other', tier: '' })
})

const csv = 'day,model,bucket,quantity,amount_usd\n2026-10-01,"a, b",input,12,0.5\n2026-10-02,größe,,,1\n'
const source = (path: string) => ({ provider, path, models: {} })
const everything = { from: 0, to: Number.MAX_SAFE_INTEGER }

test.each([
  ['UTF-8', Buffer.from(csv)],
  ['UTF-8 with a mark', Buffer.from(`\ufeff${csv}`)],
  ['UTF-16 with a mark', Buffer.from(`\ufeff${csv}`, 'utf16le')],
  ['UTF-16 without one', Buffer.from(csv, 'utf16le')],
  ['UTF-16, the other byte first', Buffer.from(`\ufeff${csv}`, 'utf16le').swap16()],
  [
    'semicolons and carriage returns',
    Buffer.from(
      csv
        .replaceAll('a, b', 'a; b')
        .replaceAll(/,(?! b)/g, ';')
        .replaceAll('\n', '\r\n'),
    ),
  ],
])('a CSV file in %s is read', async (_, bytes) => {
  const path = `${tmpdir()}/tollgate-bill-${Bun.randomUUIDv7()}.csv`
  await Bun.write(path, bytes)
  const { lines, missing } = readCsvBill(source(path), everything)
  expect(lines.map(({ model, bucket, quantity, pico }) => [model.replace(';', ','), bucket, quantity, pico])).toEqual([
    ['a, b', 'input', 12n, 500_000_000_000n],
    ['größe', '', undefined, 1_000_000_000_000n],
  ])
  expect(missing(firstDay)).toBeUndefined()
  expect(missing(firstDay + 5 * dayMs)).toBe('the file has no row for this day')
  await Bun.file(path).delete()
})

test.each([
  ['Latin-1', Buffer.from(csv, 'latin1'), 'neither UTF-8 nor UTF-16'],
  ['a row that is too short', Buffer.from('day,model,amount_usd\n2026-10-01,a\n'), 'Row 2'],
  ['a quote that never ends', Buffer.from('day,model,amount_usd\n2026-10-01,"a,1\n'), 'ends inside a quoted cell'],
  ['a missing column', Buffer.from('day,model\n2026-10-01,a\n'), 'has no column amount_usd'],
  ['a day that does not exist', Buffer.from('day,model,amount_usd\n2026-02-31,a,1\n'), '"2026-02-31" in day'],
  ['an amount with a comma', Buffer.from('day,model,amount_usd\n2026-10-01,a,"1,5"\n'), '"1,5" in amount_usd'],
  ['another currency', Buffer.from('day,model,amount_usd,currency\n2026-10-01,a,1,EUR\n'), 'is in EUR'],
  ['an unknown bucket', Buffer.from('day,model,amount_usd,bucket\n2026-10-01,a,1,tokens\n'), '"tokens" in bucket'],
])('a CSV file with %s is named', async (_, bytes, message) => {
  const path = `${tmpdir()}/tollgate-bill-${Bun.randomUUIDv7()}.csv`
  await Bun.write(path, bytes)
  expect(() => readCsvBill(source(path), everything)).toThrow(message)
  await Bun.file(path).delete()
})

test('FOCUS files of clouds: meters, units, taxes and credits', async () => {
  const path = `${tmpdir()}/tollgate-focus-${Bun.randomUUIDv7()}.csv`
  const head =
    'ChargePeriodStart,BilledCost,BillingCurrency,ChargeCategory,ServiceCategory,SkuMeter,ConsumedQuantity,ConsumedUnit'
  const rows = [
    '2026-10-01T00:00:00Z,0.0030,USD,Usage,AI and Machine Learning,USE1-Claude-input-tokens,1.5,1K tokens',
    '2026-10-01T05:00:00Z,0.0010,USD,Usage,AI and Machine Learning,USE1-Claude-input-tokens,0.5,1K tokens',
    '2026-10-01T00:00:00Z,9.00,USD,Tax,AI and Machine Learning,USE1-Claude-input-tokens,1,1K tokens',
    '2026-10-01T00:00:00Z,7.00,USD,Usage,Compute,BoxUsage,1,Hours',
  ]
  await Bun.write(path, `${[head, ...rows].join('\n')}\n`)
  const { lines } = readFocusBill({ ...source(path), models: { 'Claude-input': 'claude-x input' } }, everything)
  expect(lines).toMatchObject([{ model: 'claude-x', bucket: 'input', quantity: 2_000n, pico: 4_000_000_000n }])
  expect(lines).toHaveLength(1)
  await Bun.file(path).delete()
})

test('a table keeps empty cells and quotes in quotes', () => {
  expect(parseTable('t', Buffer.from('A,b\n"say ""hi""",\n,x')).rows).toEqual([
    ['say "hi"', ''],
    ['', 'x'],
  ])
})

const sourceOf = (bills: FakeBills, format: BillFormat, key = adminKey) => ({
  ...{
    provider,
    format,
    adminKey: new Secret(key),
    baseUrl: bills.url,
    keys: [gatewayKey],
    path: undefined,
    models: {},
  },
})

forEachEngine((_, storeTest) => {
  const pauses: number[] = []
  const deps = (database: Database) => ({ database, clock, pause: async (ms: number) => void pauses.push(ms) })
  const stored = async (database: Database) => (await readBill(database, provider, range)).length
  const answer =
    (status: number, headers: Record<string, string> = {}) =>
    () =>
      new Response('{}', { status, headers })

  storeTest('429, 500, a cut answer and a broken page are read again', async ({ database }) => {
    const { counted } = await writeTraffic(database, { days, requests: 60 })
    using bills = startFakeBills(counted)
    bills.faults.push(answer(429, { 'retry-after': '7' }), answer(500), () => new Response('{"data":['))
    expect(await reconcile(deps(database), sourceOf(bills, 'anthropic'), range)).toMatchObject({
      compared: days,
      fault: undefined,
    })
    expect(pauses.slice(0, 3)).toEqual([7_000, 2_000, 4_000])
    expect((await listReconciliations(database.sql, range)).map(({ differences }) => Number(differences))).toEqual([
      0, 0, 0,
    ])
  })

  storeTest('a report that fails in the middle leaves nothing, and the next run completes it', async ({ database }) => {
    const { counted } = await writeTraffic(database, { days, requests: 60 })
    using bills = startFakeBills(counted)
    bills.pageSize = 2
    // The second page, as often as it is asked for.
    const broken = (url: URL) => (url.searchParams.has('page') ? new Response('', { status: 503 }) : undefined)
    bills.faults.push(...Array.from({ length: 20 }, () => broken))
    const { fault, compared } = await reconcile(deps(database), sourceOf(bills, 'anthropic'), range)
    expect([compared, fault]).toEqual([
      0,
      `${provider} cannot answer its report now (status 503). The next run tries again.`,
    ])
    expect([await stored(database), (await listReconciliations(database.sql, range)).length]).toEqual([0, 0])
    expect((await listSources(database.sql))[0]?.fault).toBe(fault)
    bills.faults.length = 0
    expect(await reconcile(deps(database), sourceOf(bills, 'anthropic'), range)).toMatchObject({
      compared: days,
      fault: undefined,
    })
    expect((await listSources(database.sql))[0]?.fault).toBeUndefined()
  })

  storeTest('a run repeated changes nothing, and a late row is added by the next one', async ({ database }) => {
    const { counted } = await writeTraffic(database, { days, requests: 60 })
    using bills = startFakeBills(counted.slice(0, -1))
    for (let times = 0; times < 2; times++) await reconcile(deps(database), sourceOf(bills, 'openai'), range)
    const before = await listReconciliations(database.sql, range)
    expect(before.map(({ billed, recorded }) => billed === recorded)).toEqual([true, true, false])
    bills.counted = counted
    await reconcile(deps(database), sourceOf(bills, 'openai'), range)
    expect((await listReconciliations(database.sql, range)).map(({ differences }) => Number(differences))).toEqual([
      0, 0, 0,
    ])
  })

  storeTest('a day that is not counted yet is named, and compared later', async ({ database }) => {
    const { counted } = await writeTraffic(database, { days, requests: 60 })
    using bills = startFakeBills(counted)
    bills.refreshedAt = firstDay + 2 * dayMs + 1
    expect(await reconcile(deps(database), sourceOf(bills, 'anthropic'), range)).toMatchObject({
      compared: 2,
      missing: 1,
    })
    const [, , last] = await listReconciliations(database.sql, range)
    expect(last?.missing).toContain('has not finished counting this day')
    bills.refreshedAt = Number.MAX_SAFE_INTEGER
    await reconcile(deps(database), sourceOf(bills, 'anthropic'), range)
    expect((await listReconciliations(database.sql, range)).map(({ missing }) => missing)).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  for (const [what, prepare, message] of [
    ['an admin key without the right', () => {}, 'refused the admin key with 403'],
    [
      'another currency',
      (bills: FakeBills) => void Object.assign(bills, { currency: 'EUR' }),
      'is in EUR, and Tollgate compares US dollars only',
    ],
    [
      'pages that repeat',
      (bills: FakeBills) =>
        bills.faults.push(
          ...Array.from({ length: 9 }, () => () => Response.json({ data: [], has_more: true, next_page: 'again' })),
        ),
      'repeats a page',
    ],
    [
      'rows that contradict each other',
      (bills: FakeBills) => {
        const row = { starting_at: '2026-10-01T00:00:00Z', group: { model: 'large-1' } }
        const rows = [1, 2].map((tokens) => ({ ...row, usage: { output_tokens: tokens } }))
        bills.faults.push(() => Response.json({ data: rows, has_more: false }))
      },
      'two different rows',
    ],
  ] as const) {
    storeTest(`${what}: named, and nothing is stored`, async ({ database }) => {
      const { counted } = await writeTraffic(database, { days, requests: 60 })
      using bills = startFakeBills(counted)
      prepare(bills)
      const key = what.startsWith('an admin key') ? 'sk-of-calls' : adminKey
      const { fault } = await reconcile(deps(database), sourceOf(bills, 'anthropic', key), range)
      expect(fault).toContain(message)
      expect(fault).not.toContain(key)
      expect([await stored(database), (await listReconciliations(database.sql, range)).length]).toEqual([0, 0])
    })
  }

  storeTest('one replica reads a bill at a time, and a claim that was left behind ends', async ({ database }) => {
    const { counted } = await writeTraffic(database, { days, requests: 60 })
    using bills = startFakeBills(counted)
    expect(await claimSource(database, provider, clock.now())).toBe(true)
    expect((await reconcile(deps(database), sourceOf(bills, 'anthropic'), range)).fault).toContain(
      'is being read already',
    )
    const later = { ...clock, now: () => clock.now() + 31 * 60_000 }
    expect(
      (await reconcile({ ...deps(database), clock: later }, sourceOf(bills, 'anthropic'), range)).fault,
    ).toBeUndefined()
  })
})
