// Any well-formed date is taken from callers; a provider gets the one it knows, so that an accepted date is never
// refused further on.

/** Versions that Anthropic serves for messages, ascending (docs of 2026-11). */
const knownVersions = ['2023-06-01', '2026-10-21']

export function isVersionDate(text: string): boolean {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)
  if (!match) return false
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  return year >= 1 && day >= 1 && day <= daysIn(year, month)
}

/** 0 for what is no month. */
function daysIn(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0
}

/** The latest version known that is not after the caller's. */
export function upstreamVersion(wanted: string): string {
  let chosen = knownVersions[0] as string
  for (const version of knownVersions) if (version <= wanted) chosen = version
  return chosen
}
