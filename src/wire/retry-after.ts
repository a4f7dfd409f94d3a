// How long a server asked us to wait, in whichever of the three spellings it used.

const waitMaxMs = 24 * 60 * 60 * 1000

export function retryAfterMs(headers: Headers): number | undefined {
  const milliseconds = Number(headers.get('retry-after-ms') ?? Number.NaN)
  if (isWait(milliseconds)) return milliseconds
  const text = headers.get('retry-after')
  if (text === null) return undefined
  const seconds = Number(text)
  if (isWait(seconds * 1000)) return seconds * 1000
  // A date is read against the server's own clock, which it sends along.
  const until = Date.parse(text) - Date.parse(headers.get('date') ?? '')
  return isWait(until) ? until : undefined
}

function isWait(milliseconds: number): boolean {
  return milliseconds >= 0 && milliseconds <= waitMaxMs
}
