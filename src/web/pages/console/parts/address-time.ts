// Times in an address: anybody can write there, so what is none is left out instead of asked for.

/** The API takes times from 1970 to 9999. */
export function isTime(text: string): boolean {
  const at = Date.parse(text)
  return at >= 0 && at <= Date.parse('9999-12-31T23:59:59.999Z')
}

/** As the API takes it; empty for what is none. */
export function timeOf(text: string): string {
  return isTime(text) ? new Date(text).toISOString() : ''
}
