// The findings of a grammar checker, and the reading of untrusted JSON that all of them share.

export interface Violation {
  /** A short name for the rule, as in `tool-index`. */
  readonly rule: string
  /** The place of the record in the stream, from 0; undefined: the reply as a whole. */
  readonly at: number | undefined
  readonly what: string
}

export type Members = Readonly<Record<string, unknown>>

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function membersOf(value: unknown): Members {
  return isMembers(value) ? value : {}
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Whether every string in the value is Unicode: half a character is not. */
export function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (Array.isArray(value)) return value.every(isWellFormed)
  return isMembers(value) ? Object.entries(value).flat().every(isWellFormed) : true
}

/** dialect: what official clients need of any endpoint. own: also what Tollgate promises for its own replies. */
export type Level = 'dialect' | 'own'

/** Gathers findings; a rule is checked by a condition that must hold. */
export class Findings {
  readonly list: Violation[] = []
  /** The record at hand. */
  at: number | undefined

  constructor(readonly level: Level) {}

  expect(isHeld: boolean, rule: string, what: string): void {
    if (!isHeld) this.list.push({ rule, at: this.at, what })
  }

  /** A rule of our own: others may do it differently without harm to clients. */
  expectOfUs(isHeld: boolean, rule: string, what: string): void {
    if (this.level === 'own') this.expect(isHeld, rule, what)
  }
}
