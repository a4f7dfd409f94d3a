// What a series counts with: plain numbers that are added to as requests end.

export class Counter {
  value = 0

  add(amount: number): void {
    this.value += amount
  }
}

/** A fixed set of upper bounds, ascending; the last bucket has none. */
export class Histogram {
  readonly counts: number[]
  sum = 0

  constructor(readonly bounds: readonly number[]) {
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let at = 0
    // A bound belongs to its own bucket: `le` is "less or equal".
    while (at < this.bounds.length && value > (this.bounds[at] ?? 0)) at++
    this.counts[at] = (this.counts[at] ?? 0) + 1
    this.sum += value
  }

  get count(): number {
    let total = 0
    for (const count of this.counts) total += count
    return total
  }
}
