// Reads members of JSON that may not have the expected form, such as the answer of a gateway of another version. Missing
// members are shown as a dash.

export type JsonObject = Readonly<Record<string, unknown>>

export function objectOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}

export function objectsOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(objectOf) : []
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
