// Wallets and spend limits with little left: what running streams may still take of them, and the requests that wait, in the
// order in which they came, for money that running requests give back. It knows only this process; the ledger decides.
//
// A request that waits is not passed by later ones: they leave what the first of the line needs, or wait behind it, unless it
// needs so much that it would stop all of them. One whose patience ends behind it may take what is free, and few of them:
// money would otherwise lie idle beside a large request.

import type { WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { type Budget, budgetNames, noBudgets, type Promised, type RoomName } from '../ledger/budget.ts'
import type { Ticker, WaitingClient, Watched } from './deadline.ts'

/** The wallet and the spend limits that a request needs. */
export interface Place {
  readonly workspaceId: WorkspaceId
  readonly budgets?: readonly Budget[] | undefined
}

/** Only running requests stand in the way of a request; `otherwise` is the result if it waits no longer. */
export class Blocked<Outcome> {
  constructor(
    readonly room: RoomName,
    readonly otherwise: Outcome,
    /** What later requests leave for it: what it needs, or nothing if that is too much. */
    readonly reserved: Nano,
  ) {}
}

/** How a request tries again. */
export interface Turn {
  /** Whether others wait behind it, so that it takes no more than it usually needs. */
  readonly othersWait: boolean
  /** Whether it is its last try, so that it takes what there is. */
  readonly isLast: boolean
}

export type Attempt<Outcome> = (turn: Turn) => Promise<Outcome | Blocked<Outcome>>

/** Each keeps its body in memory. */
const waitingMax = 2_000
/** How many whose patience ends may pass the first of a line. */
const passesMax = 10
/** How long a request whose patience is over waits for its last try: those before it may each wait for a slow database. */
const lastTryMs = 2_000
/** In ticks: other replicas give back money too, and top-ups and raised limits are not announced. */
const pollTicks = 5

export class Rooms {
  /** Only those in which somebody waits. */
  readonly #lines = new Map<RoomName, Line>()
  readonly #promised = new Map<RoomName, bigint>()
  readonly #waitingOf = new Map<WorkspaceId, number>()
  #waiting = 0

  constructor(private readonly ticker: Ticker) {}

  // ── Promises ──

  /** What running streams may still take of these rooms; undefined = nothing. */
  promisedIn(place: Place): Promised | undefined {
    if (this.#promised.size === 0) return undefined
    const promised = roomsOf(place).map((room) => [room, this.#promised.get(room) ?? 0n] as const)
    return new Map(promised.filter(([, amount]) => amount > 0n))
  }

  /** What a new request must leave: what running streams may still take, and what the first of those who wait needs. */
  keptIn(place: Place): Promised | undefined {
    const promised = this.promisedIn(place)
    if (!this.isCrowded(place)) return promised
    const kept = new Map(promised)
    for (const room of roomsOf(place)) {
      const reserved = this.#lines.get(room)?.reserved
      if (reserved) kept.set(room, (kept.get(room) ?? 0n) + reserved)
    }
    return kept
  }

  /** What a running stream may still take changes by so much. */
  promise(place: Place, change: bigint): void {
    if (change === 0n) return
    for (const room of roomsOf(place)) {
      const promised = (this.#promised.get(room) ?? 0n) + change
      if (promised === 0n) this.#promised.delete(room)
      else this.#promised.set(room, promised)
    }
  }

  // ── Waiting ──

  /** Whether requests wait in one of these rooms. */
  isCrowded(place: Place): boolean {
    return this.#lines.size > 0 && roomsOf(place).some((room) => this.#lines.has(room))
  }

  /** A request has ended: those who wait for its money try again. */
  freed(place: Place): void {
    if (this.#lines.size === 0) return
    for (const room of roomsOf(place)) void this.#lines.get(room)?.serve()
  }

  /**
   * Tries again whenever money is given back, until the time is over or the client leaves. A workspace waits in at most as many
   * places as it leaves free, so that others find some, however many workspaces wait.
   */
  wait<Outcome>(
    { workspaceId }: Place,
    blocked: Blocked<Outcome>,
    attempt: Attempt<Outcome>,
    client: WaitingClient,
    patienceMs: number,
  ): Promise<Outcome> {
    const isFull = (this.#waitingOf.get(workspaceId) ?? 0) >= waitingMax - this.#waiting
    if (isFull || client.clientGone.aborted) return Promise.resolve(blocked.otherwise)
    const waiter = new Waiter(blocked, attempt, client)
    this.#count(workspaceId, 1)
    this.ticker.watch(waiter)
    waiter.untilMs = this.ticker.nowMs + patienceMs
    waiter.enter(this.#lineOf(blocked.room))
    return waiter.ended.finally(() => {
      this.#count(workspaceId, -1)
      this.ticker.unwatch(waiter)
    })
  }

  #count(workspaceId: WorkspaceId, change: 1 | -1): void {
    const waiting = (this.#waitingOf.get(workspaceId) ?? 0) + change
    if (waiting === 0) this.#waitingOf.delete(workspaceId)
    else this.#waitingOf.set(workspaceId, waiting)
    this.#waiting += change
  }

  #lineOf(room: RoomName): Line {
    const known = this.#lines.get(room)
    if (known) return known
    const line = new Line(room, {
      find: (other) => this.#lineOf(other),
      close: () => void this.#lines.delete(room),
    })
    this.#lines.set(room, line)
    return line
  }
}

function roomsOf({ workspaceId, budgets = noBudgets }: Place): readonly RoomName[] {
  return [workspaceId, ...budgetNames(budgets)]
}

interface Lines {
  /** The line of another room. */
  find(room: RoomName): Line
  /** Nobody waits in this one any more. */
  close(): void
}

/** The requests that wait for one room. */
class Line {
  readonly #waiters: Waited[] = []
  #isServing = false
  /** Money was given back while one tried. */
  #isCalled = false
  /** How many have passed the first one. */
  #passes = 0

  constructor(
    private readonly room: RoomName,
    private readonly lines: Lines,
  ) {}

  /** What later requests leave for the first one. */
  get reserved(): Nano | undefined {
    return this.#waiters[0]?.reserved
  }

  isFirst(waiter: Waited): boolean {
    return this.#waiters[0] === waiter
  }

  add(waiter: Waited): void {
    this.#waiters.push(waiter)
  }

  /** The next one tries too: it may need less. */
  leave(waiter: Waited): void {
    const wasFirst = this.isFirst(waiter)
    this.#remove(waiter)
    if (wasFirst) void this.serve()
  }

  /** Lets one after the other try. Only here do they try, so that none tries twice at the same time. */
  async serve(): Promise<void> {
    this.#isCalled = true
    if (this.#isServing) return
    this.#isServing = true
    while (this.#isCalled) {
      this.#isCalled = false
      await this.#serveAll()
    }
    this.#isServing = false
  }

  /** Behind one that does not fit, only those try whose patience is over, and few. */
  async #serveAll(): Promise<void> {
    let isBlocked = false
    for (const waiter of [...this.#waiters]) {
      if (isBlocked && !waiter.isDue) continue
      if (isBlocked && this.#passes >= passesMax) {
        waiter.giveUp()
        this.#remove(waiter)
        continue
      }
      const blockedBy = await waiter.tryNow(this.#waiters.length > 1)
      if (blockedBy === this.room) {
        isBlocked = true
        continue
      }
      if (isBlocked && waiter.isServed) this.#passes++
      this.#remove(waiter)
      if (blockedBy !== undefined) waiter.enter(this.lines.find(blockedBy))
    }
  }

  #remove(waiter: Waited): void {
    const at = this.#waiters.indexOf(waiter)
    if (at === -1) return
    if (at === 0) this.#passes = 0
    this.#waiters.splice(at, 1)
    if (this.#waiters.length === 0) this.lines.close()
  }
}

interface Waited {
  /** Its patience is over: the next try is its last one. */
  readonly isDue: boolean
  /** A try has ended it. */
  readonly isServed: boolean
  readonly reserved: Nano
  enter(line: Line): void
  /** Returns the room that is in its way; undefined = it waits no longer. */
  tryNow(othersWait: boolean): Promise<RoomName | undefined>
  /** Ends without another try. */
  giveUp(): void
}

/** A request that waits. */
class Waiter<Outcome> implements Watched, Waited {
  tickerIndex = -1
  untilMs = Number.POSITIVE_INFINITY
  readonly #end = Promise.withResolvers<Outcome>()
  #line: Line | undefined
  isDue = false
  isServed = false
  #ticks = 0
  #isTrying = false
  /** The client left, or the gateway stops, during a try: that decides. */
  #isLeaving = false
  #isOver = false

  constructor(
    private blocked: Blocked<Outcome>,
    private readonly attempt: Attempt<Outcome>,
    private readonly client: WaitingClient,
  ) {}

  get ended(): Promise<Outcome> {
    return this.#end.promise
  }

  get reserved(): Nano {
    return this.blocked.reserved
  }

  enter(line: Line): void {
    this.#line = line
    line.add(this)
  }

  async tryNow(othersWait: boolean): Promise<RoomName | undefined> {
    if (this.#isOver) return undefined
    const isLast = this.isDue
    await this.#try({ othersWait, isLast })
    if (!this.#isOver && (isLast || this.#isLeaving)) this.#finish(this.blocked.otherwise)
    return this.#isOver ? undefined : this.blocked.room
  }

  tick(nowMs: number): void {
    if (this.#isOver || this.#isTrying) return
    this.client.connection.keepOpen()
    if (this.client.clientGone.aborted || nowMs >= this.untilMs + lastTryMs) return this.expire()
    this.isDue = nowMs >= this.untilMs
    const isPoll = ++this.#ticks % pollTicks === 0 && this.#line?.isFirst(this)
    if (this.isDue || isPoll) void this.#line?.serve()
  }

  giveUp(): void {
    if (!this.#isOver) this.#finish(this.blocked.otherwise)
  }

  /** Its time is over, the client has left, or the gateway stops: a hold that a running try still gets is not used. */
  expire(): void {
    this.#isLeaving = true
    if (this.#isTrying) return
    this.#finish(this.blocked.otherwise)
    this.#line?.leave(this)
  }

  async #try(turn: Turn): Promise<void> {
    this.#isTrying = true
    try {
      const outcome = await this.attempt(turn)
      if (outcome instanceof Blocked) {
        this.blocked = outcome
        return
      }
      this.isServed = true
      // The refusal ends a hold too.
      this.#finish(this.#isLeaving ? this.blocked.otherwise : outcome)
    } catch (error) {
      this.#isOver = true
      this.#end.reject(error)
    } finally {
      this.#isTrying = false
    }
  }

  #finish(outcome: Outcome): void {
    this.#isOver = true
    this.#end.resolve(outcome)
  }
}
