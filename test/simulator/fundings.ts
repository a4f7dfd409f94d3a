// Conditions on top-ups: each is made once, however often and wherever it is requested, and what was said to be made
// stays. One with a key or a payment may be asked for with another amount too; then whichever comes first is the one.

import type { Funding, FundOutcome } from '../../src/ledger/fund.ts'
import type { Oracle } from './oracle.ts'
import type { Lost } from './simulated-process.ts'

interface FundingModel {
  readonly workspaceId: string
  readonly amounts: Set<bigint>
  made: { readonly transferId: string; readonly amount: bigint } | undefined
  /** Answers that say "this call made it"; another call may have seen it before. */
  makers: number
}

export class Fundings {
  /** By reference, which is the same for all that are one funding. */
  readonly all = new Map<string, FundingModel>()

  constructor(private readonly oracle: Oracle) {}

  asked(funding: Funding): (outcome: FundOutcome | Lost) => void {
    const name = funding.reference ?? ''
    const model = this.all.get(name) ?? {
      workspaceId: funding.workspaceId,
      amounts: new Set(),
      made: undefined,
      makers: 0,
    }
    this.all.set(name, model)
    model.amounts.add(funding.amount)
    if (!model.made)
      this.#room(model).set(
        name,
        0n,
        [...model.amounts].reduce((a, b) => (a > b ? a : b)),
      )
    return (outcome) => {
      if (outcome.kind === 'conflict' && model.amounts.size < 2)
        this.oracle.violate(`top-up ${name} conflicts with nothing`)
      if (outcome.kind !== 'funded') return
      const { id, amount } = outcome.transfer
      if (model.made && model.made.transferId !== id) this.oracle.violate(`top-up ${name} was made twice`)
      if (!outcome.repeated && ++model.makers > 1) this.oracle.violate(`top-up ${name} was made again`)
      if (amount !== funding.amount) this.oracle.violate(`top-up ${name} of ${funding.amount} came to ${amount}`)
      this.make(name, id, amount)
    }
  }

  make(name: string, transferId: string, amount: bigint): void {
    const model = this.all.get(name)
    if (!model) return
    model.made = { transferId, amount }
    this.#room(model).set(name, amount, amount)
  }

  /** It is certain that it was not made, and no call is running. */
  unmade(name: string): void {
    const model = this.all.get(name)
    if (model) this.#room(model).set(name, 0n, 0n)
  }

  #room({ workspaceId }: FundingModel) {
    return this.oracle.room(`wallet:${workspaceId}`)
  }
}
