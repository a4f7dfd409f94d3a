// When the headers of a streamed answer go out though nothing of it has come: clients give up on a server that is silent,
// and once they have headers they wait for as long as there are signs of life.

import type { Ticker, Watched } from './ticker.ts'

/** Well before the first proxies lose patience. */
const usualMs = 10_000
/** Of the time a client says it has; the rest is for the way. */
const share = 0.8

/** How long nothing meaningful may come. The official clients say, in seconds, how long they wait for headers. */
export function earlyHeadersMs(headers: Headers): number {
  const clientMs = Number(headers.get('x-stainless-timeout') ?? Number.NaN) * 1000
  return clientMs > 0 ? Math.min(usualMs, clientMs * share) : usualMs
}

/** What the promise brings, or `not yet` when it takes longer. */
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
