// Collects what a translation leaves out or approximates: one entry per code and field name, with the first place, or one
// per place for some codes. And JSON pointers, which name such places.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import type { Leftover } from '../canonical/conversation.ts'
import type { Warning } from '../canonical/translation.ts'

/** Codes with an entry for every place: each place is a request of its own, such as to cache up to there. */
const namedEach: ReadonlySet<string> = new Set(['cache_mark_dropped'])

export class WarningList {
  readonly #seen = new Set<string>()
  readonly #list: Warning[] = []
  /** Further places of a code stand behind all others, because a header has room for twenty. */
  readonly #further: Warning[] = []

  add(code: string, field: string): void {
    const key = `${code} ${fieldName(field)}`
    const place = `${code} ${field}`
    if (!this.#seen.has(key)) this.#list.push({ code, field })
    else if (namedEach.has(code) && !this.#seen.has(place)) this.#further.push({ code, field })
    this.#seen.add(key).add(place)
  }

  addAll(warnings: readonly Warning[]): void {
    for (const { code, field } of warnings) this.add(code, field)
  }

  get list(): readonly Warning[] {
    return this.#further.length === 0 ? this.#list : [...this.#list, ...this.#further]
  }
}

/** Fields that no other dialect knows: the first that must be refused ends the rendering, the others are warnings. */
export function judgeLeftovers(leftovers: readonly Leftover[], warnings: WarningList): Failure | undefined {
  for (const { field, refuse, reason } of leftovers) {
    if (refuse)
      return invalidRequest(reason ?? `\`${paramOf(field)}\` is not available for this model.`, paramOf(field))
    const name = fieldName(field)
    warnings.add(/^\w{1,64}$/.test(name) ? `${name}_dropped` : 'field_dropped', field)
  }
  return undefined
}

/** The name of a member as one step of a JSON pointer. */
export function pointerStep(name: string | number): string {
  return `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** A pointer as callers know it from error messages: `/messages/2/content` is `messages[2].content`. */
export function paramOf(pointer: string): string {
  return steps(pointer)
    .map((step, i) => (/^\d+$/.test(step) ? `[${step}]` : i === 0 ? step : `.${step}`))
    .join('')
}

function fieldName(pointer: string): string {
  return steps(pointer).findLast((step) => !/^\d+$/.test(step)) ?? ''
}

function steps(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
