import { describe, expect, test } from 'bun:test'
import { received, responseOf } from '../../test/parts/http.ts'
import { tokenCounts } from '../../test/parts/token-counts.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { systemClock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { Nano } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import type { SettleEnd } from '../ledger/ledger.ts'
import { createLog } from '../telemetry/log.ts'
import type { KeyedRequest } from '../tenancy/idempotency.ts'
import { Exchange } from './exchange.ts'
import type { Hold } from './hold.ts'
import {
  billedUsage,
  type Ending,
  endClientLeft,
  endUncharged,
  endWithError,
  type ReadReply,
  type SettlementDependencies,
  settle,
} from './settlement.ts'
import type { Held } from './stages.ts'
import type { MeasuredReply } from './usage.ts'

const whole: Usage = {
  ...tokenCounts(7, 9, 3),
  source: 'reported',
}
const relayed: Usage = { ...whole, outputTokens: 4, source: 'estimated' }

// Which usage is billed for each ending; what a client sees of it is in test/money.

const readAs = (measured: Pick<MeasuredReply, 'usage' | 'outputBytes'>, part: Usage) =>
  ({ reply: { meter: { usageOfPart: () => part } }, measured }) as unknown as ReadReply

test.each<[ending: Ending, afterOutput: Usage | undefined, beforeOutput: Usage | undefined]>([
  ['complete', whole, whole],
  ['not served', undefined, undefined],
  ['client left before content', undefined, undefined],
  ['client left after content', relayed, undefined],
  ['interrupted', relayed, undefined],
  ['hold exhausted', relayed, undefined],
  ['ended by us', relayed, undefined],
])('bills a request that ended as %p', (ending, afterOutput, beforeOutput) => {
  const usage = ending === 'complete' ? whole : undefined
  expect(billedUsage(ending, readAs({ usage, outputBytes: 16 }, relayed))).toEqual(afterOutput)
  expect(billedUsage(ending, readAs({ usage, outputBytes: 0 }, relayed))).toEqual(beforeOutput)
})

test('bills a complete answer without usage by what was relayed', () => {
  expect(billedUsage('complete', readAs({ usage: undefined, outputBytes: 16 }, relayed))).toEqual(relayed)
})

test.each(['client left after content', 'interrupted', 'hold exhausted', 'ended by us'] as const)(
  'bills a quoted usage even without output: %s',
  (ending) => {
    expect(billedUsage(ending, readAs({ usage: whole, outputBytes: 0 }, whole))).toBe(whole)
  },
)

// Ending a request.

const none = { ended: 0, kept: 0, freed: 0, left: 0, released: 0, written: 0, observed: 0 }
const charged = { kind: 'settled', charge: 5n } as SettleEnd
const read: ReadReply = {
  ...readAs({ usage: whole, outputBytes: 4 }, whole),
  reply: {
    candidate: { route: {} },
    meter: {
      usageOfPart: () => whole,
      priceVersion: 'a/b#1',
      quote: (usage: Usage) => ({ usage, cost: 5n, quoted: 5n, quotedUsd: '0.000000005' }),
      cacheSaved: () => 0n,
    },
  } as unknown as ReadReply['reply'],
}
const complete = { ending: 'complete' } as const
const defect = new Failure('INTERNAL', 'Tollgate failed.')

function start() {
  let logged = ''
  const unconfirmed = new Set<Promise<void>>()
  const counts = { ...none }
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ format: 'json', clock: systemClock, write })
  const deps: SettlementDependencies = {
    clock: systemClock,
    log,
    requests: { write: () => void counts.written++ },
    idempotencyKeys: {
      complete: async () => void counts.kept++,
      abandon: async () => void counts.freed++,
      leaveUnresolved: () => void counts.left++,
    },
    storedResponses: {
      keep: async () => {},
      find: async () => undefined,
      remove: async () => false,
      findByItem: async () => undefined,
      async *list() {},
    },
    observe: () => void counts.observed++,
    unconfirmed,
  }
  const connection = { keepOpen() {}, rearm() {}, drop() {}, address: () => undefined }
  const http = received(new Request('http://gateway.test'))
  const exchange = new Exchange(systemClock, http, openaiChat, '/v1/chat/completions', connection)
  const hold: Partial<Hold> = {
    heldBeforeCost: 9n as Nano,
    settle: () => Promise.resolve(charged),
    release: async () => void counts.released++,
  }
  exchange.hold = hold as Hold
  exchange.key = {} as KeyedRequest
  exchange.slot = { end: () => void counts.ended++ } as unknown as NonNullable<typeof exchange.slot>
  const held = { exchange, hold, admitted: { storing: {} } } as unknown as Held
  const lines = () => {
    log.flush()
    return logged
  }
  const requestLines = () =>
    lines()
      .split('\n')
      .filter((line) => line.includes('"message":"request"')).length
  return { deps, exchange, held, record: exchange.record, counts, hold, lines, requestLines, unconfirmed }
}

test('ends a charged request once: a later error only gets a response', async () => {
  const { deps, exchange, held, record, counts, requestLines } = start()
  await settle(deps, held, complete, read)
  expect(endWithError(deps, exchange, defect).status).toBe(500)
  expect(endClientLeft(deps, exchange).status).toBe(499)
  endUncharged(deps, exchange)
  expect(await settle(deps, held, { ending: 'ended by us', failure: defect }, read)).toEqual({
    chargeUsd: '0.000000005',
  })
  expect(counts).toEqual({ ...none, ended: 1, kept: 1, observed: 1 })
  expect(requestLines()).toBe(1)
  expect([record.status, record.code, record.charge, record.priceVersion]).toEqual([
    200,
    undefined,
    5n as Nano,
    'a/b#1',
  ])
})

test('records what a shared wallet paid, if it is less than quoted', async () => {
  const { deps, held, record, hold } = start()
  const rows: unknown[] = []
  hold.settle = async (_usage, row) => {
    rows.push(row({ workspaceId: 'ws_1', charge: 3n as Nano, writtenOff: 2n as Nano, budgets: null }))
    return { ...charged, charge: 3n, posted: 0n } as SettleEnd
  }
  record.caller = { keyId: 'key_1', projectId: 'prj_1', workspaceId: 'ws_1' }
  expect(await settle(deps, held, complete, read)).toEqual({ chargeUsd: '0.000000003' })
  expect([record.charge, record.balance]).toEqual([3n as Nano, 0n as Nano])
  expect(rows).toMatchObject([{ charge: 3, written_off: 2 }])
})

test('does not charge a request that was refused', async () => {
  const { deps, exchange, held, counts, requestLines } = start()
  expect(endWithError(deps, exchange, defect).status).toBe(500)
  expect(await settle(deps, held, complete, read)).toEqual({ chargeUsd: undefined })
  expect(counts).toEqual({ ...none, ended: 1, freed: 1, released: 1, written: 1, observed: 1 })
  expect(requestLines()).toBe(1)
})

test('after a settlement that throws, says that the charge is unknown and keeps the key', async () => {
  const { deps, exchange, held, record, counts, hold } = start()
  hold.settle = () => Promise.reject(new Error('no ledger'))
  expect(await settle(deps, held, complete, read).catch(String)).toBe('Error: no ledger')
  const response = responseOf(endWithError(deps, exchange, defect))
  expect([response.status, response.headers.get('x-should-retry')]).toEqual([500, 'true'])
  expect(await response.text()).toContain('it is not known yet whether it was charged')
  expect(counts).toEqual({ ...none, ended: 1, left: 1, released: 1, written: 1, observed: 1 })
  expect(record.charge).toBeUndefined()
})

test.each<[end: SettleEnd, retryAfterMs: number]>([
  [{ kind: 'unavailable', retryAfterMs: 1234 }, 1234],
  [{ kind: 'gone' }, 1000],
])('fails with "nothing was charged" if the ledger answers %j', async (end, retryAfterMs) => {
  const { deps, held, record, counts, hold } = start()
  hold.settle = () => Promise.resolve(end)
  const { unsettled } = await settle(deps, held, complete, read)
  expect(unsettled).toMatchObject({ code: 'OVERLOADED', facts: { retryAfterMs } })
  expect(unsettled?.message).toContain('Nothing was charged')
  expect(counts).toEqual({ ...none, ended: 1, freed: 1, released: 1, written: 1, observed: 1 })
  expect([record.status, record.charge]).toEqual([503, undefined])
})

test('sends a charged answer that could not be stored under its key, and does not free the key', async () => {
  const { deps, held, counts, lines } = start()
  deps.idempotencyKeys.complete = () => Promise.reject(new Error('the database is away'))
  expect(await settle(deps, held, complete, read)).toEqual({ chargeUsd: '0.000000005' })
  expect(counts).toEqual({ ...none, ended: 1, observed: 1 })
  expect(lines()).toContain('the database is away')
})

test('a paid answer goes out while the database hangs, and its key is completed once it works again', async () => {
  const { deps, held, exchange, counts, lines, unconfirmed } = start()
  const disk = Promise.withResolvers<void>()
  const keys = { ...deps.idempotencyKeys, complete: () => disk.promise.then(() => void counts.kept++) }
  const settled = await settle({ ...deps, idempotencyKeys: keys }, held, complete, read)
  expect(settled.unsettled).toBeUndefined()
  expect(counts).toEqual({ ...none, ended: 1, observed: 1 })
  expect(lines()).toContain('goes out before it is kept')
  expect(exchange.record.charge as bigint | undefined).toBe(5n)
  expect(unconfirmed.size).toBe(1)
  disk.resolve()
  await Promise.all(unconfirmed)
  expect([counts.kept, unconfirmed.size]).toEqual([1, 0])
})

describe('a charge that is not confirmed in time', () => {
  function startUnconfirmed() {
    const started = start()
    const { promise, resolve } = Promise.withResolvers<SettleEnd | undefined>()
    started.hold.settle = () => Promise.resolve({ kind: 'unknown', retryAfterMs: 1, end: promise })
    return { ...started, resolve }
  }

  test('is reported as unknown, frees its slot, and keeps its key until the outcome is known', async () => {
    const { deps, exchange, held, counts, requestLines, unconfirmed } = startUnconfirmed()
    const { unsettled, chargeUsd } = await settle(deps, held, complete, read)
    expect([unsettled?.code, chargeUsd]).toEqual(['OVERLOADED', undefined])
    expect(unsettled?.message).toContain('it is not known yet whether it was charged')
    expect(unsettled?.message).toContain(`tollgate explain ${exchange.record.id}`)
    expect(unsettled?.message).toContain('Idempotency-Key')
    expect(unsettled?.facts).toMatchObject({ shouldRetry: true, retryAfterMs: 1000 })
    expect(counts).toEqual({ ...none, ended: 1 })
    expect([unconfirmed.size, requestLines()]).toEqual([1, 0])
  })

  test('tells the official clients not to retry without a key', async () => {
    const { deps, exchange, held } = startUnconfirmed()
    exchange.key = undefined
    const { unsettled } = await settle(deps, held, complete, read)
    expect(unsettled?.facts).toMatchObject({ shouldRetry: false, retryAfterMs: 1000 })
    expect(unsettled?.message).toContain('a new request with its own charge')
  })

  const unavailable: SettleEnd = { kind: 'unavailable', retryAfterMs: 1 }
  test.each<[end: SettleEnd | undefined, ends: Partial<typeof none>, charge: bigint | undefined, note: string]>([
    [charged, { kept: 1, written: 1 }, 5n, 'the charge was not confirmed in time; it was made'],
    [{ kind: 'gone' }, { freed: 1, written: 1 }, undefined, 'the charge was not confirmed in time; it was not made'],
    [unavailable, { freed: 1, written: 1 }, undefined, 'the charge was not confirmed in time; it was not made'],
    [undefined, { left: 1 }, undefined, 'this process could not find out whether it was charged'],
  ])('updates key, record, log and metrics once when it is known: %p', async (end, ends, charge, note) => {
    const { deps, held, record, counts, requestLines, unconfirmed, resolve } = startUnconfirmed()
    await settle(deps, held, complete, read)
    resolve(end)
    await Promise.all(unconfirmed)
    expect(counts).toEqual({ ...none, ended: 1, observed: 1, ...ends })
    expect([unconfirmed.size, requestLines()]).toEqual([0, 1])
    expect([record.status, record.code, record.charge as bigint | undefined]).toEqual([503, 'OVERLOADED', charge])
    expect(record.notes).toEqual([note])
  })

  test('keeps the status of a client that had left', async () => {
    const { deps, held, record, unconfirmed, resolve } = startUnconfirmed()
    await settle(deps, held, { ending: 'client left after content' }, read)
    resolve(charged)
    await Promise.all(unconfirmed)
    expect([record.status, record.code]).toEqual([499, undefined])
  })
})
