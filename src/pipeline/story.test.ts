import { describe, expect, test } from 'bun:test'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { systemClock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { Nano } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import { createLog } from '../telemetry/log.ts'
import type { Bill } from './bill.ts'
import { Story } from './story.ts'

const usage: Usage = {
  inputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  outputTokens: 2,
  source: 'reported',
}

function start() {
  let logged = ''
  const unconfirmed = new Set<Promise<void>>()
  const counts = { ended: 0, kept: 0, freed: 0, left: 0, released: 0, written: 0, observed: 0 }
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ format: 'json', clock: systemClock, write })
  const requests = { write: () => void counts.written++ }
  const deps = { clock: systemClock, log, requests, observe: () => void counts.observed++, unconfirmed }
  const connection = { keepOpen() {}, rearm() {}, drop() {}, address: () => undefined }
  const story = new Story(deps, openaiChat, '/v1/chat/completions', connection)
  const bill: Partial<Bill> = {
    held: 9n as Nano,
    priceVersion: 'a/b#1',
    chargeOf: () => 5n as Nano,
    settle: () => Promise.resolve(undefined),
    release: () => void counts.released++,
  }
  story.bill = bill as Bill
  story.kept = {
    keep: async () => void counts.kept++,
    free: async () => void counts.freed++,
    leave: () => void counts.left++,
  }
  story.admission = { end: () => void counts.ended++ } as unknown as NonNullable<typeof story.admission>
  const requestLines = () => {
    log.flush()
    return logged.split('\n').filter((line) => line.includes('"message":"request"')).length
  }
  return { story, counts, bill, requestLines, unconfirmed }
}

const none = { ended: 0, kept: 0, freed: 0, left: 0, released: 0, written: 0, observed: 0 }
const facts = { usage, outputBytes: 4, delivered: () => usage, billsOnCancel: false }
const defect = new Failure('INTERNAL', 'Tollgate failed.')

test('a story that was paid for ends once: a defect behind its end only gets an answer to send', async () => {
  const { story, counts, requestLines } = start()
  await story.settle('complete', undefined, facts)
  expect(story.refuse(defect).status).toBe(500)
  expect(story.abandon().status).toBe(499)
  story.conclude()
  expect(await story.settle('ended by us', defect, facts)).toEqual({ cost: '0.000000005' })
  expect(counts).toEqual({ ...none, ended: 1, kept: 1, observed: 1 })
  expect(requestLines()).toBe(1)
  expect([story.record.status, story.record.code, story.record.charge]).toEqual([200, undefined, 5n as Nano])
})

test('one that was refused is not paid for afterwards', async () => {
  const { story, counts, requestLines } = start()
  expect(story.refuse(defect).status).toBe(500)
  expect(await story.settle('complete', undefined, facts)).toEqual({ cost: undefined })
  expect(counts).toEqual({ ...none, ended: 1, freed: 1, released: 1, written: 1, observed: 1 })
  expect(requestLines()).toBe(1)
})

test('a request whose settlement throws ends with a 500 that does not say that nothing was charged, and keeps its key', async () => {
  const { story, counts, bill } = start()
  bill.settle = () => Promise.reject(new Error('no ledger'))
  expect(await story.settle('complete', undefined, facts).catch(String)).toBe('Error: no ledger')
  const response = story.refuse(defect)
  expect([response.status, response.headers.get('x-should-retry')]).toEqual([500, 'true'])
  expect(await response.text()).toContain('it is not known yet whether it was charged')
  expect(counts).toEqual({ ...none, ended: 1, left: 1, released: 1, written: 1, observed: 1 })
  expect(story.record.charge).toBeUndefined()
})

test('an answer that is paid for goes out and its key is not freed, though it could not be kept under it', async () => {
  let logged = ''
  let ended = 0
  let freed = 0
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ format: 'json', clock: systemClock, write })
  const deps = {
    clock: systemClock,
    log,
    requests: { write() {} },
    observe() {},
    unconfirmed: new Set<Promise<void>>(),
  }
  const connection = { keepOpen() {}, rearm() {}, drop() {}, address: () => undefined }
  const story = new Story(deps, openaiChat, '/v1/chat/completions', connection)
  const bill: Partial<Bill> = {
    held: 9n as Nano,
    priceVersion: 'a/b#1',
    chargeOf: () => 5n as Nano,
    settle: () => Promise.resolve(undefined),
  }
  story.bill = bill as Bill
  story.kept = {
    keep: () => Promise.reject(new Error('the database is away')),
    free: async () => void freed++,
    leave() {},
  }
  story.admission = { end: () => void ended++ } as unknown as NonNullable<typeof story.admission>
  expect(await story.settle('complete', undefined, facts)).toEqual({ cost: '0.000000005' })
  expect([ended, freed, story.record.priceVersion]).toEqual([1, 0, 'a/b#1'])
  log.flush()
  expect(logged).toContain('the database is away')
})

/** A bill whose charge is not confirmed until the promise says whether it was made. */
function startUnconfirmed() {
  const started = start()
  const { promise, resolve } = Promise.withResolvers<boolean | undefined>()
  started.bill.settle = () => Promise.resolve({ isCharged: promise })
  return { ...started, resolve }
}

describe('a charge that is not confirmed in time', () => {
  test('is told as unknown, gives its place back, and keeps its key until the outcome is known', async () => {
    const { story, counts, requestLines, unconfirmed } = startUnconfirmed()
    const { unsettled, cost } = await story.settle('complete', undefined, facts)
    expect([unsettled?.code, cost]).toEqual(['OVERLOADED', undefined])
    expect(unsettled?.message).toContain('it is not known yet whether it was charged')
    expect(unsettled?.message).toContain(`tollgate explain ${story.record.id}`)
    expect(unsettled?.message).toContain('Idempotency-Key')
    expect(unsettled?.facts).toMatchObject({ shouldRetry: true, retryAfterMs: 1000 })
    expect(counts).toEqual({ ...none, ended: 1 })
    expect([unconfirmed.size, requestLines()]).toEqual([1, 0])
  })

  test('without a key the official clients are told not to retry by themselves', async () => {
    const { story } = startUnconfirmed()
    story.kept = undefined
    const { unsettled } = await story.settle('complete', undefined, facts)
    expect(unsettled?.facts).toMatchObject({ shouldRetry: false, retryAfterMs: 1000 })
    expect(unsettled?.message).toContain('a new request with a charge of its own')
  })

  test.each([
    [true, { kept: 1, written: 1 }, 5n, 'the charge was not confirmed in time; it was made'],
    [false, { freed: 1, written: 1 }, undefined, 'the charge was not confirmed in time; it was not made'],
    [undefined, { left: 1 }, undefined, 'this process could not find out whether it was charged'],
  ] as const)(
    'when it is known (%p), key, record, log line and metrics follow once',
    async (isCharged, ends, charge, note) => {
      const { story, counts, requestLines, unconfirmed, resolve } = startUnconfirmed()
      await story.settle('complete', undefined, facts)
      resolve(isCharged)
      await Promise.all(unconfirmed)
      expect(counts).toEqual({ ...none, ended: 1, observed: 1, ...ends })
      expect([unconfirmed.size, requestLines()]).toEqual([0, 1])
      const { record } = story
      expect([record.status, record.code, record.charge as bigint | undefined]).toEqual([503, 'OVERLOADED', charge])
      expect(record.notes).toEqual([note])
    },
  )

  test('a client that had left is recorded as such', async () => {
    const { story, unconfirmed, resolve } = startUnconfirmed()
    await story.settle('client left after content', undefined, facts)
    resolve(true)
    await Promise.all(unconfirmed)
    expect([story.record.status, story.record.code]).toEqual([499, undefined])
  })
})
