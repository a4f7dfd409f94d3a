// The one order of everything in a simulated world, decided by dice: which process gets its turn, when time passes, which
// answer comes first. Time is virtual, and whatever waits for it waits here; nothing else may wait for anything.

import type { Dice } from './dice.ts'

/** A process of the world, as far as its turns go. */
export interface Turns {
  readonly name: string
  isDead: boolean
  /** It stands still until then: a long pause of the collector, a sleeping machine. */
  frozenUntil: number
}

interface Task {
  readonly owner: Turns | undefined
  readonly label: string
  /** A promise is waited for in real time: the statement of a real server. */
  run(): Promise<void> | void
}

interface Timer extends Task {
  readonly due: number
  cancelled: boolean
}

/** A world that does not come to rest by then hangs. */
const stepsMax = 60_000

export class Scheduler {
  now: number
  steps = 0
  /** The owner of the running task. */
  current: Turns | undefined
  onTime: () => void = () => {}
  onStep: () => Promise<void> | void = () => {}
  /** Waits, in real time, until what hangs on a lock of a real server has come loose or is known to hang on. */
  settleReal: (() => Promise<void>) | undefined
  readonly #dice: Dice
  readonly #trace: (line: string) => void
  #ready: Task[] = []
  #timers: Timer[] = []

  constructor(dice: Dice, startsAt: number, trace: (line: string) => void) {
    this.#dice = dice
    this.#trace = trace
    this.now = startsAt
  }

  /** Its turn comes some time. */
  soon(owner: Turns | undefined, label: string, run: () => Promise<void> | void): void {
    if (!owner?.isDead) this.#ready.push({ owner, label, run })
  }

  after(milliseconds: number, owner: Turns | undefined, label: string, run: () => Promise<void> | void): () => void {
    const timer: Timer = { owner, label, run, due: this.now + milliseconds, cancelled: false }
    if (!owner?.isDead) this.#timers.push(timer)
    return () => {
      timer.cancelled = true
    }
  }

  /** Never comes back to a process that died meanwhile. */
  turn(owner: Turns | undefined, label: string): Promise<void> {
    return new Promise((resolve) => this.soon(owner, label, resolve))
  }

  /** The whole work is one turn, in which nothing else happens, however long it takes in real time. */
  alone<T>(label: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => this.soon(undefined, label, () => work().then(resolve, reject)))
  }

  sleep(milliseconds: number, owner?: Turns): Promise<void> {
    return new Promise((resolve) => this.after(milliseconds, owner, 'wakes', resolve))
  }

  forget(owner: Turns): void {
    this.#ready = this.#ready.filter((task) => task.owner !== owner)
    this.#timers = this.#timers.filter((timer) => timer.owner !== owner)
  }

  /** Lets the world go on until the moment, or until it is done. */
  async run(isDone: () => boolean): Promise<void> {
    while (!isDone()) {
      if (this.steps++ > stepsMax) throw new Error(`the world did not come to rest within ${stepsMax} steps`)
      await this.#step()
    }
  }

  async #step(): Promise<void> {
    const runnable = this.#ready.filter((task) => this.#mayRun(task))
    if (runnable.length === 0 || this.#dice.chance(0.1)) {
      this.#passTime(runnable.length === 0)
      return
    }
    const task = this.#dice.pick(runnable)
    this.#ready.splice(this.#ready.indexOf(task), 1)
    await this.#perform(task)
  }

  async #perform(task: Task): Promise<void> {
    this.current = task.owner
    this.#trace(
      `${String(Math.round(this.now % 1e8)).padStart(8)}  ${(task.owner?.name ?? '').padEnd(4)} ${task.label}`,
    )
    await task.run()
    // Everything that follows from the turn happens now, and nothing else does.
    await new Promise((resolve) => setImmediate(resolve))
    this.current = undefined
    if (this.settleReal) {
      await this.settleReal()
      await new Promise((resolve) => setImmediate(resolve))
    }
    await this.onStep()
  }

  #mayRun({ owner }: Task): boolean {
    return owner === undefined || (!owner.isDead && owner.frozenUntil <= this.now)
  }

  /** To the next timer where nothing else can happen, otherwise by a little. What is due becomes ready. */
  #passTime(isIdle: boolean): void {
    this.#timers = this.#timers.filter((timer) => !timer.cancelled && !timer.owner?.isDead)
    const nextDue = this.#timers.reduce(
      (next, { due, owner }) => Math.min(next, Math.max(due, owner?.frozenUntil ?? 0)),
      Number.POSITIVE_INFINITY,
    )
    if (isIdle && nextDue === Number.POSITIVE_INFINITY && !this.#ready.some(({ owner }) => owner && !owner.isDead)) {
      throw new Error('the world stands still: somebody waits for what never comes')
    }
    const thawed = this.#ready.reduce((next, { owner }) => Math.min(next, owner?.frozenUntil ?? next), nextDue)
    this.now = isIdle ? Math.max(this.now, thawed) : this.now + this.#dice.int(1, 40)
    for (const timer of this.#timers.filter((one) => one.due <= this.now && this.#mayRun(one))) {
      timer.cancelled = true
      this.#ready.push(timer)
    }
    this.onTime()
  }
}
