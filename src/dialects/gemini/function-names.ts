// Names of functions as the provider takes them, with the way back: like tool names elsewhere, and beginning with a
// letter or an underscore.

import { ToolNames } from '../request/tools.ts'

export class FunctionNames {
  /** The caller's name → the same with a legal beginning. */
  readonly #led = new Map<string, string>()
  readonly #names: ToolNames

  /** `names`: every name the request speaks of. */
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

  /** A name for a function of the gateway's own, which no tool of the caller has. */
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
