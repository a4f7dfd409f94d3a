// Counts budgets in memory: those of the whole process on the embedded engine, those of the locked rows of one batch on
// PostgreSQL. Pure bookkeeping; what is durable is decided by who calls it.

import { assert } from '../kernel/assert.ts'
import type { Nano } from '../kernel/money.ts'
import {
  type Budget,
  type BudgetName,
  type BudgetState,
  budgetName,
  type OverBudget,
  splitBudgetName,
} from './budget.ts'

interface Counter {
  spent: bigint
  held: bigint
}

export class BudgetCounters {
  readonly #counters = new Map<BudgetName, Counter>()

  constructor(rows: Iterable<readonly [BudgetName, BudgetState]> = []) {
    for (const [name, { spent, held }] of rows) this.#counters.set(name, { spent, held })
  }

  state(name: BudgetName): BudgetState {
    const { spent, held } = this.#counters.get(name) ?? { spent: 0n, held: 0n }
    return { spent: spent as Nano, held: held as Nano }
  }

  /** undefined = all of them have that much room. What costs nothing needs none. */
  refusal(budgets: readonly Budget[], room: bigint): OverBudget | undefined {
    if (room === 0n) return undefined
    for (const { scopeId, window, cap } of budgets) {
      const { spent, held } = this.state(budgetName(scopeId, window))
      if (spent + held + room > cap) return { kind: 'over budget', scopeId, window, spent, held, cap }
    }
    return undefined
  }

  hold(names: readonly BudgetName[], amount: bigint): void {
    for (const name of names) this.#counterOf(name).held += amount
  }

  free(names: readonly BudgetName[], amount: bigint): void {
    for (const name of names) {
      const counter = this.#counterOf(name)
      counter.held -= amount
      assert(counter.held >= 0n, `the holds of the budget ${name} do not add up`)
    }
  }

  /** Whatever the cap says: it was delivered. */
  spend(names: readonly BudgetName[], amount: bigint): void {
    for (const name of names) this.#counterOf(name).spent += amount
  }

  names(): readonly BudgetName[] {
    return [...this.#counters.keys()]
  }

  forget(isPast: (window: string) => boolean): void {
    for (const [name, { held }] of this.#counters) {
      if (held === 0n && isPast(splitBudgetName(name)[1])) this.#counters.delete(name)
    }
  }

  #counterOf(name: BudgetName): Counter {
    const known = this.#counters.get(name)
    if (known) return known
    const fresh = { spent: 0n, held: 0n }
    this.#counters.set(name, fresh)
    return fresh
  }
}
