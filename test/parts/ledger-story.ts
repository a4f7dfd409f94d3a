// A random story of calls on one wallet, and a witness that derives the expected state from the ledger's answers only. The
// short test and the long run of interleavings play the same stories.

import { expect } from 'bun:test'
import fc from 'fast-check'
import { createId, type RequestId, type WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { type Budget, windowAt } from '../../src/ledger/budget.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { putPlan, setWorkspacePlan } from '../../src/ledger/plans.ts'
import type { Database } from '../../src/store/database.ts'
import { holdOf, settlementOf } from './ledger.ts'

interface Action {
  readonly verb: 'extend' | 'settle' | 'release' | 'reap' | 'renew' | 'topup' | 'take' | 'add'
  /** Which of the group's requests: its own, or one of the two before. */
  readonly back: number
  readonly amount: number
  /** How many turns of the event loop it comes later than the others of its group: it meets them in every state. */
  readonly turns: number
}

const amount = fc.nat({ max: 40 })
const action: fc.Arbitrary<Action> = fc.record({
  verb: fc.constantFrom<Action['verb']>(
    ...([
      'extend',
      'settle',
      'settle',
      'settle',
      'release',
      'release',
      'reap',
      'renew',
      'topup',
      'take',
      'take',
      'add',
    ] as const),
  ),
  // Mostly the same one, so that they get in each other's way.
  back: fc.constantFrom(0, 0, 0, 0, 1, 2),
  amount,
  turns: fc.constantFrom(0, 0, 1, 2, 4),
})

export interface Story {
  /** Caps of the budgets in which two of three requests count: of a day, and of a month and 31 days. */
  readonly caps: readonly [number, number]
  /** Each begins with a hold of a separate request. The rest starts together; the books are checked between groups. */
  readonly groups: readonly { readonly hold: number; readonly actions: readonly Action[] }[]
}

const group = fc.record({ hold: amount, actions: fc.array(action, { minLength: 1, maxLength: 5, size: 'max' }) })

export const story: fc.Arbitrary<Story> = fc.record({
  caps: fc.tuple(fc.nat({ max: 200 }), fc.nat({ max: 200 })),
  groups: fc.array(group, { minLength: 1, maxLength: 8, size: 'max' }),
})

/** The conditions on one request. */
interface Expected {
  readonly id: RequestId
  readonly budgets: readonly Budget[]
  held: bigint | undefined
  readonly ends: string[]
}

export interface WitnessOptions {
  readonly ledger: Ledger
  readonly workspaceId: WorkspaceId
  /** By the clock of the ledger. */
  readonly now: number
  /** Lets the lifetime of every open hold be over. */
  expireAll(): Promise<void>
  /** The wallet has a plan: lets the next so many of its credits expire. */
  readonly plan: StoryPlan
}

/** A plan with a credit for each of the last days, which live for a year. */
export interface StoryPlan {
  begin(): Promise<void>
  expire(count: number): Promise<void>
  /** Everything that was granted, less everything that expired. */
  balance(): Promise<bigint>
}

export function storyPlan(
  database: Database,
  workspaceId: WorkspaceId,
  now: number,
  { credit, days } = { credit: 5n, days: 7 },
): StoryPlan {
  const plan = { id: 'daily', name: 'daily', credit: credit as Nano, period: 'day', price: undefined } as const
  return {
    begin: () =>
      database.transaction(async (sql) => {
        await putPlan(sql, { ...plan, expiresDays: 366 }, now)
        await setWorkspacePlan(sql, workspaceId, plan.id)
        await sql`UPDATE workspace_plans SET ends_at = ${BigInt(now - days * 86_400_000)}
          WHERE workspace_id = ${workspaceId}`
      }),
    expire: (count) =>
      database.transaction(async (sql) => {
        await sql`UPDATE credits SET expires_at = 0 WHERE workspace_id = ${workspaceId} AND id IN (SELECT id FROM credits
          WHERE workspace_id = ${workspaceId} AND remaining > 0 ORDER BY expires_at, id LIMIT ${BigInt(count)})`
      }),
    async balance() {
      const [row] = await database.sql<{ balance: bigint }>`SELECT CAST(COALESCE(SUM(
          CASE kind WHEN 'plan_credit' THEN amount WHEN 'expiry' THEN -amount ELSE 0 END), 0) AS BIGINT) AS balance
        FROM fundings WHERE workspace_id = ${workspaceId}`
      return row?.balance ?? 0n
    },
  }
}

export class Witness {
  readonly #ledger: Ledger
  readonly #workspaceId: WorkspaceId
  readonly #expireAll: () => Promise<void>
  readonly #plan: StoryPlan
  readonly #budgets: readonly Budget[]
  readonly #requests: Expected[] = []
  #posted = 0n
  #spent = 0n

  constructor({ ledger, workspaceId, now, expireAll, plan }: WitnessOptions, [dayCap, monthCap]: Story['caps']) {
    this.#ledger = ledger
    this.#workspaceId = workspaceId
    this.#expireAll = expireAll
    this.#plan = plan
    this.#budgets = [
      { scopeId: `key-of-${workspaceId}`, window: windowAt('day', now), cap: BigInt(dayCap) as Nano },
      { scopeId: workspaceId, window: windowAt('month', now), cap: BigInt(monthCap) as Nano },
      // Longer than a story.
      { scopeId: `${workspaceId}/group:grp_1`, window: '31d', cap: BigInt(monthCap) as Nano },
    ]
  }

  /** `check` comes after every group. */
  async tell({ groups }: Story, check: () => Promise<void> = async () => {}): Promise<void> {
    await this.#topUp(80n)
    await this.#plan.begin()
    for (const { hold, actions } of groups) {
      const acts = actions.map((one) => () => this.#act(one))
      await Promise.all([() => this.#hold(BigInt(hold) as Nano), ...acts].map((act) => act()))
      // As it would in its next round: where replicas share the wallet, what was locked by others is left until then.
      await this.#reapExpired()
      await this.#check()
      await check()
    }
    await this.#finish()
  }

  async #act({ verb, back, amount, turns }: Action): Promise<void> {
    const expected = this.#requests.at(-1 - back)
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
    const nanos = BigInt(amount) as Nano
    if (verb === 'reap') return await this.#reap()
    if (verb === 'renew') {
      await this.#plan.expire(amount % 3)
      // Beside replicas that do the same, it may give up, and comes again.
      return void (await this.#ledger.renewPlans(this.#workspaceId))
    }
    if (verb === 'topup') return await this.#topUp(nanos)
    if (verb === 'take' || verb === 'add') return await this.#correct(verb, nanos)
    if (expected === undefined) return
    if (verb === 'settle') return await this.#settle(expected, nanos)
    if (verb === 'release') return await this.#release(expected)
    const outcome = await this.#ledger.extend(expected.id, nanos)
    if (outcome.kind === 'held') expected.held = (expected.held ?? 0n) + nanos
  }

  async #hold(amount: Nano): Promise<void> {
    const budgets = this.#requests.length % 3 === 0 ? [] : this.#budgets
    const expected: Expected = { id: createId('req'), budgets, held: undefined, ends: [] }
    this.#requests.push(expected)
    const outcome = await this.#ledger.hold({ ...holdOf(this.#workspaceId, amount, expected.id), budgets })
    if (outcome.kind === 'held') expected.held = (expected.held ?? 0n) + amount
  }

  async #settle(expected: Expected, charge: Nano): Promise<void> {
    const outcome = await this.#ledger.settle(settlementOf(expected.id, charge))
    if (outcome.kind !== 'settled' || outcome.repeated) return
    expect(outcome.charge + outcome.writtenOff).toBe(charge)
    this.#posted -= outcome.charge
    if (expected.budgets.length > 0) this.#spent += outcome.charge
    expected.ends.push('settled')
  }

  async #release(expected: Expected): Promise<void> {
    const outcome = await this.#ledger.release(expected.id)
    if (outcome.kind === 'released') expected.ends.push('released')
  }

  async #reap(): Promise<void> {
    await this.#expireAll()
    await this.#reapExpired()
  }

  async #reapExpired(): Promise<void> {
    for (const { requestId } of await this.#ledger.reap()) {
      this.#requests.find(({ id }) => id === requestId)?.ends.push('reaped')
    }
  }

  async #topUp(amount: bigint): Promise<void> {
    if (amount === 0n) return
    await this.#ledger.fund({ workspaceId: this.#workspaceId, amount: amount as Nano, kind: 'topup' })
    this.#posted += amount
  }

  async #correct(direction: 'take' | 'add', amount: Nano): Promise<void> {
    if (amount === 0n) return
    const outcome = await this.#ledger.correct({ workspaceId: this.#workspaceId, direction, amount, reason: 'story' })
    if (outcome.kind === 'insufficient') expect(outcome.posted - outcome.held).toBeLessThan(amount)
    else expect(outcome).toMatchObject({ kind: 'corrected', repeated: false })
    if (outcome.kind === 'corrected') this.#posted += direction === 'add' ? amount : -amount
  }

  async #check(): Promise<void> {
    const posted = this.#posted + (await this.#plan.balance())
    const sums = { posted, held: 0n, spent: this.#spent, heldInBudgets: 0n }
    for (const { held = 0n, ends, budgets } of this.#requests) {
      expect(ends.length).toBeLessThanOrEqual(1)
      if (ends.length > 0) continue
      sums.held += held
      if (budgets.length > 0) sums.heldInBudgets += held
    }
    const wallet = await this.#ledger.wallet(this.#workspaceId)
    expect(wallet.available).toBeGreaterThanOrEqual(0n)
    for (const { scopeId, window, cap } of this.#budgets) {
      const { spent, held } = await this.#ledger.budget(scopeId, window)
      expect(spent + held).toBeLessThanOrEqual(cap)
      const found: typeof sums = { posted: wallet.posted, held: wallet.held, spent, heldInBudgets: held }
      expect(found).toEqual(sums)
    }
  }

  /** Whatever is still open ends now; then every request that was held has ended exactly once. */
  async #finish(): Promise<void> {
    for (const expected of this.#requests) await this.#release(expected)
    for (const { held, ends } of this.#requests) expect(ends).toHaveLength(held === undefined ? 0 : 1)
    await this.#check()
    expect((await this.#ledger.wallet(this.#workspaceId)).held).toBe(0n as Nano)
  }
}
