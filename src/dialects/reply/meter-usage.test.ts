import { expect, test } from 'bun:test'
import { call, context, ended, started, text, usageOf } from '../../../test/parts/reply-events.ts'
import type { Usage } from '../../kernel/usage.ts'
import type { ReplyEvent } from '../canonical/reply-event.ts'
import { UsageMeter } from './meter-usage.ts'

const unreported: ReplyEvent = { type: 'reply-end', stop: { unified: 'end', raw: '' }, usage: undefined }

function metered(...events: ReplyEvent[]): UsageMeter {
  const meter = new UsageMeter(context)
  for (const event of events) meter.push(event)
  return meter
}

test('what the provider reports at the end counts', () => {
  expect(metered(started, ...text('a'), ended(undefined, usageOf({ outputTokens: 99 }))).usage?.outputTokens).toBe(99)
})

test('vector 82: what nobody reported is estimated, four bytes to a token, and put into the end', () => {
  const meter = metered(started, ...text('1234', 'é'), ...call('1', 'now', '{}'))
  // 4 + 2 bytes of text, 3 of the name, 2 of arguments: 11.
  expect(meter.outputBytes).toBe(11)
  const estimate: Usage = {
    ...usageOf({ inputTokens: 42, outputTokens: 3, cacheReported: 'none' }),
    source: 'estimated',
  }
  expect(meter.push(unreported)).toEqual([{ ...unreported, usage: estimate }])
  expect(meter.usage).toEqual(estimate)
})

test('input that was reported up front is not estimated again', () => {
  const start: ReplyEvent = {
    type: 'reply-start',
    id: 'x',
    usage: usageOf({ inputTokens: 7, cacheReadTokens: 5, outputTokens: 1 }),
  }
  const { usage } = metered(start, ...text('123456789'), unreported)
  const estimate = { ...usageOf({ inputTokens: 7, cacheReadTokens: 5, outputTokens: 3 }), source: 'estimated' as const }
  expect(usage).toEqual({ ...estimate, inputReported: true })
  expect(metered(start, unreported).usage?.outputTokens).toBe(1)
})
