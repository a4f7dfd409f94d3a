// What was spent in one rolling window, by the minute of the charge. A charge counts until it is as old as the window, and at
// most one minute longer, so that no interval of the window's length ever has more than the limit. Amounts are only added up:
// a clock that is set back brings charges back into the window, and never makes a sum negative.

export class MinuteSums {
  /** Ascending. */
  readonly #minutes: number[] = []
  readonly #amounts: bigint[] = []
  /** Those from here on count. */
  #from = 0
  #sum = 0n
  #start = 0

  constructor(private readonly spanMinutes: number) {}

  get isEmpty(): boolean {
    return this.#minutes.length === 0
  }

  /** What counts in this minute. */
  at(minute: number): bigint {
    const start = minute - this.spanMinutes
    if (start === this.#start) return this.#sum
    this.#start = start
    while (this.#from < this.#minutes.length && this.#minuteAt(this.#from) < start) {
      this.#sum -= this.#amounts[this.#from++] ?? 0n
    }
    while (this.#from > 0 && this.#minuteAt(this.#from - 1) >= start) this.#sum += this.#amounts[--this.#from] ?? 0n
    return this.#sum
  }

  add(minute: number, amount: bigint): void {
    let at = this.#minutes.length
    while (at > 0 && this.#minuteAt(at - 1) > minute) at--
    if (at > 0 && this.#minutes[at - 1] === minute) this.#amounts[at - 1] = (this.#amounts[at - 1] ?? 0n) + amount
    else {
      this.#minutes.splice(at, 0, minute)
      this.#amounts.splice(at, 0, amount)
      if (minute < this.#start) this.#from++
    }
    if (minute >= this.#start) this.#sum += amount
  }

  /** The minute in which at least so much of what counts now counts no more; in which nothing does, if it is less. */
  leavesBy(amount: bigint, minute: number): number {
    this.at(minute)
    let left = amount
    for (let at = this.#from; at < this.#minutes.length; at++) {
      left -= this.#amounts[at] ?? 0n
      if (left <= 0n || at === this.#minutes.length - 1) return this.#minuteAt(at) + this.spanMinutes + 1
    }
    return minute
  }

  /** Forgets those before this minute, which must not count. */
  forgetBefore(minute: number): void {
    let count = 0
    while (count < this.#from && this.#minuteAt(count) < minute) count++
    this.#minutes.splice(0, count)
    this.#amounts.splice(0, count)
    this.#from -= count
  }

  #minuteAt(at: number): number {
    return this.#minutes[at] ?? 0
  }
}
