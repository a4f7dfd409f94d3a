// Deadlines: one shared timer, the time limits of an attempt, what ends it, and how long a client waits.

import type { RouteTimeouts } from '../catalog/model.ts'
import type { ProviderFault } from '../dialects/canonical/faults.ts'
import type { Clock } from '../kernel/clock.ts'
import type { CancelListener, CancelSignal, ConnectionWatch } from '../providers/provider.ts'
import { requestTotalMs } from '../routing/failover.ts'
import { type AttemptFault, attemptFault } from '../routing/faults.ts'
import type { Health } from '../routing/health.ts'
import type { Candidate } from '../routing/plan.ts'
import type { AttemptRecord } from '../telemetry/request-record.ts'
import type { RequestHeaders } from '../wire/http-message.ts'

// ── The ticker ──

export interface Watched {
  /** The index in the ticker's list, -1 while not watched. Only the ticker writes it. */
  tickerIndex: number
  tick(monotonicMs: number): void
  /** The gateway is stopping and waits no longer. */
  expire?(): void
}

export type Ticker = ReturnType<typeof createTicker>

const tickMs = 100
/** A tick this late means that the whole process was paused: data that arrived meanwhile is still unread. */
const pausedMs = 1_000

/**
 * One timer for the deadlines of all running requests. With a timer each, thousands of streams would arm and clear one
 * for every event; here each only notes when it last saw one and is checked ten times a second.
 * `onDefect`: an error in one tick must not stop the others.
 */
export function createTicker(clock: Clock, onDefect: (error: unknown) => void) {
  // A list whose last entry fills a freed place. A set would hash every request and be rescanned by every collection.
  const all: Watched[] = []
  let tickedMs = clock.monotonicMs()
  let nowMs = tickedMs
  let isSkipping = false
  const timer = setInterval(() => {
    const passedMs = clock.monotonicMs() - tickedMs
    nowMs = tickedMs += passedMs
    // After a pause, skip one tick so that waiting data is read before silence is judged.
    isSkipping = passedMs > pausedMs && !isSkipping
    if (isSkipping) return
    // Backwards: one that unwatches during its tick is replaced by the last, which has been ticked already.
    for (let index = all.length - 1; index >= 0; index--) {
      try {
        all[index]?.tick(nowMs)
      } catch (error) {
        onDefect(error)
      }
    }
  }, tickMs)
  timer.unref()
  /** Ends everything that is still running. */
  const expireAll = (): void => {
    for (const watched of [...all]) watched.expire?.()
  }
  return {
    /** The time of the last tick or `watch`: precise enough for everything that ticks decide, and free to read. */
    get nowMs(): number {
      return nowMs
    },
    watch(watched: Watched): void {
      nowMs = clock.monotonicMs()
      watched.tickerIndex = all.length
      all.push(watched)
    },
    unwatch(watched: Watched): void {
      const { tickerIndex: index } = watched
      if (index < 0) return
      watched.tickerIndex = -1
      const last = all.pop()
      if (last === undefined || last === watched) return
      last.tickerIndex = index
      all[index] = last
    },
    expireAll,
    /** Stops the timer too. */
    close(): void {
      clearInterval(timer)
      expireAll()
    },
  }
}

// ── Limits of one attempt ──

/**
 * For the first event of the last route. A local model may take minutes for a long prompt, and no other route is left
 * that could answer sooner. Together with a silence in mid-answer it fits into the 15 minutes of a stream.
 */
const firstEventMaxMs = 600_000
/**
 * For silence in mid-answer, of the connection and of the answer itself. Hosts that buffer tool arguments pause for
 * minutes, and after content no other route can take over.
 */
const silenceMaxMs = 300_000

/** How long an attempt may take. Its clock starts with the attempt; the request's deadline is shared by all attempts. */
export interface AttemptTimes {
  /** The route's timeouts. */
  readonly timeouts: RouteTimeouts
  /** The route's total timeout, or what is left of the request's deadline where that is less. */
  readonly leftMs: number
}

export function attemptTimes(
  { model, route, health }: Candidate,
  { firstEventLimitMs }: Pick<Health, 'firstEventLimitMs'>,
  /** `earlier`: attempts of the same request. */
  { isStreamed, isLast, earlier }: { isStreamed: boolean; isLast: boolean; earlier: readonly AttemptRecord[] },
): AttemptTimes {
  // A reasoning model may be silent for minutes before its first event.
  const kind = model.tags.includes('reasoning') ? 'reasoning' : 'ordinary'
  const defaultMs = requestTotalMs(isStreamed)
  const { connectMs, firstEventMs, idleMs, contentIdleMs, totalMs = defaultMs } = route.timeouts
  // A route with more than the default time extends the request's deadline too.
  const requestLeftMs = Math.max(defaultMs, totalMs) - spentMs(earlier)
  return {
    timeouts: {
      connectMs: connectMs ?? 3_000,
      firstEventMs: firstEventMs ?? (isLast ? firstEventMaxMs : firstEventLimitMs(health, kind)),
      idleMs: idleMs ?? silenceMaxMs,
      contentIdleMs: contentIdleMs ?? silenceMaxMs,
      totalMs,
    },
    leftMs: Math.min(totalMs, requestLeftMs),
  }
}

/**
 * Time until the reply must begin. Without a stream upstream, some hosts hold back even the headers until the end, so the
 * time to generate the reply (`Lane.generationMs`) comes on top.
 */
export function firstReplyMs({ timeouts, leftMs }: AttemptTimes, generationMs: number): number {
  return Math.min(timeouts.firstEventMs + generationMs, leftMs)
}

/** A timeout by the request's deadline, which earlier attempts used up, is not the route's fault. */
export function explainTimeout(fault: AttemptFault, tookMs: number, { timeouts, leftMs }: AttemptTimes): AttemptFault {
  const isRequestDeadline = leftMs < timeouts.totalMs && tookMs >= leftMs
  return fault.class === 'timed out' && isRequestDeadline ? attemptFault('had too little time') : fault
}

/** From the start of the first attempt to the end of the last, so that parallel attempts count once. */
function spentMs(attempts: readonly AttemptRecord[]): number {
  if (attempts.length === 0) return 0
  let firstMs = Number.POSITIVE_INFINITY
  let lastMs = 0
  for (const { startMs = 0, ms } of attempts) {
    firstMs = Math.min(firstMs, startMs)
    lastMs = Math.max(lastMs, startMs + ms)
  }
  return lastMs - firstMs
}

// ── Ending an attempt ──

/** Well below every limit on silent connections. */
const keepOpenAfterMs = 5_000

/** Every attempt has one: an AbortController with one listener costs 3 µs, this almost nothing. */
export class Cancellation implements CancelSignal {
  aborted = false
  reason: unknown
  /** Nearly always there is only one. */
  #first: CancelListener | undefined
  #others: CancelListener[] | undefined

  abort(): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = new DOMException('The operation was aborted.', 'AbortError')
    const listeners = [...(this.#first ? [this.#first] : []), ...(this.#others ?? [])]
    this.#first = this.#others = undefined
    for (const listener of listeners) typeof listener === 'function' ? listener() : listener.handleEvent()
  }

  addEventListener(_type: 'abort', listener: CancelListener): void {
    if (this.aborted) return
    if (!this.#first && !this.#others) this.#first = listener
    else if (this.#others) this.#others.push(listener)
    else this.#others = [listener]
  }

  removeEventListener(_type: 'abort', listener: CancelListener): void {
    if (this.#first === listener) this.#first = undefined
    else this.#others = this.#others?.filter((each) => each !== listener)
  }
}

/** The client that waits for an attempt. */
export interface WaitingClient {
  readonly clientGone: CancelSignal
  readonly connection: { keepOpen(): void }
}

/**
 * Ends an attempt when its time is up, no connection is made, the client has gone, another route has answered, or the
 * gateway shuts down. It remembers which, so that only real faults are blamed on the provider.
 */
export class AttemptDeadline implements Watched, ConnectionWatch {
  tickerIndex = -1
  /** An open stream keeps this and, through it, nothing else of the attempt. */
  readonly signal = new Cancellation()
  #idleMs = Number.POSITIVE_INFINITY
  /** Start of the current silence; set at the first tick after data. */
  #silentSinceMs: number | undefined
  #endedBy: 'timeout' | 'connect timeout' | 'shutdown' | undefined
  /** The attempt has ended. If the client leaves after that, the server tells the answer's stream. */
  #isOver = false
  #isConnecting = false
  /** Set at the first tick after the connection attempt began. */
  #connectingSinceMs: number | undefined

  /** `superseded` aborts when another route has answered. */
  constructor(
    private readonly startedMs: number,
    private limitMs: number,
    private readonly client: WaitingClient,
    private readonly superseded?: AbortSignal,
    private readonly connectMs = Number.POSITIVE_INFINITY,
  ) {
    superseded?.addEventListener('abort', this)
    if (client.clientGone.aborted) this.abort()
    else client.clientGone.addEventListener('abort', this)
  }

  abort(): void {
    this.signal.abort()
  }

  /** The client has gone, or another route has answered. */
  handleEvent(): void {
    if (!this.#isOver) this.abort()
  }

  tick(monotonicMs: number): void {
    const tookMs = monotonicMs - this.startedMs
    if (tookMs > keepOpenAfterMs) this.client.connection.keepOpen()
    this.#silentSinceMs ??= monotonicMs
    if (tookMs >= this.limitMs || monotonicMs - this.#silentSinceMs > this.#idleMs) this.#endBy('timeout')
    if (!this.#isConnecting) return
    this.#connectingSinceMs ??= monotonicMs
    if (monotonicMs - this.#connectingSinceMs >= this.connectMs) this.#endBy('connect timeout')
  }

  connecting(): void {
    this.#isConnecting = true
  }

  connected(): void {
    this.#isConnecting = false
  }

  /** Nothing was sent yet. */
  get isConnecting(): boolean {
    return this.#isConnecting
  }

  /** A part of the answer arrived and more is expected: from now on the idle and total limits apply. */
  gotBytes({ timeouts, leftMs }: AttemptTimes): void {
    this.#silentSinceMs = undefined
    this.#idleMs = timeouts.idleMs
    this.limitMs = leftMs
  }

  /** Shortens the remaining time to `leftMs`. */
  shortenTo(leftMs: number, monotonicMs: number): void {
    this.limitMs = Math.min(this.limitMs, monotonicMs - this.startedMs + leftMs)
  }

  expire(): void {
    this.#endBy('shutdown')
  }

  /** The fault: why the attempt was aborted, or `seen` on the wire if it was not. */
  fault(seen: 'unreachable' | 'broken' | 'garbled', said?: ProviderFault): AttemptFault {
    const notNeeded = this.#notNeeded()
    if (notNeeded) return notNeeded
    if (this.#endedBy === 'connect timeout') return attemptFault('unreachable')
    return this.#endedBy === 'timeout' ? attemptFault('timed out') : attemptFault(seen, said)
  }

  /** The fault of an attempt that was aborted for a reason other than the provider's behaviour. */
  abortedByUs(): AttemptFault | undefined {
    return this.signal.aborted ? this.#notNeeded() : undefined
  }

  /** The attempt is over. Its listeners stay until the request ends: removing one costs as much as adding it. */
  end(): void {
    this.#isOver = true
  }

  #notNeeded(): AttemptFault | undefined {
    if (this.superseded?.aborted) return attemptFault('superseded')
    if (this.client.clientGone.aborted) return attemptFault('client left')
    return this.#endedBy === 'shutdown' ? attemptFault('shut down') : undefined
  }

  #endBy(reason: 'timeout' | 'connect timeout' | 'shutdown'): void {
    if (this.signal.aborted) return
    this.#endedBy = reason
    this.signal.abort()
  }
}

// ── While a client waits ──

/** Waits between two attempts. Returns a fault when the client leaves or the gateway shuts down before the end. */
export async function pauseBetweenAttempts(
  milliseconds: number,
  { clientGone, connection }: WaitingClient,
  ticker: Ticker,
): Promise<AttemptFault | undefined> {
  const over = Promise.withResolvers<AttemptFault | undefined>()
  const watched: Watched = {
    tickerIndex: -1,
    tick(nowMs) {
      connection.keepOpen()
      if (clientGone.aborted) over.resolve(attemptFault('client left'))
      else if (nowMs >= untilMs) over.resolve(undefined)
    },
    expire: () => over.resolve(attemptFault('shut down')),
  }
  ticker.watch(watched)
  const untilMs = ticker.nowMs + milliseconds
  try {
    return await over.promise
  } finally {
    ticker.unwatch(watched)
  }
}

/** Well before the first proxies time out. */
const earlyHeadersMaxMs = 10_000
/**
 * While routes fail: beyond the time of the retries, and before the first proxies time out, after 30 s. Clients retry a
 * status, but not an error inside a stream.
 */
const failingHeadersMaxMs = 25_000
/** The share of the client's timeout that is used; the rest covers the network. */
const clientTimeoutShare = 0.8
/** While routes fail: the retries end at the share above, and their result needs a moment. */
const failingTimeoutShare = 0.9

/**
 * In seconds. OpenAI's and Anthropic's JavaScript clients send the first; openai for Python 2.54 and 3.49 only the second;
 * anthropic for Python 1.17 and 2.8 both, the first often as `NOT_GIVEN`; Google's clients the third (2026-11).
 */
const timeoutHeaders = ['x-stainless-timeout', 'x-stainless-read-timeout', 'x-server-timeout'] as const

/**
 * How long a stream may produce nothing before its headers are sent. Clients give up on a silent server; once they have
 * headers, they wait as long as keep-alives arrive.
 */
export function earlyHeadersMs(headers: RequestHeaders, { areRoutesFailing = false } = {}): number {
  return areRoutesFailing
    ? Math.min(failingHeadersMaxMs, shareOfTimeout(headers, failingTimeoutShare))
    : Math.min(earlyHeadersMaxMs, shareOfTimeout(headers, clientTimeoutShare))
}

/** How long the client still waits for headers, less a share for the network; undefined = it does not say. */
export function clientTimeoutMs(headers: RequestHeaders, waitedMs = 0): number | undefined {
  const ms = shareOfTimeout(headers, clientTimeoutShare) - waitedMs
  return ms === Number.POSITIVE_INFINITY ? undefined : ms
}

/** For money that running requests hold, of clients that do not say how long they wait. */
const usualPatienceMs = 5_000
/** The first proxies time out after 30 s. */
const patienceMaxMs = 15_000
/** The rest is for the answer. */
const patienceShare = 0.3

/** How long a request may wait for money that running requests give back. */
export function patienceMs(headers: RequestHeaders): number {
  const announcedMs = shareOfTimeout(headers, patienceShare)
  return announcedMs === Number.POSITIVE_INFINITY ? usualPatienceMs : Math.min(patienceMaxMs, announcedMs)
}

/** In milliseconds, of the shortest timeout that the client announces; infinity = it announces none. */
function shareOfTimeout(headers: RequestHeaders, share: number): number {
  let shortestMs = Number.POSITIVE_INFINITY
  for (const name of timeoutHeaders) {
    const timeoutMs = Number(headers.get(name) ?? Number.NaN) * 1000
    if (timeoutMs > 0) shortestMs = Math.min(shortestMs, timeoutMs * share)
  }
  return shortestMs
}

/** The promise's value, or `not yet` at the deadline. */
export async function untilDeadline<Value>(
  deadlineMs: number,
  promise: Promise<Value>,
  ticker: Ticker,
): Promise<Value | 'not yet'> {
  const late = Promise.withResolvers<'not yet'>()
  const watched: Watched = {
    tickerIndex: -1,
    tick: (nowMs) => (nowMs >= deadlineMs ? late.resolve('not yet') : undefined),
  }
  ticker.watch(watched)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    ticker.unwatch(watched)
  }
}
