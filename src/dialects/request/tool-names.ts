// Tool names as a target accepts them, with the way back. A legal name stays; any other gets a hash of itself, so that
// what it becomes depends on nothing else in the conversation and two names never become one.

import type { Conversation } from '../canonical/conversation.ts'

/** Every tool name a request speaks of: in its tools, its history and its choice. */
export function toolNamesIn({ tools, turns, toolChoice }: Conversation): string[] {
  const called = turns.flatMap((turn) =>
    turn.role === 'assistant' ? turn.blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.name] : [])) : [],
  )
  const chosen = toolChoice?.kind === 'named' ? [toolChoice.name] : []
  return [...tools.map(({ name }) => name), ...called, ...chosen]
}

export class ToolNames {
  readonly #sent = new Map<string, string>()
  readonly #taken: ReadonlySet<string>
  readonly #pattern: RegExp

  /** `names`: every name the request speaks of. `characters`: the legal ones, as a pattern lists them. */
  constructor(
    names: Iterable<string>,
    private readonly max: number,
    characters = 'A-Za-z0-9_-',
  ) {
    this.#pattern = new RegExp(`^[${characters}]{1,${max}}$`)
    const all = [...names]
    this.#taken = new Set(all.filter((name) => this.#pattern.test(name)))
    for (const name of all) this.#sent.set(name, this.#nameFor(name))
  }

  sent(name: string): string {
    return this.#sent.get(name) ?? this.#nameFor(name)
  }

  /** Sent name → the caller's, where they differ. */
  get undo(): ReadonlyMap<string, string> {
    return new Map([...this.#sent].filter(([name, sent]) => name !== sent).map(([name, sent]) => [sent, name]))
  }

  /** A name for a tool of the gateway's own, which no tool of the caller has. */
  unused(name: string): string {
    let unused = name
    for (let n = 2; this.#taken.has(unused); n++) unused = `${name}_${n}`
    return unused
  }

  #nameFor(name: string): string {
    if (this.#pattern.test(name)) return name
    const hash = new Bun.CryptoHasher('sha256').update(name).digest('hex')
    const readable = name.replaceAll(/[^A-Za-z0-9_-]/g, '_')
    // Eight digits tell names apart; more are only needed if a caller has named a tool just so.
    for (let digits = 8; ; digits += 8) {
      const sent = `${readable.slice(0, this.max - digits - 1)}_${hash.slice(0, digits)}`
      if (!this.#taken.has(sent) || digits >= 32) return sent
    }
  }
}
