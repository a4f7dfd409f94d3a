// Reading JSON that anybody may have written. Nothing in it is trusted: what has another type than expected counts as
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

/** undefined stands for no JSON, which has no such value. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** undefined if the text is no JSON, or no object. */
export function parseRecord(text: string): Record<string, unknown> | undefined {
  const value = parseJson(text)
  return isRecord(value) ? value : undefined
}
