// Tool-call ids as a target accepts them. What an id becomes depends only on the calls before it, so that a
// conversation that grows keeps the ids it was sent with, without any memory here.

export interface ToolIdRule {
  /** What an id must match as a whole. */
  readonly pattern: RegExp
  readonly max: number
}

/** Gives ids out in the order of the calls; none twice. */
export class ToolIds {
  readonly #used = new Set<string>()
  /** By turn and id, how many calls came with it. */
  readonly #repeated = new Map<string, number>()

  constructor(private readonly rule: ToolIdRule) {}

  /** The id a call goes out with; `turn` tells calls apart that came with the same id. */
  take(id: string, turn: number): string {
    let taken = this.#fits(id) ? id : this.#shaped(id, id)
    if (this.#used.has(taken)) {
      const key = `${turn} ${id}`
      let n = this.#repeated.get(key) ?? 0
      for (; this.#used.has(taken); n++) taken = this.#shaped(`${id}_${turn}${n === 0 ? '' : `_${n}`}`, id)
      this.#repeated.set(key, n)
    }
    this.#used.add(taken)
    return taken
  }

  #fits(id: string): boolean {
    return id.length <= this.rule.max && this.rule.pattern.test(id)
  }

  /** `wanted` itself where it fits; else what is left of it with a hash; else, where ids are short, a hash alone. */
  #shaped(wanted: string, original: string): string {
    if (wanted !== original && this.#fits(wanted)) return wanted
    const hash = new Bun.CryptoHasher('sha256').update(wanted).digest('hex')
    const readable = `${wanted.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, Math.max(0, this.rule.max - 9))}_${hash.slice(0, 8)}`
    return this.#fits(readable) ? readable : hash.slice(0, this.rule.max)
  }
}
