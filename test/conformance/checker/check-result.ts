// The result of a check, and the small judgements that all checks share.

import type { Exchange } from './endpoint.ts'
import { membersOf, type Violation } from './violation.ts'

export interface CheckResult {
  /** skipped: the endpoint or the model gave nothing to judge. */
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** The observation, in a few words; of a failure, everything that is wrong. */
  readonly notes: readonly string[]
}

export const passed = (...notes: string[]): CheckResult => ({ outcome: 'passed', notes })
export const failed = (...notes: string[]): CheckResult => ({ outcome: 'failed', notes })
export const skipped = (...notes: string[]): CheckResult => ({ outcome: 'skipped', notes })

/** Passed if nothing is wrong. */
export function judged(faults: readonly string[], seen: string): CheckResult {
  return faults.length > 0 ? failed(...faults) : passed(seen)
}

/** More of the same kind tell nothing new. */
const violationsMax = 3

export function violationNotes(violations: readonly Violation[]): string[] {
  const seen = new Set<string>()
  const notes: string[] = []
  for (const { rule, at, what } of violations) {
    if (seen.has(rule)) continue
    seen.add(rule)
    notes.push(`${rule}: ${shortened(what)}${at === undefined ? '' : ` (record ${at + 1})`}`)
  }
  const more = notes.length - violationsMax
  return more > 0 ? [...notes.slice(0, violationsMax), `and ${more} more rules are broken`] : notes
}

const shownMax = 100

export function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > shownMax ? `${line.slice(0, shownMax)}…` : line
}

/** The status and what was said with it: the message of an error, or the body as it is. */
export function answered({ status, text, json }: Exchange): string {
  const { message } = membersOf(membersOf(json).error)
  return `${status}: ${shortened(typeof message === 'string' ? message : text) || '(nothing)'}`
}
