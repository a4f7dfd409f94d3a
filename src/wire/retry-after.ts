// How long a server asked us to wait, in whichever spelling it used: milliseconds, seconds, or a date.

import type { HeaderReader } from './http-message.ts'

/** Longer than any limit lasts; who asks for more gets this, and is not taken for one who asked for nothing. */
const waitMaxMs = 24 * 60 * 60 * 1000
/** The smallest wait: callers get whole seconds, and both headers must agree. */
const noWaitMs = 1000
/** A span of 31 years, or the year 2001: a larger number is a date. */
const epochLeastMs = 1e12

export function retryAfterMs(headers: HeaderReader): number | undefined {
  // A date is read against the server's own clock, which it sends along.
  const nowMs = Date.parse(headers.get('date') ?? '')
  const milliseconds = spanOf(Number(headers.get('retry-after-ms') ?? Number.NaN), nowMs)
  if (milliseconds !== undefined) return milliseconds
  const text = headers.get('retry-after')
  if (text === null) return undefined
  return spanOf(Number(text) * 1000, nowMs) ?? waitOf(Date.parse(text) - nowMs)
}

function spanOf(milliseconds: number, nowMs: number): number | undefined {
  const isDate = milliseconds >= epochLeastMs && Number.isFinite(milliseconds)
  return waitOf(isDate ? milliseconds - nowMs : milliseconds)
}

/** undefined for what is no number, and for a time that is over. */
function waitOf(milliseconds: number): number | undefined {
  if (!(milliseconds >= 0)) return undefined
  return milliseconds === 0 ? noWaitMs : Math.min(milliseconds, waitMaxMs)
}
