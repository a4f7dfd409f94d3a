import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import type { StreamRelay } from '../dialects/reply/relay.ts'
import { systemClock } from '../kernel/clock.ts'
import { noFailpoint } from '../kernel/failpoint.ts'
import { Failure } from '../kernel/failure.ts'
import type { FaultClass } from '../routing/faults.ts'
import type { Candidate } from '../routing/plan.ts'
import { SseOverflow } from '../wire/sse.ts'
import type { AnswerStream } from './answer.ts'
import type { OpenStream, Reply } from './attempt.ts'
import { createTicker } from './deadline.ts'
import type { Meter } from './meter.ts'
import type { End, Ending } from './settlement.ts'
import type { Held } from './stages.ts'
import { type NoReply, PendingSettlements, StreamClocks, type StreamSource, streamAnswer } from './stream.ts'

// Errors in mid-stream: the provider's and our own are distinguished, and both are settled once.

const nothing = new Uint8Array(0)
const relay: StreamRelay = {
  push: (chunk) => chunk,
  end: () => nothing,
  meaningful: true,
  finished: false,
  terminal: nothing,
  usage: undefined,
  usageSoFar: undefined,
  usageAtStart: undefined,
  bytesAtReport: undefined,
  outputBytes: 0,
  fault: undefined,
  keepAlive: () => nothing,
}

function openStream(read: () => Promise<{ done: boolean; value?: Uint8Array }>, abort = () => {}): OpenStream {
  return {
    kind: 'stream',
    candidate: { provider: { id: 'acme' } } as Candidate,
    lane: 'bytes',
    warnings: [],
    meter: { usageOfPart: () => ({ outputTokens: 0 }) } as unknown as Meter,
    repliedMs: 0,
    reader: { read },
    relay,
    first: new TextEncoder().encode(': first\n\n'),
    capture: undefined,
    timeouts: { connectMs: 1e6, firstEventMs: 1e6, contentIdleMs: 120_000, idleMs: 1e6, totalMs: 1e6 },
    abort,
  }
}

const held = {
  exchange: {
    surface: openaiChat,
    record: { id: 'req_1' },
    connection: { keepOpen() {}, rearm() {}, drop() {}, address: () => undefined },
  },
  hold: { growAtBytes: Number.POSITIVE_INFINITY },
} as unknown as Held

function answer(source: StreamSource) {
  const ends: End[] = []
  const defects: unknown[] = []
  const stream = streamAnswer(
    {
      ticker: createTicker(systemClock, () => {}),
      reach: noFailpoint,
      pendingSettlements: new PendingSettlements(),
      onDefect(error) {
        defects.push(error)
        return new Failure('INTERNAL', 'Tollgate failed.')
      },
    },
    {
      held,
      source,
      async settle({ ending, failure, why }) {
        ends.push({ ending, failure, why })
        return {}
      },
    },
  )
  return { stream, ends, defects }
}

/** What a client reads of it. */
function bodyOf(stream: AnswerStream): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) {
      void stream.run({
        write: (bytes) => void controller.enqueue(bytes),
        end(last) {
          if (last && last.length > 0) controller.enqueue(last)
          controller.close()
        },
      })
    },
    cancel: () => stream.clientLeft(),
  })
}

/** `why`: the fault class for the provider's health; undefined = the error is ours. */
const errors: readonly [name: string, error: Error, code: string, says: string, why: FaultClass | undefined][] = [
  [
    'a reset',
    Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
    'STREAM_INTERRUPTED',
    'acme broke off',
    'broken',
  ],
  ['an event without an end', new SseOverflow('too long'), 'STREAM_INTERRUPTED', 'without an end', 'garbled'],
  ['a defect of ours', new TypeError('internal detail'), 'INTERNAL', 'Tollgate failed.', undefined],
]

test.each(errors)(
  'ends the stream after %s with its own error code, settled once',
  async (_, error, code, says, why) => {
    const isOurs = why === undefined
    const { stream, ends, defects } = answer({ kind: 'open', stream: openStream(() => Promise.reject(error)) })
    const text = await new Response(bodyOf(stream)).text()
    expect(text).toContain(': first')
    expect(text).toContain(`"code":"${code}"`)
    expect(text).toContain(says)
    expect(text).not.toContain('internal detail')
    expect(text).not.toContain('[DONE]')
    expect(defects).toEqual(isOurs ? [error] : [])
    expect(ends).toHaveLength(1)
    expect(ends[0]).toMatchObject({ ending: isOurs ? 'ended by us' : 'interrupted', failure: { code } })
    expect(ends[0]?.why).toBe(why)
  },
)

test('does not blame a provider for a defect of ours before the first event', async () => {
  const error = new TypeError('internal detail')
  const { stream, ends, defects } = answer({ kind: 'pending', reply: Promise.reject(error) })
  expect(await new Response(bodyOf(stream)).text()).toContain('"code":"INTERNAL"')
  expect(defects).toEqual([error])
  expect(ends).toHaveLength(1)
})

test('aborts a provider that opens after the client has left', async () => {
  const aborted = Promise.withResolvers<string>()
  const pending = Promise.withResolvers<Reply | NoReply>()
  const { stream, ends } = answer({ kind: 'pending', reply: pending.promise })
  const reader = bodyOf(stream).getReader()
  await reader.read()
  await reader.cancel()
  pending.resolve(
    openStream(
      () => new Promise(() => {}),
      () => aborted.resolve('aborted'),
    ),
  )
  expect(await aborted.promise).toBe('aborted')
  expect(ends).toEqual([{ ending: 'client left before content', failure: undefined }])
})

test.each(['open', 'being opened'])(
  'ends the call of a client that left before its response was taken, %s',
  async (state) => {
    const aborted = Promise.withResolvers<string>()
    const opened = openStream(
      () => new Promise(() => {}),
      () => aborted.resolve('aborted'),
    )
    const { stream, ends } = answer(
      state === 'open' ? { kind: 'open', stream: opened } : { kind: 'pending', reply: Promise.resolve(opened) },
    )
    await stream.clientLeft()
    expect(await aborted.promise).toBe('aborted')
    // A provider that is open has said something.
    const ending = state === 'open' ? 'client left after content' : 'client left before content'
    expect(ends).toEqual([{ ending, failure: undefined }])
  },
)

test('sends no keep-alives while it awaits the final usage after the client has left', async () => {
  const clock = createJumpClock()
  const defects: unknown[] = []
  const ticker = createTicker(clock, (error) => void defects.push(error))
  const pendingSettlements = new PendingSettlements()
  const counted = Promise.withResolvers<{ done: boolean }>()
  let aborted = 0
  const stream = openStream(
    () => counted.promise,
    () => {
      aborted++
      counted.reject(new Error('cut'))
    },
  )
  const ends: Ending[] = []
  const answered = streamAnswer(
    { ticker, reach: noFailpoint, pendingSettlements, onDefect: () => new Failure('INTERNAL', 'Tollgate failed.') },
    {
      held,
      source: { kind: 'open', stream: { ...stream, relay: { ...relay, awaitsUsage: true } } },
      async settle({ ending }) {
        ends.push(ending)
        return {}
      },
    },
  )
  const reader = bodyOf(answered).getReader()
  await reader.read()
  const cancelled = reader.cancel()
  // Longer than the keep-alive interval, and until every watcher has been ticked.
  let ticks = 0
  ticker.watch({ tickerIndex: -1, tick: () => void ticks++ })
  clock.jump(20)
  while (ticks === 0) await Bun.sleep(5)
  expect([defects, ends]).toEqual([[], []])
  // No connection is open any more, but shutdown still waits for the settlement.
  await pendingSettlements.close()
  expect([aborted > 0, ends]).toEqual([true, ['client left after content']])
  await cancelled
  ticker.close()
})

const timeouts = { connectMs: 1, firstEventMs: 1, idleMs: 30_000, contentIdleMs: 120_000, totalMs: 900_000 }

test('interrupts a silent provider and blames it', () => {
  const clocks = new StreamClocks(0)
  expect(clocks.overdue(30_000, timeouts)).toBeUndefined()
  expect(clocks.overdue(30_001, timeouts)).toEqual({ how: 'fell silent', why: 'timed out' })
})

test('interrupts a provider that sends only pings', () => {
  const clocks = new StreamClocks(0)
  for (let nowMs = 20_000; nowMs <= 120_000; nowMs += 20_000) clocks.received(nowMs, 0)
  expect(clocks.overdue(120_000, timeouts)).toBeUndefined()
  expect(clocks.overdue(120_001, timeouts)).toEqual({ how: 'sent only keep-alives', why: 'timed out' })
  clocks.received(120_001, 5)
  expect(clocks.overdue(130_000, timeouts)).toBeUndefined()
})

test('counts the time without content from the start of the answer', () => {
  const clocks = new StreamClocks(0)
  clocks.opened(200_000)
  // Such as reasoning that only its provider can read.
  clocks.received(200_000, 0)
  expect(clocks.overdue(320_000, timeouts)).toEqual({ how: 'fell silent', why: 'timed out' })
  clocks.received(320_000, 0)
  expect(clocks.overdue(320_000, timeouts)).toBeUndefined()
  expect(clocks.overdue(320_001, timeouts)).toEqual({ how: 'sent only keep-alives', why: 'timed out' })
})

test('does not blame the provider for an answer that exceeds the total time', () => {
  const clocks = new StreamClocks(0)
  clocks.received(890_000, 5)
  expect(clocks.overdue(900_001, timeouts)).toEqual({ how: 'took too long', why: 'had too little time' })
  clocks.pause(890_000)
  expect(clocks.overdue(900_001, timeouts)).toEqual({ how: 'took too long', why: 'had too little time' })
})

test('does not count time in which the provider was not read as silence', () => {
  const clocks = new StreamClocks(0)
  clocks.received(1_000, 5)
  clocks.pause(1_000)
  expect(clocks.overdue(200_000, timeouts)).toBeUndefined()
  clocks.resume(200_000)
  expect(clocks.overdue(230_000, timeouts)).toBeUndefined()
  expect(clocks.overdue(230_001, timeouts)).toEqual({ how: 'fell silent', why: 'timed out' })
})

test('treats a client that reads nothing for 30 s as stalled', () => {
  const clocks = new StreamClocks(0)
  expect(clocks.hasStalled(90_000)).toBe(false)
  clocks.pause(90_000)
  expect([clocks.hasStalled(120_000), clocks.hasStalled(120_001)]).toEqual([false, true])
  clocks.resume(120_001)
  expect(clocks.hasStalled(300_000)).toBe(false)
})

test('sends a keep-alive every 15 s to a waiting client only', () => {
  const clocks = new StreamClocks(0)
  expect([clocks.needsKeepAlive(14_999), clocks.needsKeepAlive(15_000)]).toEqual([false, true])
  clocks.sent(15_000)
  expect(clocks.needsKeepAlive(29_999)).toBe(false)
  clocks.pause(20_000)
  expect(clocks.needsKeepAlive(60_000)).toBe(false)
})
