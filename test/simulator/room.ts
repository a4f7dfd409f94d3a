// How much is free in a wallet or under a cap, as far as anyone can know from the answers alone: a sum of intervals, one for
// each request and top-up. Where nothing is on its way the interval is a point, and the ledger must agree exactly.

interface Part {
  readonly low: bigint
  readonly high: bigint
}

/** Asks for room; remembers the least and the most there can have been while it was on its way. */
export interface Demand {
  /** The part that is the asker's own and does not count. */
  readonly part: string
  low: bigint
  high: bigint
}

const nothing: Part = { low: 0n, high: 0n }

export class Room {
  readonly name: string
  /** Free at least, and at most. */
  low = 0n
  high = 0n
  readonly #parts = new Map<string, Part>()
  readonly #demands = new Set<Demand>()

  constructor(name: string) {
    this.name = name
  }

  set(part: string, low: bigint, high: bigint): void {
    const before = this.#parts.get(part) ?? nothing
    if (before.low === low && before.high === high) return
    this.low += low - before.low
    this.high += high - before.high
    this.#parts.set(part, { low, high })
    for (const demand of this.#demands) this.#widen(demand)
  }

  demand(part: string): Demand {
    const { low, high } = this.#parts.get(part) ?? nothing
    const demand: Demand = { part, low: this.low - low, high: this.high - high }
    this.#demands.add(demand)
    return demand
  }

  end(demand: Demand): void {
    this.#demands.delete(demand)
  }

  #widen(demand: Demand): void {
    const { low, high } = this.#parts.get(demand.part) ?? nothing
    if (this.low - low < demand.low) demand.low = this.low - low
    if (this.high - high > demand.high) demand.high = this.high - high
  }
}
