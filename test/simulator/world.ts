// The world of one seed: its store, its processes and what happens to them, its actors, and the oracle who judges. It ends
// with everything mended and enough time passed that nothing can be open any more; then the books are checked.

import type { WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { Actor } from './actors.ts'
import type { Backend } from './backend.ts'
import { checkBooks } from './check-books.ts'
import { Corrections } from './corrections.ts'
import { Dice } from './dice.ts'
import { Fundings } from './fundings.ts'
import type { LedgerParts } from './ledger-parts.ts'
import { Oracle } from './oracle.ts'
import type { Plan, Trouble } from './plan.ts'
import type { Scheduler } from './scheduler.ts'
import { SimulatedProcess } from './simulated-process.ts'
import { StoreFaults } from './store-faults.ts'
import { Witness } from './witness.ts'

/** M5: a dead process holds nothing for longer. */
const reapedMs = 61_000
/** The reaper's time after the last hold has expired. */
const reapMs = 15_000
const downMs = { embedded: 500, shared: 3000 } as const

/** Of a wallet, what its plan granted less what expired. */
export const planPart = 'plan'
/** A world lasts some minutes, so it sees at most two days. */
export const periodsMax = 2n

export interface WorldOptions {
  readonly plan: Plan
  readonly scheduler: Scheduler
  readonly backend: Backend
  readonly parts: LedgerParts
  readonly trace: (line: string) => void
  /** Actors that are left out, when a failure is made smaller. */
  readonly without: ReadonlySet<number>
}

export class World {
  readonly plan: Plan
  readonly scheduler: Scheduler
  readonly backend: Backend
  readonly parts: LedgerParts
  readonly trace: (line: string) => void
  readonly oracle: Oracle
  readonly fundings: Fundings
  readonly corrections: Corrections
  readonly witness: Witness
  readonly workspaces: readonly string[]
  readonly processes: SimulatedProcess[] = []
  readonly #without: ReadonlySet<number>
  readonly #dice: Dice
  readonly #faults = new Map<SimulatedProcess, StoreFaults>()
  /** Ids of dead processes, until the oracle knows what they left behind. */
  readonly #burials = new Set<Promise<void>>()
  #isMended = false
  #born = 0

  constructor({ plan, scheduler, backend, parts, trace, without }: WorldOptions) {
    this.plan = plan
    this.scheduler = scheduler
    this.backend = backend
    this.parts = parts
    this.trace = trace
    this.#without = without
    this.oracle = new Oracle(plan.hasFaults)
    this.fundings = new Fundings(this.oracle)
    this.corrections = new Corrections(this.oracle)
    this.witness = new Witness(this)
    this.workspaces = Array.from({ length: plan.wallets }, (_, at) => `ws_${plan.seed}_${at}`)
    this.#dice = new Dice(plan.seed * 7 + 3)
    scheduler.onTime = () => this.oracle.tick(scheduler.now)
    scheduler.onStep = () => this.#checkNow()
    backend.onCommit = (fault) => fault !== undefined && this.oracle.violate(fault)
  }

  faultsOf(process: SimulatedProcess): StoreFaults {
    return this.#faults.get(process) ?? new StoreFaults(this.#dice, false)
  }

  /** The first things that were wrong; empty = nothing was. */
  async live(): Promise<readonly string[]> {
    await this.backend.addWorkspaces(this.workspaces)
    const { credit } = this.plan
    if (credit > 0n) await this.backend.givePlan(this.workspaces, credit)
    for (const id of this.workspaces) this.oracle.room(`wallet:${id}`).set(planPart, 0n, credit * periodsMax)
    let isOver = false
    const story = this.#tell().then(
      () => (isOver = true),
      (thrown) => {
        this.oracle.violate(`the world broke: ${thrown instanceof Error ? thrown.stack : thrown}`)
        isOver = true
      },
    )
    try {
      await this.scheduler.run(() => isOver || this.oracle.violations.length > 0)
      if (isOver) await story
    } catch (thrown) {
      this.oracle.violate(thrown instanceof Error ? thrown.message : String(thrown))
    }
    return this.oracle.violations
  }

  async #tell(): Promise<void> {
    const { plan, scheduler } = this
    for (let at = 0; at < plan.processes; at++) await this.#start(at)
    const banker = new Actor(this, -1)
    for (const workspaceId of plan.funds > 0n ? this.workspaces : []) {
      const amount = plan.funds as Nano
      const reference = `first of ${workspaceId}`
      const idempotencyKey = reference.replaceAll(' ', '-')
      await banker.fundUntilMade({
        workspaceId: workspaceId as WorkspaceId,
        amount,
        kind: 'grant',
        reference,
        idempotencyKey,
      })
    }
    for (const trouble of plan.troubles) void this.#cause(trouble)
    const acts = plan.actors.map((kind, at) => (this.#without.has(at) ? undefined : new Actor(this, at).act(kind)))
    await Promise.all(acts)
    this.#mend()
    await Promise.all(this.#burials)
    for (let at = 0; at < plan.processes; at++) if (this.processes[at]?.isDead) await this.#start(at)
    await scheduler.sleep(reapedMs)
    await checkBooks(this, 'dead processes')
    await scheduler.sleep(this.#untilExpiredMs())
    await checkBooks(this, 'everything')
  }

  #untilExpiredMs(): number {
    const open = [...this.oracle.requests.values()].filter(({ state }) => state === 'open' || state === 'unknown')
    const last = Math.max(this.scheduler.now, ...open.map(({ expiresAt }) => expiresAt))
    return last - this.scheduler.now + (open.length > 0 ? reapMs : 0)
  }

  async #start(at: number): Promise<void> {
    const { plan, scheduler, backend, parts } = this
    const faults = new StoreFaults(this.#dice, plan.hasFaults && !this.#isMended)
    const process: SimulatedProcess = new SimulatedProcess({
      name: `${'abc'[at]}${++this.#born}`,
      scheduler,
      dice: this.#dice,
      parts,
      // Wall clocks of replicas differ; the only process of an embedded store has no other to differ from.
      skewMs: plan.engine === 'shared' ? this.#dice.int(-2000, 2000) : 0,
      holdLifetimeMs: 60_000,
      hasFaults: plan.hasFaults,
      openStore: (owner) => backend.openStore(owner, faults, at),
      killsAt: (name) => {
        if (this.#isMended || process.isDead || !this.#dice.chance(plan.killShare)) return false
        this.trace(`          ${process.name.padEnd(4)} dies at ${name}`)
        void this.#bury(process, at)
        return true
      },
    })
    this.#faults.set(process, faults)
    this.processes[at] = process
    try {
      await process.start()
    } catch {
      // A store that fails at the start: the supervisor starts it again.
      process.die()
      await scheduler.sleep(downMs[plan.engine])
      await this.#start(at)
    }
  }

  async #cause({ kind, process: at, atMs, lastsMs }: Trouble): Promise<void> {
    const { scheduler } = this
    await scheduler.sleep(atMs)
    const process = this.processes[at]
    if (!process || process.isDead || this.#isMended) return
    this.trace(`          ${process.name.padEnd(4)} has a ${kind} of ${lastsMs} ms`)
    if (kind === 'crash') {
      process.die()
      return await this.#bury(process, at)
    }
    if (kind === 'freeze') process.frozenUntil = scheduler.now + lastsMs
    else this.faultsOf(process).outageUntil = scheduler.now + lastsMs
    // A replica without heartbeats may be taken for dead.
    if (this.plan.engine === 'shared' && lastsMs > 10_000) this.#loosenAll(process)
  }

  async #bury(process: SimulatedProcess, at: number): Promise<void> {
    const burial = this.#cut(process)
    this.#burials.add(burial)
    await burial
    await this.scheduler.sleep(downMs[this.plan.engine])
    if (this.processes[at] === process && !this.#isMended) await this.#start(at)
  }

  async #cut(process: SimulatedProcess): Promise<void> {
    await this.scheduler.alone(`the power of ${process.name} is cut`, () => this.backend.cut(process))
    if (this.plan.engine === 'embedded') await this.#readAfterCut(process)
    else this.#loosenAll(process)
  }

  /** Holds lived in its memory: what is not charged now never will be. */
  async #readAfterCut(process: SimulatedProcess): Promise<void> {
    const { transfers } = await this.backend.readBooks()
    for (const request of this.oracle.requests.values()) {
      if (request.process !== process.name || request.state === 'ended' || request.state === 'refused') continue
      const charge = transfers.find(({ kind, request_id }) => kind === 'charge' && request_id === request.id)
      const writeoff = transfers.find(({ kind, request_id }) => kind === 'writeoff' && request_id === request.id)
      if (charge && request.isUncharged)
        this.oracle.violate(`M3: ${request.id} was charged after it was reported as not charged`)
      request.end(charge && { amount: charge.amount, writtenOff: writeoff?.amount ?? 0n })
      const fault = request.charge && this.oracle.chargeFault(request, request.charge)
      if (fault) this.oracle.violate(fault)
    }
  }

  #loosenAll(process: SimulatedProcess): void {
    for (const request of this.oracle.requests.values()) {
      if (request.process === process.name && request.state !== 'ended') this.oracle.loosen(request)
    }
  }

  #mend(): void {
    this.#isMended = true
    for (const faults of this.#faults.values()) faults.enabled = false
    for (const process of this.processes) process.frozenUntil = 0
  }

  /** After every step: no wallet overdrawn, and what a live embedded ledger says is free is what can be free. */
  async #checkNow(): Promise<void> {
    this.oracle.checkRooms()
    const [process] = this.processes
    if (this.plan.engine !== 'embedded' || !process?.ledger || process.isDead) return
    for (const workspaceId of this.workspaces) {
      const { available } = await process.ledger.wallet(workspaceId as WorkspaceId)
      const { low, high } = this.oracle.room(`wallet:${workspaceId}`)
      if (available < low || available > high) {
        this.oracle.violate(`M4: ${available} is free in ${workspaceId}, but it must be ${low} to ${high}`)
      }
    }
  }
}
