// Provider faults, one function for each row of the golden table, in either dialect and whether or not it
// was asked for a stream.

import { gzipSync } from 'node:zlib'
import type { UpstreamCall, UpstreamReply } from '../parts/upstream.ts'
import { geminiWords, wordsFor } from '../parts/upstream-words.ts'

export interface Turn {
  readonly call: UpstreamCall
  readonly reply: UpstreamReply
  /** Whether the gateway asked for a stream. */
  readonly streams: boolean
  /** Resolves when the client has seen content, where it gets any before the end. */
  untilSeen?(): Promise<void>
}

type Misbehave = (turn: Turn) => void | Promise<void>

const json = { 'content-type': 'application/json' }

const status =
  (code: number, message: string, headers: Record<string, string> = {}, error: object = {}): Misbehave =>
  ({ call, reply }) =>
    wordsFor(call) === geminiWords
      ? reply.json(code, { error: { code, message, status: 'SOME_ERROR' } }, headers)
      : reply.json(code, { type: 'error', error: { type: 'some_error', message, ...error } }, headers)

/** Connecting itself fails; the gateway is given another address for these. */
export const addressFaults: ReadonlySet<string> = new Set(['connect refused', 'TLS failure'])
/** Only a clock ends these: the one for the first event while another route is left, or ten minutes. */
const untilAnswer = (isEarly: boolean, isLast: boolean) => (isEarly && !isLast ? 61 : 601)
/** A refusal is known by its status; its words have two seconds. */
const untilWords = () => 2.1

/** How many seconds have to pass. */
export const clockFaults: Readonly<Record<string, (isEarly: boolean, isLast: boolean) => number>> = {
  'hang before headers': untilAnswer,
  'hang after headers': untilAnswer,
  'slow drip': untilAnswer,
  '503 whose body hangs': untilWords,
  '400 whose body hangs': untilWords,
}

export const misbehaviours: Readonly<Record<string, Misbehave>> = {
  reset: ({ reply }) => reply.reset(),
  'hang before headers': () => {},
  'hang after headers': beginOf,
  'slow drip': async (turn) => {
    await beginOf(turn)
    const { reply, streams } = turn
    await (streams ? reply.chunk(': still here\n\n') : reply.write(' '))
  },
  '400': status(400, 'temperature is no good'),
  '400 of a bad key': status(400, 'Incorrect API key provided: upstream-secret'),
  '401': status(401, 'Incorrect API key provided: upstream-secret'),
  '402': status(402, 'Add to the balance of your account'),
  '402 of a large request': status(402, 'This request requires more credits, or fewer max_tokens of your account'),
  '403': status(403, 'Your account may not use this'),
  '403 of a file': status(403, 'You do not have permission to access the File no good.'),
  '404 of a file': status(404, 'File not found: no good'),
  '404': status(404, 'The model `up` does not exist', {}, { code: 'model_not_found' }),
  '404 of a proxy': ({ reply }) => reply.send(404, { 'content-type': 'text/html' }, '<h1>404 Not Found</h1>'),
  '405': status(405, 'Method Not Allowed'),
  '408': status(408, 'took too long'),
  '410': status(410, "The model 'up' has reached its end of life"),
  '413': status(413, 'the request is too big'),
  '422': status(422, 'top_p is no good'),
  '424': status(424, 'The tool server is no good'),
  '429': status(429, 'slow down'),
  '429 with Retry-After: 7': status(429, 'slow down', { 'retry-after': '7' }),
  '429 with Retry-After: 90': status(429, 'slow down', { 'retry-after': '90' }),
  'quota 429': status(429, 'You exceeded your current quota, check your billing', {}, { code: 'insufficient_quota' }),
  '500': status(500, 'oh no'),
  '502': status(502, 'bad gateway'),
  '503': status(503, 'busy'),
  '529': status(529, 'Overloaded'),
  '503 whose body hangs': (turn) => halfRefusal(turn, 503, 'busy'),
  '400 whose body hangs': (turn) => halfRefusal(turn, 400, 'temperature is no good'),
  '503 cut in its body': async (turn) => {
    await halfRefusal(turn, 503, 'busy')
    turn.reply.cut()
  },
  '400 cut in its body': async (turn) => {
    await halfRefusal(turn, 400, 'temperature is no good')
    turn.reply.cut()
  },
  '429 cut in its body, with Retry-After: 7': async (turn) => {
    await halfRefusal(turn, 429, 'slow down', 'retry-after: 7\r\n')
    turn.reply.cut()
  },
  redirect: ({ reply }) => reply.send(307, { location: 'http://127.0.0.1:1/elsewhere' }, ''),
  '200 with error event': async ({ call, reply, streams }) => {
    const words = wordsFor(call)
    if (!streams) return reply.json(200, { type: 'error', error: { type: 'server_error', message: 'fell over' } })
    await reply.startStream()
    await reply.chunk(words.opening + words.error)
    await reply.finish()
  },
  '200 with HTML': ({ reply }) => reply.send(200, { 'content-type': 'text/html' }, '<h1>It works!</h1>'),
  'empty 200': async ({ reply, streams }) => {
    if (!streams) return reply.send(200, json, '')
    await reply.startStream()
    await reply.finish()
  },
  'truncated JSON': async ({ call, reply, streams }) => {
    const { whole, says } = wordsFor(call)
    if (!streams) return reply.send(200, json, whole.slice(0, -30))
    await reply.startStream()
    await reply.chunk(`${says('hello').trimEnd().slice(0, -20)}\n\n`)
    await reply.finish()
  },
  'cut before content': async (turn) => {
    await beginOf(turn)
    if (turn.streams) await turn.reply.chunk(wordsFor(turn.call).opening)
    turn.reply.cut()
  },
  'cut after content': async (turn) => {
    const { call, reply, streams } = turn
    const words = wordsFor(call)
    await beginOf(turn)
    if (streams) await reply.chunk(words.opening + words.says('hello'))
    else await reply.write(words.whole.slice(0, -10))
    await turn.untilSeen?.()
    reply.cut()
  },
  'oversized event': async ({ reply, streams }) => {
    if (!streams)
      return reply.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 70000000\r\n\r\n{')
    await reply.startStream()
    await reply.chunk(`data: ${'x'.repeat(4_300_000)}`)
  },
  'gzip body': async ({ call, reply, streams }) => {
    const { opening, says, ending, whole } = wordsFor(call)
    const type = streams ? 'text/event-stream' : 'application/json'
    const body = gzipSync(streams ? opening + says('hello') + ending : whole)
    await reply.send(200, { 'content-type': type, 'content-encoding': 'gzip' }, body)
  },
}

/** All that it has to say, and the promise of more. */
async function halfRefusal({ reply }: Turn, code: number, message: string, headers = ''): Promise<void> {
  const said = JSON.stringify({ type: 'error', error: { type: 'some_error', message } })
  const head = `HTTP/1.1 ${code} No\r\ncontent-type: application/json\r\n${headers}content-length: 9999\r\n\r\n`
  await reply.write(head + said)
  // Until the gateway has read it.
  await Bun.sleep(50)
}

/** The head of an answer that promises more. */
function beginOf({ reply, streams }: Turn): Promise<void> {
  if (streams) return reply.startStream()
  return reply.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n')
}
