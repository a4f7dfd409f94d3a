// One upstream call: the request in the endpoint's dialect, sent, and read up to the point where the provider is
// committed. A streamed answer is committed by its first meaningful event, a whole one by its last byte; everything
// that goes wrong before is a fault that the client never sees.

import type { RouteTimeouts } from '../catalog/model.ts'
import type { Envelope, ProviderFault, RelayContext, StreamRelay } from '../dialects/dialect.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Usage } from '../kernel/usage.ts'
import { callEndpoint, TransportFault } from '../providers/call-endpoint.ts'
import type { Candidate } from '../routing/candidate.ts'
import { type AttemptFault, attemptFault, classifyFault } from '../routing/fault.ts'
import { readResponseBody } from '../wire/read-body.ts'
import { SseOverflow } from '../wire/sse-splitter.ts'
import { Patience } from './patience.ts'
import type { Ticker } from './ticker.ts'

/** A provider that has begun to answer; its first bytes for the client are ready. */
export interface OpenStream {
  readonly kind: 'stream'
  readonly candidate: Candidate
  readonly reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> }
  readonly relay: StreamRelay
  readonly first: Uint8Array
  readonly timeouts: RouteTimeouts
  /** Ends the upstream call at once. */
  abort(): void
}

export interface WholeReply {
  readonly kind: 'whole'
  readonly candidate: Candidate
  readonly body: Uint8Array
  readonly usage: Usage | undefined
}

export type Answered = OpenStream | WholeReply

export function isAnswered(outcome: Answered | AttemptFault): outcome is Answered {
  return 'kind' in outcome
}

export interface AttemptInput {
  readonly candidate: Candidate
  readonly envelope: Envelope
  readonly defaultOutputCap: number | undefined
  readonly clientHeaders: Headers
  readonly clientGone: AbortSignal
  readonly relay: RelayContext
  readonly thinks: boolean
  /** Called once when the attempt takes so long that the client's connection would be closed for silence. */
  onLong(): void
}

const replyBytesMax = 64 * 1024 * 1024
const faultBytesMax = 64 * 1024

export function createAttempt({ clock, ticker }: { clock: Clock; ticker: Ticker }) {
  return async (input: AttemptInput): Promise<Answered | AttemptFault> => {
    if (input.clientGone.aborted) return attemptFault('client left')
    const timeouts = timeoutsOf(input)
    const patience = new Patience(clock.monotonicMs(), firstAnswerMs(input, timeouts), input.clientGone, input.onLong)
    ticker.watch(patience)
    try {
      return await openAnswer(input, timeouts, patience)
    } finally {
      patience.end()
      ticker.unwatch(patience)
    }
  }
}

async function openAnswer(
  input: AttemptInput,
  timeouts: RouteTimeouts,
  patience: Patience,
): Promise<Answered | AttemptFault> {
  const { candidate, envelope } = input
  const { dialect } = candidate
  const response = await callEndpoint(candidate.provider, candidate.endpoint, {
    path: dialect.generationPath,
    dialectHeaders: dialect.forwardedHeaders(input.clientHeaders),
    body: dialect.editRequest(envelope, {
      upstreamModel: candidate.route.upstreamModel,
      defaultOutputCap: input.defaultOutputCap,
      rules: candidate.rules,
    }),
    signal: patience.signal,
  })
  if (response instanceof TransportFault)
    return patience.fault(response.kind === 'unreachable' ? 'unreachable' : 'broken')
  try {
    if (response.status !== 200) return await refusal(candidate, response)
    if (response.headers.has('content-encoding')) return garbled('an encoded answer', patience)
    return envelope.stream
      ? await openStream(input, response, timeouts, patience)
      : await readReply(input, response, patience)
  } catch (error) {
    patience.abort()
    return patience.fault(error instanceof SseOverflow ? 'garbled' : 'broken')
  }
}

async function refusal(candidate: Candidate, response: Response): Promise<AttemptFault> {
  const body = await readResponseBody(response, faultBytesMax)
  const text = body === 'too-large' ? '' : new TextDecoder().decode(body)
  return classifyFault(candidate.dialect.readFault(response.status, response.headers, text))
}

async function readReply(
  input: AttemptInput,
  response: Response,
  patience: Patience,
): Promise<WholeReply | AttemptFault> {
  const body = await readResponseBody(response, replyBytesMax)
  if (body === 'too-large') return garbled(`an answer of over ${replyBytesMax} bytes`, patience)
  const reply = input.candidate.dialect.relayReply(body, input.relay)
  if ('fault' in reply) return inDisguise(reply.fault)
  return { kind: 'whole', candidate: input.candidate, body: reply.body, usage: reply.usage }
}

async function openStream(
  input: AttemptInput,
  response: Response,
  timeouts: RouteTimeouts,
  patience: Patience,
): Promise<OpenStream | AttemptFault> {
  const isEventStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  if (!isEventStream || !response.body) return garbled('an answer that is no event stream', patience)
  const relay = input.candidate.dialect.relayStream(input.relay)
  const reader = response.body.getReader()
  let first: Uint8Array = new Uint8Array(0)
  while (!relay.meaningful) {
    const { done, value } = await reader.read()
    const bytes = done ? relay.end() : relay.push(value ?? new Uint8Array(0))
    first = first.length === 0 ? bytes : Buffer.concat([first, bytes])
    // An end without anything before it is an answer in form only.
    if ((done || relay.finished) && !relay.meaningful) return garbled('an empty answer', patience)
    if (relay.fault) {
      patience.abort()
      return inDisguise(relay.fault)
    }
  }
  return { kind: 'stream', candidate: input.candidate, reader, relay, first, timeouts, abort: () => patience.abort() }
}

/** An error that came under a 200: what it says counts, and where it says nothing of the caller it is a fault. */
function inDisguise(fault: ProviderFault): AttemptFault {
  return fault.status === undefined ? attemptFault('garbled', fault) : classifyFault(fault)
}

function garbled(what: string, patience: Patience): AttemptFault {
  patience.abort()
  return attemptFault('garbled', {
    status: undefined,
    type: undefined,
    code: undefined,
    message: what,
    param: undefined,
    details: undefined,
    retryAfterMs: undefined,
  })
}

function timeoutsOf({ candidate, thinks }: AttemptInput): RouteTimeouts {
  return {
    connectMs: 3_000,
    // A model that reasons may be silent for minutes before it says anything.
    firstEventMs: thinks ? 180_000 : 60_000,
    idleMs: 30_000,
    totalMs: 900_000,
    ...candidate.route.timeouts,
  }
}

/** A whole reply has no first event to wait for: some providers hold back even the headers until the end. */
function firstAnswerMs({ envelope, candidate }: AttemptInput, timeouts: RouteTimeouts): number {
  if (envelope.stream) return timeouts.firstEventMs
  return candidate.route.timeouts.totalMs ?? 600_000
}
