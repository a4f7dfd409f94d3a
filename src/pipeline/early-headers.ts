// When the headers of a streamed answer go out though nothing of it has come: clients give up on a server that is silent,
// and once they have headers they wait for as long as there are signs of life.

import type { Ticker, Watched } from './ticker.ts'

/** Well before the first proxies lose patience. */
const usualMs = 10_000
/** Of the time a client says it has; the rest is for the way. */
const share = 0.8

/**
 * In seconds. Those in JavaScript send the first; openai for Python 2.54 and 3.49 the second alone; anthropic for Python
 * 1.17 and 2.8 both, the first often as `NOT_GIVEN` (2026-11).
 */
const announced = ['x-stainless-timeout', 'x-stainless-read-timeout'] as const

/** How long nothing meaningful may come before the headers of a stream go out. */
export function earlyHeadersMs(headers: Headers): number {
  return Math.min(usualMs, patienceMs(headers) ?? usualMs)
}

/** How long the client waits for headers, less the time on the way; undefined = it does not say. The shortest counts. */
export function patienceMs(headers: Headers): number | undefined {
  let patience: number | undefined
  for (const name of announced) {
    const clientMs = Number(headers.get(name) ?? Number.NaN) * 1000
    if (clientMs > 0) patience = Math.min(patience ?? Number.POSITIVE_INFINITY, clientMs * share)
  }
  return patience
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
