// How long a throttled route is to be left alone, where no header says so and the message does: "Please try again in
// 6m0s.", "please try again after 1 seconds". What the caller may have written counts for nothing: it would park the
// route for everybody.

import type { ProviderFault } from '../dialects/canonical/faults.ts'
import { isQuoted } from './fault-words.ts'

/** Of a day, as with headers; what is believed of it is for health to say. */
const waitMaxMs = 24 * 3_600_000

const part = String.raw`(\d{1,9}(?:\.\d{1,12})?)\s?(ms|milliseconds?|h|hours?|m|min|minutes?|s|sec|seconds?)(?![a-z])[ ,]*`
const wait = new RegExp(`(?:try again|retry) (?:in|after) ((?:${part})+)`, 'i')
const parts = new RegExp(part, 'gi')
/** Whoever can have this much quoted has the rest from the provider's own words around it. */
const beginning = /(?:try again|retry) (?:in|after) \d/i

const unitMs: readonly [name: RegExp, ms: number][] = [
  [/^(ms|milli)/i, 1],
  [/^s/i, 1000],
  [/^m/i, 60_000],
  [/^h/i, 3_600_000],
]

/** `sent`: the body that the provider was sent; undefined = nothing of a caller's. */
export function spokenWaitMs({ status, message }: ProviderFault, sent: Uint8Array | undefined): number | undefined {
  const found = status === 429 ? wait.exec(message) : null
  const begun = found && beginning.exec(found[0])
  if (!found || !begun || isQuoted([begun], sent)) return undefined
  const spans = [...(found[1] ?? '').matchAll(parts)].map(([, count, unit = '']) => Number(count) * msOf(unit))
  return Math.min(Math.ceil(spans.reduce((sum, span) => sum + span, 0)), waitMaxMs)
}

function msOf(unit: string): number {
  return unitMs.find(([name]) => name.test(unit))?.[1] ?? 0
}
