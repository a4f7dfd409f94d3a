// Times in an address: anybody can write there, so what is none is left out instead of asked for.

export function isTime(text: string): boolean {
  return !Number.isNaN(Date.parse(text))
}

/** As the API takes it; empty for what is none. */
export function timeOf(text: string): string {
  return isTime(text) ? new Date(text).toISOString() : ''
}
