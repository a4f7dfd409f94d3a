// Conditions on corrections: each is made once, however often and wherever it is requested; what is taken was free,
// and a refusal has a reason. Every one has a key, so that an answer that was lost can be asked for again.

import type { Correction, CorrectOutcome } from '../../src/ledger/fund.ts'
import type { TransferRow } from './backend.ts'
import type { Oracle } from './oracle.ts'
import type { Lost } from './simulated-process.ts'

interface CorrectionModel {
  readonly correction: Correction
  transferId: string | undefined
  /** Answers that say "this call made it". */
  makers: number
  /** Asked and not answered. */
  asking: number
  /** An answer was lost, or said nothing: it may have been made. */
  isUnclear: boolean
}

export class Corrections {
  /** By reason, which is the same for all that are one correction. */
  readonly all = new Map<string, CorrectionModel>()

  constructor(private readonly oracle: Oracle) {}

  asked(correction: Correction): (outcome: CorrectOutcome | Lost) => void {
    const { reason: name, amount, direction } = correction
    const fresh = { correction, transferId: undefined, makers: 0, asking: 0, isUnclear: false }
    const model: CorrectionModel = this.all.get(name) ?? fresh
    this.all.set(name, model)
    model.asking++
    if (model.transferId === undefined) this.#set(model, 'maybe')
    const demand = this.#room(model).demand(name)
    return (outcome) => {
      this.#room(model).end(demand)
      model.asking--
      if (outcome.kind === 'corrected') {
        if (direction === 'take' && !outcome.repeated && demand.high < amount)
          this.oracle.violate(`M4: ${name} took ${amount}, with at most ${demand.high} free`)
        if (!outcome.repeated && ++model.makers > 1) this.oracle.violate(`correction ${name} was made again`)
        if (outcome.transfer.amount !== amount)
          this.oracle.violate(`correction ${name} came to ${outcome.transfer.amount}`)
        this.#make(model, outcome.transfer.id)
      } else if (outcome.kind === 'insufficient') {
        if (direction === 'add') this.oracle.violate(`correction ${name} adds, and was refused for want of money`)
        if (model.transferId !== undefined) this.oracle.violate(`correction ${name} was made, and then refused`)
        if (demand.low >= amount) this.oracle.violate(`M4: ${name} was refused, with at least ${demand.low} free`)
        if (model.asking === 0 && !model.isUnclear) this.#set(model, 'no')
      } else if (outcome.kind === 'lost' || outcome.kind === 'unavailable') model.isUnclear = true
      else this.oracle.violate(`correction ${name} got ${outcome.kind}`)
    }
  }

  /** Once nothing moves any more. */
  check(transfers: readonly TransferRow[]): void {
    const made = Map.groupBy(
      transfers.filter(({ kind }) => kind === 'correction'),
      ({ reference }) => reference ?? '',
    )
    for (const [name, rows] of made) {
      const model = this.all.get(name)
      if (!model || rows.length > 1) this.oracle.violate(`correction ${name} was made ${rows.length} times`)
      for (const { id, amount } of rows) {
        if (amount !== model?.correction.amount) this.oracle.violate(`correction ${name} came to ${amount}`)
        if (model) this.#make(model, id)
      }
    }
    for (const [name, model] of this.all) {
      if (made.has(name)) continue
      if (model.transferId !== undefined) this.oracle.violate(`M2: correction ${name} was said to be made, and is lost`)
      this.#set(model, 'no')
    }
  }

  #make(model: CorrectionModel, transferId: string): void {
    if (model.transferId !== undefined && model.transferId !== transferId)
      this.oracle.violate(`correction ${model.correction.reason} was made twice`)
    model.transferId = transferId
    this.#set(model, 'yes')
  }

  #set(model: CorrectionModel, isMade: 'yes' | 'no' | 'maybe'): void {
    const { reason, amount, direction } = model.correction
    const change = direction === 'add' ? amount : -amount
    const [low, high] = change < 0n ? [change, 0n] : [0n, change]
    if (isMade === 'maybe') this.#room(model).set(reason, low, high)
    else this.#room(model).set(reason, isMade === 'yes' ? change : 0n, isMade === 'yes' ? change : 0n)
  }

  #room({ correction }: CorrectionModel) {
    return this.oracle.room(`wallet:${correction.workspaceId}`)
  }
}
