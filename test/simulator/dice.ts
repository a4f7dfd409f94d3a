// Chance that follows from a seed: the same seed throws the same numbers on every machine. Never for anything but tests.

export class Dice {
  #state: number

  constructor(seed: number) {
    // Neighbouring seeds must not begin alike.
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(seed + 1, 0xc2b2ae35)
  }

  /** In [0, 1). The generator is mulberry32: 32 bits of state are plenty for one small world. */
  unit(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  chance(share: number): boolean {
    return this.unit() < share
  }

  /** Both ends included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.unit() * (most - least + 1))
  }

  pick<T>(list: readonly T[]): T {
    const picked = list[Math.floor(this.unit() * list.length)]
    if (picked === undefined) throw new Error('nothing to pick from')
    return picked
  }
}
