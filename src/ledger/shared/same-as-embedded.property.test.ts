// Runs random schedules on one wallet over several replicas and, beside them, on the embedded ledger. Every answer and the
// balance must be the same in both.

import { expect } from 'bun:test'
import fc from 'fast-check'
import { createThrowAwayFolder, forEachEngine } from '../../../test/parts/engines.ts'
import {
  addWorkspace,
  expectBooksRight,
  holdOf,
  openLedger,
  settlementOf,
  type TestLedger,
} from '../../../test/parts/ledger.ts'
import { systemClock } from '../../kernel/clock.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { migrate } from '../../store/migrate.ts'
import { openDatabase } from '../../store/open-database.ts'

type Verb = 'hold' | 'hold' | 'extend' | 'settle' | 'settle' | 'release' | 'topup' | 'round'

interface Step {
  readonly verb: Verb
  readonly replica: number
  readonly which: number
  readonly amount: number
}

const step: fc.Arbitrary<Step> = fc.record({
  verb: fc.constantFrom<Verb>(
    'hold',
    'hold',
    'hold',
    'extend',
    'settle',
    'settle',
    'settle',
    'release',
    'topup',
    'round',
  ),
  replica: fc.nat({ max: 2 }),
  which: fc.nat({ max: 7 }),
  amount: fc.integer({ min: 1, max: 30 }),
})

const schedule = fc.record({
  funds: fc.integer({ min: 0, max: 3000 }),
  steps: fc.array(step, { maxLength: 40, size: 'max' }),
})

interface Running {
  readonly id: RequestId
  readonly replica: number
}

forEachEngine((engine, storeTest) => {
  if (engine.name !== 'postgres') return

  storeTest(
    'replicas answer as the embedded ledger does, and the books are right after every schedule',
    async ({ database }) => {
      using folder = createThrowAwayFolder()
      const embedded = await openDatabase({ url: undefined, dataFolder: folder.path })
      await migrate({ database: embedded, clock: systemClock })
      await using reference = await openLedger(embedded)
      const replicas = [await openLedger(database), await openLedger(database), await openLedger(database)]
      await fc.assert(
        fc.asyncProperty(schedule, async ({ funds, steps }) => {
          const workspaceId = await addWorkspace(database)
          await embedded.transaction(
            (sql) => sql`INSERT INTO workspaces (id, name, created_at) VALUES (${workspaceId}, ${'test'}, ${0n})`,
          )
          const both = new Both(reference, replicas, workspaceId)
          if (funds > 0) await both.topUp(BigInt(funds) as Nano)
          for (const one of steps) await both.act(one)
          await both.compare()
          await expectBooksRight(database)
          await both.finish()
          await expectBooksRight(database)
        }),
        { numRuns: 10, endOnFailure: true },
      )
      for (const { ledger } of replicas) await ledger.close()
      await expectBooksRight(database)
      await embedded.close()
    },
  )
})

class Both {
  readonly #running: Running[] = []

  constructor(
    readonly reference: TestLedger,
    readonly replicas: readonly TestLedger[],
    readonly workspaceId: WorkspaceId,
  ) {}

  async topUp(amount: Nano): Promise<void> {
    const funding = { workspaceId: this.workspaceId, amount, kind: 'topup' } as const
    const [here, there] = [await this.reference.ledger.fund(funding), await this.#ledger(0).fund(funding)]
    expect(there).toMatchObject({ posted: here.kind === 'funded' ? here.posted : 0n })
  }

  async act({ verb, replica, which, amount }: Step): Promise<void> {
    const nanos = BigInt(amount) as Nano
    if (verb === 'topup') return await this.topUp(nanos)
    if (verb === 'round') {
      // The replica's background work runs: heartbeat, reaping, cleaning.
      this.replicas[replica]?.clock.advance(1000)
      return await this.replicas[replica]?.timers.round()
    }
    if (verb === 'hold') return await this.#hold(replica, nanos)
    const one = this.#running[which % Math.max(1, this.#running.length)]
    if (!one) return
    if (verb === 'extend') {
      const here = await this.reference.ledger.extend(one.id, nanos)
      expect((await this.#ledger(one.replica).extend(one.id, nanos)).kind).toBe(here.kind)
      return
    }
    this.#running.splice(this.#running.indexOf(one), 1)
    if (verb === 'release') {
      expect(await this.reference.ledger.release(one.id)).toEqual({ kind: 'released' })
      expect(await this.#ledger(one.replica).release(one.id)).toEqual({ kind: 'released' })
      return
    }
    await this.#settle(one, nanos)
  }

  async compare(): Promise<void> {
    expect(await this.#ledger(1).wallet(this.workspaceId)).toEqual(await this.reference.ledger.wallet(this.workspaceId))
  }

  async finish(): Promise<void> {
    for (const one of this.#running.splice(0)) await this.#settle(one, 3n as Nano)
    await this.compare()
  }

  async #hold(replica: number, amount: Nano): Promise<void> {
    const request = holdOf(this.workspaceId, amount)
    const here = await this.reference.ledger.hold(request)
    expect((await this.#ledger(replica).hold(request)).kind).toBe(here.kind)
    if (here.kind === 'held') this.#running.push({ id: request.requestId, replica })
  }

  async #settle({ id, replica }: Running, charge: Nano): Promise<void> {
    const here = await this.reference.ledger.settle(settlementOf(id, charge))
    const there = await this.#ledger(replica).settle(settlementOf(id, charge))
    if (here.kind !== 'settled' || there.kind !== 'settled') throw new Error(`${here.kind} here, ${there.kind} there`)
    expect(there.charge).toBe(here.charge)
    expect(there.writtenOff).toBe(here.writtenOff)
  }

  #ledger(replica: number) {
    const found = this.replicas[replica]
    if (!found) throw new Error('no such replica')
    return found.ledger
  }
}
