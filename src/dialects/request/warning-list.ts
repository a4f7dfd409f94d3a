// Collects what a translation leaves out or approximates: one entry per code and field name, with the first place. And
// JSON pointers, which name such places.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import type { Leftover } from '../canonical/conversation.ts'
import type { Warning } from '../canonical/translation.ts'

export class WarningList {
  readonly #seen = new Set<string>()
  readonly #list: Warning[] = []

  add(code: string, field: string): void {
    const key = `${code} ${fieldName(field)}`
    if (this.#seen.has(key)) return
    this.#seen.add(key)
    this.#list.push({ code, field })
  }

  addAll(warnings: readonly Warning[]): void {
    for (const { code, field } of warnings) this.add(code, field)
  }

  get list(): readonly Warning[] {
    return this.#list
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
