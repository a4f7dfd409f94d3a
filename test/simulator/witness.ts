// Calls the ledger of a simulated process and reports calls and outcomes to the oracle, in the same turn in which the
// ledger decides, so that both see the same moment.

import type { RequestId, WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import type { Budget } from '../../src/ledger/budget.ts'
import type { Correction, CorrectOutcome, Funding, FundOutcome } from '../../src/ledger/fund.ts'
import type { Charge, HoldOutcome, Ledger, SettleOutcome } from '../../src/ledger/ledger.ts'
import { chargedRowOf } from '../parts/ledger.ts'
import type { AskedSettlement, RequestModel } from './request-model.ts'
import { type Lost, lost, type SimulatedProcess } from './simulated-process.ts'
import type { World } from './world.ts'

export interface HoldInput {
  readonly id: string
  readonly workspaceId: string
  readonly amount: bigint
  readonly requiredFree: bigint | undefined
  readonly lifetimeMs: number
  readonly budgets: readonly Budget[]
}

export class Witness {
  constructor(private readonly world: World) {}

  hold(process: SimulatedProcess, input: HoldInput): Promise<HoldOutcome | Lost> {
    const { oracle, scheduler } = this.world
    const { id, workspaceId, amount, requiredFree = amount, lifetimeMs, budgets } = input
    return this.#ask(process, `hold ${amount} for ${id}`, (ledger) => {
      const mustRefuse = this.world.faultsOf(process).lastCommitFailed && this.world.plan.engine === 'embedded'
      const observe = oracle.hold({
        id,
        process: process.name,
        wallet: oracle.room(`wallet:${workspaceId}`),
        budgets: budgets.map(({ scopeId, window, cap }) => ({ room: oracle.room(`${scopeId} ${window}`), cap })),
        amount,
        room: requiredFree > amount ? requiredFree : amount,
        expiresAt: Math.floor(scheduler.now) + lifetimeMs - 2,
      })
      const asked = {
        requestId: id as RequestId,
        workspaceId: workspaceId as WorkspaceId,
        keyId: 'key_1',
        projectId: 'prj_1',
        amount: amount as Nano,
        ...(input.requiredFree === undefined ? {} : { requiredFree: input.requiredFree as Nano }),
        lifetimeMs,
        budgets,
      } as const
      return [
        () => ledger.hold(asked),
        (outcome) => {
          if (mustRefuse && outcome.kind === 'held') oracle.violate(`M6: ${id} was held while commits fail`)
          observe(outcome)
        },
      ]
    })
  }

  extend(process: SimulatedProcess, request: RequestModel, more: bigint) {
    return this.#ask(process, `extend ${request.id} by ${more}`, (ledger) => [
      () => ledger.extend(request.id as RequestId, more as Nano),
      request.process === process.name ? this.world.oracle.extend(request, more) : () => {},
    ])
  }

  settle(
    process: SimulatedProcess,
    request: RequestModel,
    asked: AskedSettlement & { readonly priced: bigint; readonly usage: string },
  ) {
    const { oracle, backend } = this.world
    const { charge, quoted, priced, usage } = asked
    return this.#ask<SettleOutcome>(process, `settle ${request.id} for ${charge}, quoted ${quoted}`, (ledger) => {
      const isOwner = request.process === process.name
      const observe = oracle.settle(request, { charge, quoted }, isOwner)
      const settlement = {
        requestId: request.id as RequestId,
        cost: priced as Nano,
        quoted: (quoted < priced ? quoted : priced) as Nano,
        estimated: false,
        row: (charge: Charge) => chargedRowOf(request.id as RequestId, charge, { usage }),
      }
      return [
        () => ledger.settle(settlement),
        (outcome) => {
          if (outcome.kind === 'settled' && backend.isDurable(`tr_${request.id.slice(4)}`) === false) {
            oracle.violate(`M2: ${request.id} is reported as charged, and the charge is not on the disk`)
          }
          observe(outcome)
          if (outcome.kind !== 'unknown') return
          void outcome.end.then((end) => {
            if (end && !process.isDead) oracle.settleLate(request, end, isOwner)
          })
        },
      ]
    })
  }

  release(process: SimulatedProcess, request: RequestModel) {
    return this.#ask(process, `release ${request.id}`, (ledger) => [
      () => ledger.release(request.id as RequestId),
      this.world.oracle.release(request, request.process === process.name),
    ])
  }

  markSent(process: SimulatedProcess, request: RequestModel) {
    return this.#ask(process, `${request.id} is sent`, (ledger) => [
      () => {
        ledger.markSent(request.id as RequestId)
        return { kind: 'done' } as const
      },
      () => {},
    ])
  }

  reap(process: SimulatedProcess) {
    return this.#ask(process, 'reap', (ledger) => [
      async () => {
        // The reaper throws while the store cannot be reached, and comes again.
        const reports = await ledger.reap().catch((thrown: unknown) => {
          if (this.world.plan.hasFaults) return []
          throw thrown
        })
        for (const { requestId } of reports) this.world.oracle.reaped(requestId)
        return { kind: 'done' } as const
      },
      () => {},
    ])
  }

  renew(process: SimulatedProcess) {
    return this.#ask(process, 'renew plans', (ledger) => [
      async () => {
        const { workspaces, plan } = this.world
        // A round that cannot reach the store comes again.
        for (const id of workspaces) {
          await ledger.renewPlans(id as WorkspaceId).catch((thrown: unknown) => {
            if (!plan.hasFaults) throw thrown
          })
        }
        return { kind: 'done' } as const
      },
      () => {},
    ])
  }

  fund(process: SimulatedProcess, funding: Funding): Promise<FundOutcome | Lost> {
    const { fundings, backend, oracle } = this.world
    return this.#ask(process, `fund ${funding.reference} with ${funding.amount}`, (ledger) => [
      () => ledger.fund(funding),
      ((observe) => (outcome) => {
        if (outcome.kind === 'funded' && backend.isDurable(outcome.transfer.id) === false) {
          oracle.violate(`M2: ${funding.reference} is reported as funded, and it is not on the disk`)
        }
        observe(outcome)
      })(fundings.asked(funding)),
    ])
  }

  correct(process: SimulatedProcess, correction: Correction): Promise<CorrectOutcome | Lost> {
    const { corrections, backend, oracle } = this.world
    const { reason, direction, amount } = correction
    return this.#ask(process, `${direction} ${amount} by ${reason}`, (ledger) => [
      () => ledger.correct(correction),
      ((observe) => (outcome) => {
        if (outcome.kind === 'corrected' && backend.isDurable(outcome.transfer.id) === false) {
          oracle.violate(`M2: ${reason} is reported as corrected, and it is not on the disk`)
        }
        observe(outcome)
      })(corrections.asked(correction)),
    ])
  }

  /** `begin` runs in the turn of the process: it tells the oracle, and answers with the call and who hears its outcome. */
  #ask<Outcome extends { readonly kind: string }>(
    process: SimulatedProcess,
    label: string,
    begin: (ledger: Ledger) => readonly [() => Outcome | Promise<Outcome>, (outcome: Outcome | Lost) => void],
  ): Promise<Outcome | Lost> {
    const { trace, oracle } = this.world
    let observe: ((outcome: Outcome | Lost) => void) | undefined
    /** Once. */
    const tell = (outcome: Outcome | Lost) => {
      observe?.(outcome)
      observe = undefined
    }
    const asked = process.call(label, async (ledger) => {
      const [run, listener] = begin(ledger)
      observe = listener
      try {
        const outcome = await run()
        // A process that died in this very turn says nothing any more.
        if (process.isDead) return await new Promise<never>(() => {})
        trace(`          ${process.name.padEnd(4)} ${label} → ${describe(outcome)}`)
        tell(outcome)
        return outcome
      } catch (thrown) {
        const text = String(thrown instanceof Error ? thrown.message : thrown)
        if (!text.startsWith('failpoint')) oracle.violate(`${label} threw: ${text}`)
        trace(`          ${process.name.padEnd(4)} ${label} → ${text}`)
        tell(lost)
        return lost
      }
    })
    return asked.then((outcome) => {
      if (process.isDead) tell(lost)
      return outcome
    })
  }
}

function describe(outcome: { readonly kind: string }): string {
  return JSON.stringify(outcome, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
}
