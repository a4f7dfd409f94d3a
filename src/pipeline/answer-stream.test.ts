import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import type { StreamRelay } from '../dialects/byte-lane/relay.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { systemClock } from '../kernel/clock.ts'
import { noFailpoint } from '../kernel/failpoint.ts'
import { Failure } from '../kernel/failure.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { FaultClass } from '../routing/fault.ts'
import { SseOverflow } from '../wire/sse-splitter.ts'
import { answerStream } from './answer-stream.ts'
import type { OpenStream } from './attempt.ts'
import { Owed } from './owed.ts'
import type { End, Opened } from './pump.ts'
import type { Ending } from './settlement.ts'
import { createTicker } from './ticker.ts'

// What becomes of an error in mid-stream: the provider's is told as the provider's, ours as ours, and both are settled
// once.

const nothing = new Uint8Array(0)
const relay: StreamRelay = {
  push: (chunk) => chunk,
  end: () => nothing,
  meaningful: true,
  finished: false,
  terminal: nothing,
  usage: undefined,
  usageSoFar: undefined,
  countedBytes: undefined,
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
    reader: { read },
    relay,
    first: new TextEncoder().encode(': first\n\n'),
    timeouts: { connectMs: 1e6, firstEventMs: 1e6, contentIdleMs: 120_000, idleMs: 1e6, totalMs: 1e6 },
    abort,
  }
}

const quiet = {
  surface: openaiChat,
  requestId: 'req_1',
  connection: { keepOpen() {}, rearm() {}, drop() {}, address: () => undefined },
  onDefect: () => new Failure('INTERNAL', 'Tollgate failed.'),
  bill: undefined,
  reach: noFailpoint,
  tokensOf: () => 0,
  owed: new Owed(),
} as const

function answer(opening: OpenStream | Promise<Opened>) {
  const ends: End[] = []
  const defects: unknown[] = []
  const body = answerStream({
    ...quiet,
    opening,
    ticker: createTicker(systemClock, () => {}),
    onDefect(error) {
      defects.push(error)
      return new Failure('INTERNAL', 'Tollgate failed.')
    },
    async settle({ ending, failure, why }) {
      ends.push({ ending, failure, why })
      return {}
    },
  })
  return { body, ends, defects }
}

/** `why`: what the provider's health is told; undefined = it is ours. */
const errors: readonly [name: string, error: Error, code: string, says: string, why: FaultClass | undefined][] = [
  [
    'a reset',
    Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
    'STREAM_INTERRUPTED',
    'acme broke off',
    'broken',
  ],
  ['an event without an end', new SseOverflow('too long'), 'STREAM_INTERRUPTED', 'without an end', 'garbled'],
  ['a mistake of ours', new TypeError('secret of the house'), 'INTERNAL', 'Tollgate failed.', undefined],
]

test.each(errors)('%s ends the stream with its own code, settled once', async (_, error, code, says, why) => {
  const isOurs = why === undefined
  const { body, ends, defects } = answer(openStream(() => Promise.reject(error)))
  const text = await new Response(body).text()
  expect(text).toContain(': first')
  expect(text).toContain(`"code":"${code}"`)
  expect(text).toContain(says)
  expect(text).not.toContain('secret')
  expect(text).not.toContain('[DONE]')
  expect(defects).toEqual(isOurs ? [error] : [])
  expect(ends).toHaveLength(1)
  expect(ends[0]).toMatchObject({ ending: isOurs ? 'ended by us' : 'interrupted', failure: { code } })
  expect(ends[0]?.why).toBe(why)
})

test('a mistake of ours while the first event is awaited is not blamed on a provider', async () => {
  const error = new TypeError('secret of the house')
  const { body, ends, defects } = answer(Promise.reject(error))
  expect(await new Response(body).text()).toContain('"code":"INTERNAL"')
  expect(defects).toEqual([error])
  expect(ends).toHaveLength(1)
})

test('a provider that opens for a client that has just gone is ended', async () => {
  const aborted = Promise.withResolvers<string>()
  const opening = Promise.withResolvers<Opened>()
  const { body, ends } = answer(opening.promise)
  const reader = body.getReader()
  await reader.read()
  await reader.cancel()
  opening.resolve(
    openStream(
      () => new Promise(() => {}),
      () => aborted.resolve('aborted'),
    ),
  )
  expect(await aborted.promise).toBe('aborted')
  expect(ends).toEqual([{ ending: 'client left before content', failure: undefined }])
})

test('a client that left behind the end of its answer gets no more signs of life while its cost is heard', async () => {
  const clock = createJumpClock()
  const defects: unknown[] = []
  const ticker = createTicker(clock, (error) => void defects.push(error))
  const owed = new Owed()
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
  const body = answerStream({
    ...quiet,
    opening: { ...stream, relay: { ...relay, isOwed: true } },
    ticker,
    owed,
    async settle({ ending }) {
      ends.push(ending)
      return {}
    },
  })
  const reader = body.getReader()
  await reader.read()
  const cancelled = reader.cancel()
  // Longer than a client is left in silence, and until everybody has been asked.
  let asked = 0
  ticker.watch({ seat: -1, tick: () => void asked++ })
  clock.jump(20)
  while (asked === 0) await Bun.sleep(5)
  expect([defects, ends]).toEqual([[], []])
  // Nobody's connection is open any more, and still the gateway waits for it when it closes.
  await owed.close()
  expect([aborted > 0, ends]).toEqual([true, ['client left after content']])
  await cancelled
  ticker.close()
})
