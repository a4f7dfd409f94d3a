// What a request is answered with, and the headers of answers. An `Answer` is not the runtime's `Response`, whose headers and
// stream cost as much as the rest of a short answer (docs/decisions/0083).

import type { Warning } from '../dialects/canonical/translation.ts'
import type { Dialect, LimitViews } from '../dialects/dialect.ts'
import { type Failure, retryHeaders } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { giveWay } from '../kernel/timers.ts'
import type { Candidate } from '../routing/plan.ts'
import type { HeaderReader, RequestHeaders } from '../wire/http-message.ts'
import type { Exchange } from './exchange.ts'

/** Names are in lower case. A list is sent as one header for each of its values, which only `set-cookie` needs. */
export type AnswerHeaders = Record<string, string | readonly string[]>

/** Where a streamed answer is written to. */
export interface AnswerSink {
  /** A promise if the client's socket takes no more for now; it resolves when everything was taken. No bytes: only the headers. */
  write(bytes: Uint8Array): Promise<void> | undefined
  end(last?: Uint8Array): void
}

export interface AnswerStream {
  /** Writes the answer. Called once, unless the client has left before. */
  run(sink: AnswerSink): Promise<void>
  /** The server calls it when the client disconnects, after the request's own signal. */
  clientLeft(): Promise<void>
}

/** Thrown by a stream that has reported its failure itself: the client must see that its answer is not complete. */
export class BrokenOff extends Error {
  override readonly name = 'BrokenOff'
}

const noBytes = new Uint8Array(0)
const encoder = new TextEncoder()

export class Answer {
  readonly body: Uint8Array | AnswerStream

  /** The server writes the length, the framing and the date. */
  constructor(
    readonly status: number,
    readonly headers: AnswerHeaders,
    body: Uint8Array | AnswerStream | string = noBytes,
  ) {
    this.body = typeof body === 'string' ? encoder.encode(body) : body
  }
}

/** Whether a client takes a compressed body. */
export function acceptsGzip(headers: HeaderReader): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:\s*,|\s*$))/.test(headers.get('accept-encoding') ?? '')
}

// ── Streams ──

/**
 * Pieces of a text as they are read. The next piece is read when the client has taken the last, and other requests have had a
 * turn: neither a slow reader nor a fast one holds up anybody else. Nothing more is read once it has left. `onError` reports what
 * is thrown while they are read.
 */
export function textStream(
  pieces: AsyncIterable<string | Uint8Array>,
  onError: (thrown: unknown) => void,
): AnswerStream {
  const iterator = pieces[Symbol.asyncIterator]()
  return {
    async run(sink) {
      // The first piece may take long.
      await sink.write(noBytes)
      try {
        for (let piece = await iterator.next(); !piece.done; piece = await iterator.next()) {
          await sink.write(typeof piece.value === 'string' ? encoder.encode(piece.value) : piece.value)
          await giveWay()
        }
      } catch (thrown) {
        onError(thrown)
        throw new BrokenOff()
      }
    },
    async clientLeft() {
      await iterator.return?.()
    },
  }
}

/** Events as they happen, until the client leaves or `end` is called. */
export class EventStream implements AnswerStream {
  readonly #waiting: string[] = []
  #hasEnded = false
  #wake: (() => void) | undefined

  /** `waitingMax`: how many texts may wait for a slow reader. */
  constructor(
    private readonly waitingMax: number,
    private readonly onLeft: () => void,
  ) {}

  /** False if too many wait already; then the client misses this one. */
  send(text: string): boolean {
    if (this.#hasEnded || this.#waiting.length >= this.waitingMax) return false
    this.#waiting.push(text)
    this.#wake?.()
    return true
  }

  /** What was sent before is still delivered. */
  end(): void {
    this.#hasEnded = true
    this.#wake?.()
  }

  async run(sink: AnswerSink): Promise<void> {
    for (;;) {
      const text = this.#waiting.shift()
      if (text !== undefined) await sink.write(encoder.encode(text))
      else if (this.#hasEnded) return
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  async clientLeft(): Promise<void> {
    this.end()
    this.onLeft()
  }
}

// ── Headers ──

// They are built from what the gateway knows and never copied from a provider: no cookies, no stale lengths, no account names.

export function requestIdHeaders(id: RequestId): AnswerHeaders {
  return { 'x-request-id': id, 'request-id': id }
}

/** `candidate`: the route that answered or was tried last; undefined = none was tried. */
export function routeHeaders(id: RequestId, candidate: Candidate | undefined, attempts: number): AnswerHeaders {
  const headers = requestIdHeaders(id)
  if (candidate) {
    headers['x-tollgate-provider'] = candidate.provider.id
    headers['x-tollgate-upstream-model'] = headerText(candidate.route.upstreamModel)
    headers['x-tollgate-attempts'] = String(attempts)
  }
  return headers
}

/** Upstream model names may use any script, but header values are Latin-1. */
function headerText(name: string): string {
  return /^[\x20-\x7e]*$/.test(name) ? name : encodeURI(name.toWellFormed())
}

export function answerHeaders(exchange: Exchange, limits: LimitViews): AnswerHeaders {
  const { record, attempts } = exchange
  const headers = routeHeaders(record.id, attempts.tried, Math.max(1, attempts.count))
  if (record.content?.isAnnounced) headers['x-tollgate-content'] = 'exported'
  return withLimits(headers, exchange, limits)
}

/** Adds the remaining limits of the caller, in the headers of its dialect. */
export function withLimits(headers: AnswerHeaders, { surface, clock }: Exchange, limits: LimitViews): AnswerHeaders {
  if (!limits.requests && !limits.tokens && !limits.spend) return headers
  return Object.assign(headers, surface.limitHeaders?.(limits, clock.now()))
}

export function streamHeaders(headers: AnswerHeaders): AnswerHeaders {
  headers['content-type'] = 'text/event-stream; charset=utf-8'
  headers['cache-control'] = 'no-cache, no-transform'
  // Stops nginx and similar proxies from buffering events.
  headers['x-accel-buffering'] = 'no'
  return headers
}

/** The answer to a failure before any part of another one was sent, in the surface's error format. */
export function failureAnswer(
  surface: Pick<Dialect, 'renderFailure'>,
  failure: Failure,
  headers: AnswerHeaders,
  id: RequestId,
): Answer {
  headers['content-type'] = 'application/json'
  if (failure.facts.allow !== undefined) headers.allow = failure.facts.allow
  if (failure.status === 401) {
    headers['www-authenticate'] = 'Bearer realm="Tollgate"'
    // Claude Code would retry for three minutes.
    headers['x-should-retry'] = 'false'
  }
  Object.assign(headers, retryHeaders(failure))
  return new Answer(failure.status, headers, surface.renderFailure(failure, id))
}

/** Clients choose the member names in pointers, so the header is bounded in number and length. */
const warningsMax = 20
const pointerMax = 100

/** `code;field=/pointer, …` */
export function warningsHeader(warnings: readonly Warning[]): string {
  const shown = warnings.slice(0, warningsMax).map(({ code, field }) => {
    const pointer = encodeURI(field.slice(0, pointerMax).toWellFormed()).replace(/[,;]/g, encodeURIComponent)
    return `${code};field=${pointer}`
  })
  if (warnings.length > warningsMax) shown.push(`and_more;count=${warnings.length - warningsMax}`)
  return shown.join(', ')
}

/** With `x-tollgate-strict: true` a request that would lose or approximate something is refused. */
export function isStrict(headers: RequestHeaders): boolean {
  const value = headers.get('x-tollgate-strict')
  return value !== null && value.trim().toLowerCase() === 'true'
}
