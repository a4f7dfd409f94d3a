// Reading JSON that anybody may have written: narrowing without trust, and writing that cannot throw.

export type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An own member; `constructor` and its like are not members just because every object inherits them. */
export function member(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

export function textMember(value: unknown, key: string): string | undefined {
  const found = member(value, key)
  return typeof found === 'string' ? found : undefined
}

export function listMember(value: unknown, key: string): readonly unknown[] {
  const found = member(value, key)
  return Array.isArray(found) ? found : []
}

// The parser takes any depth; the writer runs out of stack, and at 50,000 levels needs three seconds to find that out.
const depthMax = 200

/** Empty for what is nested too deep. */
export function writeJson(value: unknown): string {
  return isDeeperThan(value, depthMax) ? '' : (JSON.stringify(value) ?? '')
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth === 0 || Object.values(value).some((inner) => isDeeperThan(inner, depth - 1))
}

/** What a provider's error message calls the type of a value. */
export function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal'
  return `a ${typeof value}`
}
