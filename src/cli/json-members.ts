// Reads members of the gateway's JSON answers one by one. A gateway of another version may leave something out or add to
// it; a command shows what it knows and a dash for the rest.

export type JsonObject = Readonly<Record<string, unknown>>

export function objectOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function objectsOf(value: unknown): readonly JsonObject[] {
  return listOf(value).map(objectOf)
}

export function textsOf(value: unknown): readonly string[] {
  return listOf(value).filter((item) => typeof item === 'string')
}

export function textAt(object: JsonObject, name: string): string | undefined {
  const value = object[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function numberAt(object: JsonObject, name: string): number | undefined {
  const value = object[name]
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** For a cell of a table. */
export function shownAt(object: JsonObject, name: string): string {
  const value = object[name]
  return value === null || value === undefined || value === '' ? '–' : String(value)
}
