// While a client waits: pauses between attempts, how long it waits, and when a stream's headers are sent early.

import { type AttemptFault, attemptFault } from '../routing/faults.ts'
import type { Ticker, WaitingClient, Watched } from './deadline.ts'

/** Waits between two attempts. Returns a fault when the client leaves or the gateway shuts down before the end. */
export async function pauseBetweenAttempts(
  milliseconds: number,
  { clientGone, connection }: WaitingClient,
  ticker: Ticker,
): Promise<AttemptFault | undefined> {
  const over = Promise.withResolvers<AttemptFault | undefined>()
  const watched: Watched = {
    seat: -1,
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
/** The share of the client's timeout that is used; the rest covers the network. */
const clientTimeoutShare = 0.8

/**
 * In seconds. The JavaScript clients send the first; openai for Python 2.54 and 3.49 only the second; anthropic for
 * Python 1.17 and 2.8 both, the first often as `NOT_GIVEN` (2026-11).
 */
const timeoutHeaders = ['x-stainless-timeout', 'x-stainless-read-timeout'] as const

/**
 * How long a stream may produce nothing before its headers are sent. Clients give up on a silent server; once they have
 * headers, they wait as long as keep-alives arrive.
 */
export function earlyHeadersMs(headers: Headers): number {
  return Math.min(earlyHeadersMaxMs, clientTimeoutMs(headers) ?? earlyHeadersMaxMs)
}

/** How long the client waits for headers, less a share for the network; undefined = it does not say. The shortest counts. */
export function clientTimeoutMs(headers: Headers): number | undefined {
  let shortestMs: number | undefined
  for (const name of timeoutHeaders) {
    const timeoutMs = Number(headers.get(name) ?? Number.NaN) * 1000
    if (timeoutMs > 0) shortestMs = Math.min(shortestMs ?? Number.POSITIVE_INFINITY, timeoutMs * clientTimeoutShare)
  }
  return shortestMs
}

/** The promise's value, or `not yet` at the deadline. */
export async function before<Value>(
  deadlineMs: number,
  promise: Promise<Value>,
  ticker: Ticker,
): Promise<Value | 'not yet'> {
  const late = Promise.withResolvers<'not yet'>()
  const watched: Watched = { seat: -1, tick: (nowMs) => (nowMs >= deadlineMs ? late.resolve('not yet') : undefined) }
  ticker.watch(watched)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    ticker.unwatch(watched)
  }
}
