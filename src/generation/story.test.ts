import { expect, test } from 'bun:test'
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
  const counts = { ended: 0, freed: 0, released: 0, written: 0, observed: 0 }
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ format: 'json', clock: systemClock, write })
  const requests = { write: () => void counts.written++, amendNotes: () => {} }
  const deps = { clock: systemClock, log, requests, observe: () => void counts.observed++ }
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
  story.kept = { keep: async () => {}, free: async () => void counts.freed++ }
  story.admission = { end: () => void counts.ended++ } as unknown as NonNullable<typeof story.admission>
  const requestLines = () => {
    log.flush()
    return logged.split('\n').filter((line) => line.includes('"message":"request"')).length
  }
  return { story, counts, bill, requestLines }
}

const facts = { usage, outputBytes: 4, delivered: () => usage, billsOnCancel: false }
const defect = new Failure('INTERNAL', 'Tollgate failed.')

test('a story that was paid for ends once: a defect behind its end only gets an answer to send', async () => {
  const { story, counts, requestLines } = start()
  await story.settle('complete', undefined, facts)
  expect(story.refuse(defect).status).toBe(500)
  expect(story.abandon().status).toBe(499)
  story.conclude()
  expect(await story.settle('ended by us', defect, facts)).toEqual({ cost: '0.000000005' })
  expect(counts).toEqual({ ended: 1, freed: 0, released: 0, written: 0, observed: 1 })
  expect(requestLines()).toBe(1)
  expect([story.record.status, story.record.code, story.record.charge]).toEqual([200, undefined, 5n as Nano])
})

test('one that was refused is not paid for afterwards', async () => {
  const { story, counts, requestLines } = start()
  expect(story.refuse(defect).status).toBe(500)
  expect(await story.settle('complete', undefined, facts)).toEqual({ cost: undefined })
  expect(counts).toEqual({ ended: 1, freed: 1, released: 1, written: 1, observed: 1 })
  expect(requestLines()).toBe(1)
})

test('one whose charge met a defect has not ended by it', async () => {
  const { story, counts, bill } = start()
  bill.settle = () => Promise.reject(new Error('no ledger'))
  expect(await story.settle('complete', undefined, facts).catch(String)).toBe('Error: no ledger')
  expect(story.refuse(defect).status).toBe(500)
  expect(counts).toEqual({ ended: 1, freed: 1, released: 1, written: 1, observed: 1 })
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
  const deps = { clock: systemClock, log, requests: { write() {}, amendNotes() {} }, observe() {} }
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
  }
  story.admission = { end: () => void ended++ } as unknown as NonNullable<typeof story.admission>
  expect(await story.settle('complete', undefined, facts)).toEqual({ unsettled: undefined, cost: '0.000000005' })
  expect([ended, freed, story.record.priceVersion]).toEqual([1, 0, 'a/b#1'])
  log.flush()
  expect(logged).toContain('the database is away')
})
