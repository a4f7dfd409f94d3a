// How many attempts the last 30 seconds saw, and how many of them were faults. Counts by the second in fixed arrays:
// it is written on every attempt, so it must neither allocate nor walk.

const seconds = 30

export class AttemptWindow {
  readonly #attempts = new Uint32Array(seconds)
  readonly #faults = new Uint32Array(seconds)
  #second = 0
  #attemptsSum = 0
  #faultsSum = 0

  get attempts(): number {
    return this.#attemptsSum
  }

  get faults(): number {
    return this.#faultsSum
  }

  addAttempt(nowMs: number): void {
    const slot = this.#roll(nowMs)
    this.#attempts[slot] = (this.#attempts[slot] ?? 0) + 1
    this.#attemptsSum++
  }

  addFault(nowMs: number): void {
    const slot = this.#roll(nowMs)
    this.#faults[slot] = (this.#faults[slot] ?? 0) + 1
    this.#faultsSum++
  }

  clear(): void {
    this.#attempts.fill(0)
    this.#faults.fill(0)
    this.#attemptsSum = 0
    this.#faultsSum = 0
  }

  /** Forgets the seconds that have left the window; answers where this second counts. */
  #roll(nowMs: number): number {
    const second = Math.floor(nowMs / 1000)
    const passed = Math.min(second - this.#second, seconds)
    for (let n = 0; n < passed; n++) {
      const slot = (second - n) % seconds
      this.#attemptsSum -= this.#attempts[slot] ?? 0
      this.#faultsSum -= this.#faults[slot] ?? 0
      this.#attempts[slot] = 0
      this.#faults[slot] = 0
    }
    this.#second = second
    return second % seconds
  }
}
