// Reading JSON that anybody may have written. Nothing in it is trusted: what has another type than expected counts as
// absent.

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** '' for anything but a string. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Longer than any type, code or name of a field that is known. */
const wordLengthMax = 256

/** A word for programs; what is longer is none, and is not cut, since what is left of a secret would go unnoticed. */
export function wordOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= wordLengthMax ? value : undefined
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
