import { expect, test } from 'bun:test'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { systemClock } from '../kernel/clock.ts'
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

test('an answer that is paid for goes out and its key is not freed, though it could not be kept under it', async () => {
  let logged = ''
  let ended = 0
  let freed = 0
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ format: 'json', clock: systemClock, write })
  const deps = { clock: systemClock, log, requests: { write() {} }, observe() {} }
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
  const facts = { usage, outputBytes: 4, delivered: () => usage, billsOnCancel: false }
  expect(await story.settle('complete', undefined, facts)).toEqual({ unsettled: undefined, cost: '0.000000005' })
  expect([ended, freed, story.record.priceVersion]).toEqual([1, 0, 'a/b#1'])
  log.flush()
  expect(logged).toContain('the database is away')
})
