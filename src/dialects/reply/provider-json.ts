// Reading the JSON of a provider's reply. Nothing in it is trusted: what has another type than expected counts as
// absent.

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** '' for anything but a string. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** {} for anything but an object. */
export function recordOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}

/** undefined if the text is no JSON, or no object. */
export function parseRecord(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
