// How long a server asked us to wait, in whichever of the three spellings it used.

/** Longer than any limit lasts; who asks for more gets this, and is not taken for one who asked for nothing. */
const waitMaxMs = 24 * 60 * 60 * 1000
/** What a wait of nothing comes to: callers are told whole seconds, and must read the same in both headers. */
const noWaitMs = 1000

export function retryAfterMs(headers: Headers): number | undefined {
  const milliseconds = waitOf(Number(headers.get('retry-after-ms') ?? Number.NaN))
  if (milliseconds !== undefined) return milliseconds
  const text = headers.get('retry-after')
  if (text === null) return undefined
  // A date is read against the server's own clock, which it sends along.
  return waitOf(Number(text) * 1000) ?? waitOf(Date.parse(text) - Date.parse(headers.get('date') ?? ''))
}

/** undefined for what is no number, and for a time that is over. */
function waitOf(milliseconds: number): number | undefined {
  if (!(milliseconds >= 0)) return undefined
  return milliseconds === 0 ? noWaitMs : Math.min(milliseconds, waitMaxMs)
}
