// Warnings about what a translation omits or approximates: one per code and field name, with the first place, or one
// per place for some codes. Also JSON pointers, which name such places.

import type { Warning } from '../canonical/translation.ts'

/** Codes with one entry per place, because each place is a separate request, such as a cache breakpoint. */
const namedEach: ReadonlySet<string> = new Set(['cache_mark_dropped'])

export class WarningList {
  readonly #seen = new Set<string>()
  readonly #list: Warning[] = []
  /** Further places of a code come last, because the header holds only twenty warnings. */
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

/** A member name as one step of a JSON pointer. */
export function pointerStep(name: string | number): string {
  return `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** A pointer in the notation of error messages: `/messages/2/content` becomes `messages[2].content`. */
export function paramOf(pointer: string): string {
  return steps(pointer)
    .map((step, i) => (/^\d+$/.test(step) ? `[${step}]` : i === 0 ? step : `.${step}`))
    .join('')
}

/** The last name in a pointer. */
export function fieldName(pointer: string): string {
  return steps(pointer).findLast((step) => !/^\d+$/.test(step)) ?? ''
}

function steps(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
