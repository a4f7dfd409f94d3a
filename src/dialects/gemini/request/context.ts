// Shared by the request renderers: the rendering's state, and what follows from a target's rules.

import type { TargetRules } from '../../canonical/target-rules.ts'
import type { SchemaBudget } from '../../request/schema.ts'
import { ToolNames } from '../../request/tools.ts'
import type { WarningList } from '../../request/warnings.ts'

export interface Rendering {
  readonly rules: TargetRules
  readonly warnings: WarningList
  readonly names: FunctionNames
  readonly schemas: SchemaBudget
}

/**
 * Whether the target takes a thinking level, introduced with Gemini 3. Older models take a budget (`thinking` includes
 * enabled) or do not think (`efforts` is empty). Gemini 3 brought three more changes that have no rules of their own:
 * calls in the history must be signed, JSON output and functions can be combined, and media are accepted in function
 * responses, unless a rule says otherwise.
 */
export function thinksByLevel({ efforts, thinking }: TargetRules): boolean {
  return !thinking?.includes('enabled') && (efforts === undefined || efforts.length > 0)
}

export function takesMediaInResults(rules: TargetRules): boolean {
  return rules.mediaInToolResults ?? thinksByLevel(rules)
}

/** Some hosts refuse ids and match by call order; their rule is a maximum length of 0. */
export function takesIds({ toolIdMax }: TargetRules): boolean {
  return toolIdMax !== 0
}

// Function names in the form the provider accepts: like tool names elsewhere, but starting with a letter or an
// underscore.

export class FunctionNames {
  /** The caller's name → the same with a legal first character. */
  readonly #led = new Map<string, string>()
  readonly #names: ToolNames

  /** `names`: every name in the request. */
  constructor(names: readonly string[], max: number) {
    const all = new Set(names)
    for (const name of all) this.#led.set(name, led(name, all))
    this.#names = new ToolNames(this.#led.values(), max)
  }

  sent(name: string): string {
    return this.#names.sent(this.#led.get(name) ?? led(name, new Set()))
  }

  /** Sent name → the caller's, where they differ. */
  get callerNames(): ReadonlyMap<string, string> {
    const pairs = [...this.#led.keys()].map((name) => [this.sent(name), name] as const)
    return new Map(pairs.filter(([sent, name]) => sent !== name))
  }

  /** A name for a function that the gateway adds, not used by any of the caller's tools. */
  unused(name: string): string {
    return this.#names.unused(name)
  }
}

function led(name: string, taken: ReadonlySet<string>): string {
  if (/^[A-Za-z_]/.test(name)) return name
  let longer = `_${name}`
  while (taken.has(longer)) longer = `_${longer}`
  return longer
}
