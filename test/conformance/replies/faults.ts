// Faults of providers, in the bytes of each dialect, and what callers of either surface get for them.

import type { UpstreamReply } from '../../parts/upstream.ts'
import { chatWords, geminiWords, messagesWords, responsesWords, type Words } from '../../parts/upstream-words.ts'
import type { DialectName } from '../cells.ts'

/** `404 NOT_FOUND`: instead of an answer. `stream STREAM_INTERRUPTED`: inside one. `503 UNAVAILABLE`: see `onSurface`. */
export type FaultOutcome = `${number} ${string}` | `stream ${string}`

export interface Asked {
  readonly stream: boolean
  /** The caller has the beginning of its answer. */
  readonly begun: Promise<void>
}

export interface FaultFixture {
  /** The row's name on the page. */
  readonly feature: string
  /** The provider's side, for a stream and, for callers of its own dialect, for a whole reply. */
  answer(reply: UpstreamReply, words: Words, asked: Asked): Promise<void>
  /** The results for a streamed and for a whole request. */
  readonly streamed: FaultOutcome
  readonly whole: FaultOutcome
  /** A part of the message. */
  readonly says?: string
  /** Headers of the answer to a caller of a whole reply, and of an answer that is no stream. */
  readonly headers?: Readonly<Record<string, string>>
}

export const wordsOf: Readonly<Record<DialectName, Words>> = {
  chat: chatWords,
  messages: messagesWords,
  gemini: geminiWords,
  responses: responsesWords,
}

/** Only the operator can help. */
const unserved = { streamed: '404 NOT_FOUND', whole: '404 NOT_FOUND' } as const
/** It may pass. */
const unavailable = { streamed: '503 UNAVAILABLE', whole: '503 UNAVAILABLE' } as const
/** The caller of a whole reply has seen nothing of it, so nothing was interrupted. */
const interrupted = { streamed: 'stream STREAM_INTERRUPTED', whole: '503 UNAVAILABLE' } as const

const refusal = (status: number, type: string, message: string, headers: Record<string, string> = {}) =>
  ((reply) =>
    reply.json(
      status,
      { type: 'error', error: { type, message, code: null, param: null } },
      headers,
    )) satisfies FaultFixture['answer']

interface Course {
  readonly before?: (words: Words) => string
  /** Sent when the caller has what came before. */
  readonly later?: (words: Words) => string
  readonly end: 'cut' | 'finish'
}

/** A stream that goes wrong; a whole reply is cut in half. */
const streaming =
  ({ before, later, end }: Course): FaultFixture['answer'] =>
  async (reply, words, { stream, begun }) => {
    if (!stream) {
      await reply.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n')
      await reply.write(words.whole.slice(0, 40))
      return reply.cut()
    }
    await reply.startStream()
    if (before) {
      await reply.chunk(before(words))
      await begun
    }
    if (later) await reply.chunk(later(words))
    if (end === 'finish') await reply.finish()
    else reply.cut()
  }

const half = ({ opening, says }: Words): string => opening + says('half')

/** The specification makes an outage a 404 on its two endpoints; inside a stream, clients of Responses know OpenAI's codes only. */
export function onSurface(surface: DialectName, outcome: FaultOutcome): FaultOutcome {
  if (surface === 'responses' && outcome === 'stream STREAM_INTERRUPTED') return 'stream server_error'
  const isSpecified = surface === 'chat' || surface === 'messages'
  return isSpecified && outcome === '503 UNAVAILABLE' ? '404 NOT_FOUND' : outcome
}

export const faultFixtures: readonly FaultFixture[] = [
  { feature: 'The provider fails (500)', answer: refusal(500, 'api_error', 'oops'), ...unavailable },
  {
    feature: 'The provider is overloaded (529)',
    answer: refusal(529, 'overloaded_error', 'Overloaded'),
    ...unavailable,
  },
  {
    feature: 'The provider throttles (429)',
    answer: refusal(429, 'rate_limit_error', 'slow down', { 'retry-after': '7' }),
    streamed: '429 LIMIT_EXCEEDED',
    whole: '429 LIMIT_EXCEEDED',
    headers: { 'retry-after': '7', 'retry-after-ms': '7000' },
  },
  {
    feature: 'The provider refuses the request (400)',
    answer: refusal(400, 'invalid_request_error', 'top_sekrit: too spicy'),
    streamed: '400 INVALID_REQUEST',
    whole: '400 INVALID_REQUEST',
    says: 'top_sekrit: too spicy',
  },
  {
    feature: 'The gateway’s own key is refused (401)',
    answer: refusal(401, 'authentication_error', 'no'),
    ...unserved,
  },
  {
    feature: 'The provider does not know the model (404)',
    answer: refusal(404, 'not_found_error', 'model: nope'),
    ...unserved,
  },
  {
    feature: 'An error before any content',
    answer: streaming({ later: ({ error }) => error, end: 'finish' }),
    ...unavailable,
  },
  {
    feature: 'A broken connection before any content',
    answer: streaming({ later: ({ opening }) => opening, end: 'cut' }),
    ...unavailable,
  },
  {
    feature: 'An error after some content',
    answer: streaming({ before: half, later: ({ error }) => error, end: 'finish' }),
    ...interrupted,
  },
  {
    feature: 'A broken connection after some content',
    answer: streaming({ before: half, end: 'cut' }),
    ...interrupted,
  },
  {
    feature: 'A stream without its final event',
    answer: streaming({ before: half, end: 'finish' }),
    ...interrupted,
  },
]
