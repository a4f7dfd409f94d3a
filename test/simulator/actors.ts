// The users of the ledgers in a simulated world: requests whose messages come twice, late or at another process; top-ups and
// corrections that are repeated until they are answered; and those that start the reaper or a round of plans.

import type { WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { type Budget, windowAt } from '../../src/ledger/budget.ts'
import type { Correction, Funding } from '../../src/ledger/fund.ts'
import { Dice } from './dice.ts'
import type { ActorKind } from './plan.ts'
import { anyUsage, ownCharge, simulatedPrice } from './prices.ts'
import type { RequestModel } from './request-model.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { World } from './world.ts'

const lifetimesMs = { embedded: [2000, 8000, 30_000, 60_000], shared: [30_000, 60_000, 100_000] } as const
/** So that a world ends even where a top-up cannot be made. */
const fundTriesMax = 40

export class Actor {
  readonly #dice: Dice

  constructor(
    private readonly world: World,
    private readonly index: number,
  ) {
    this.#dice = new Dice(world.plan.seed * 1009 + index * 31 + 7)
  }

  async act(kind: ActorKind): Promise<void> {
    await this.world.scheduler.sleep(this.#pauseMs(1500, 15_000))
    if (kind === 'request') return await this.#request()
    if (kind === 'fund') return await this.#fund()
    if (kind === 'correct') return await this.#correct()
    const process = this.#anyProcess()
    if (process) await this.world.witness[kind](process)
  }

  async #request(): Promise<void> {
    const { world } = this
    const dice = this.#dice
    const process = this.#anyProcess()
    if (!process) return
    const id = `req_${world.plan.seed}_${this.index}`
    const amount = dice.chance(0.08) ? 0n : ownCharge(anyUsage(dice, 120))
    const outcome = await world.witness.hold(process, {
      id,
      workspaceId: this.#workspace(),
      amount,
      requiredFree: amount > 0n && dice.chance(0.2) ? amount + BigInt(dice.int(0, 500)) : undefined,
      lifetimeMs: dice.pick(lifetimesMs[world.plan.engine]),
      budgets: this.#budgets(process.now()),
    })
    const request = world.oracle.requests.get(id)
    if (outcome.kind !== 'held' || !request) return
    const others = this.#strays(process, request)
    if (dice.chance(0.8)) await world.witness.markSent(process, request)
    for (let left = dice.int(0, 3); left > 0; left--) {
      await world.scheduler.sleep(this.#pauseMs(400, 30_000))
      await world.witness.extend(process, request, BigInt(dice.int(1, 900)))
    }
    await world.scheduler.sleep(this.#pauseMs(400, 30_000))
    const end = dice.unit()
    // Often twice at once: the same end from two sides.
    const ends = dice.chance(0.4) ? [0, 0] : [0]
    if (end < 0.75) await Promise.all(ends.map(() => this.#settle(process, request)))
    else if (end < 0.9) await world.witness.release(process, request)
    await others
  }

  /** Messages about a request that come again, in any order, at any time, anywhere. */
  async #strays(owner: SimulatedProcess, request: RequestModel): Promise<void> {
    const dice = this.#dice
    const count = dice.chance(0.5) ? dice.int(1, 3) : 0
    const strays = Array.from({ length: count }, async () => {
      const [kind, delayMs, elsewhere] = [dice.unit(), this.#pauseMs(2500, 60_000), dice.chance(0.25)]
      await this.world.scheduler.sleep(delayMs)
      const process = elsewhere ? this.#anyProcess() : owner
      if (!process) return
      if (kind < 0.5) await this.#settle(process, request)
      else if (kind < 0.8) await this.world.witness.release(process, request)
      else await this.world.witness.extend(process, request, BigInt(dice.int(1, 500)))
    })
    await Promise.all(strays)
  }

  async #settle(process: SimulatedProcess, request: RequestModel): Promise<void> {
    const dice = this.#dice
    const usage = anyUsage(dice, dice.chance(0.2) ? 400 : 90)
    const charge = ownCharge(usage)
    // As a client of the ledger does: more than was held is quoted as what was held, unless more can be had.
    const quotedLess = charge > request.held && dice.chance(0.5) ? request.held : charge
    const quoted = dice.chance(0.05) ? charge / 2n : quotedLess
    const priced = this.world.parts.priceUsage(simulatedPrice, usage)
    await this.world.witness.settle(process, request, { charge, quoted, priced, usage: JSON.stringify(usage) })
  }

  async #fund(): Promise<void> {
    const { world } = this
    const dice = this.#dice
    const name = `fund_${world.plan.seed}_${this.index}`
    const keyed = dice.unit()
    const funding: Funding = {
      workspaceId: this.#workspace() as WorkspaceId,
      amount: BigInt(dice.int(1, 4000)) as Nano,
      kind: dice.chance(0.5) ? 'topup' : 'grant',
      reference: name,
      ...(keyed < 0.6 ? { idempotencyKey: `key-${name}` } : {}),
      ...(keyed > 0.4 ? { paymentId: `pay-${name}` } : {}),
    }
    const twins = dice.chance(0.4)
      ? [{ ...funding, amount: (funding.amount + (dice.chance(0.3) ? 7n : 0n)) as Nano }]
      : []
    await Promise.all([funding, ...twins].map((one) => this.fundUntilMade(one)))
  }

  async fundUntilMade(funding: Funding): Promise<void> {
    const { scheduler, witness } = this.world
    for (let tries = 0; tries < fundTriesMax; tries++) {
      const process = this.#anyProcess()
      const outcome = process && (await witness.fund(process, funding))
      if (outcome && outcome.kind !== 'lost' && outcome.kind !== 'unavailable') return
      await scheduler.sleep(this.#dice.int(10, 2000))
    }
  }

  async #correct(): Promise<void> {
    const dice = this.#dice
    const name = `correct_${this.world.plan.seed}_${this.index}`
    const correction: Correction = {
      workspaceId: this.#workspace() as WorkspaceId,
      direction: dice.chance(0.7) ? 'take' : 'add',
      amount: BigInt(dice.int(1, 4000)) as Nano,
      reason: name,
      idempotencyKey: `key-${name}`,
    }
    const twins = dice.chance(0.4) ? [correction, correction] : [correction]
    await Promise.all(twins.map((one) => this.#correctUntilAnswered(one)))
  }

  async #correctUntilAnswered(correction: Correction): Promise<void> {
    const { scheduler, witness } = this.world
    for (let tries = 0; tries < fundTriesMax; tries++) {
      const process = this.#anyProcess()
      const outcome = process && (await witness.correct(process, correction))
      if (outcome && outcome.kind !== 'lost' && outcome.kind !== 'unavailable') return
      await scheduler.sleep(this.#dice.int(10, 2000))
    }
  }

  #anyProcess(): SimulatedProcess | undefined {
    const live = this.world.processes.filter(({ isDead, ledger }) => !isDead && ledger)
    return live.length === 0 ? undefined : this.#dice.pick(live)
  }

  #workspace(): string {
    return this.#dice.pick(this.world.workspaces)
  }

  #budgets(now: number): readonly Budget[] {
    if (this.#dice.chance(0.4)) return []
    const [dayCap, monthCap] = this.world.plan.caps as readonly [Nano, Nano]
    const day = { scopeId: 'key_1', window: windowAt('day', now), cap: dayCap }
    const month = { scopeId: 'prj_1', window: windowAt('month', now), cap: monthCap }
    // Longer than a life, so that nothing leaves it: how much counts is then known from the answers.
    const rolling = { scopeId: 'ws_1/group:grp_1', window: '31d', cap: monthCap }
    return this.#dice.pick([[day], [day, month], [rolling], [day, rolling]])
  }

  #pauseMs(usualMs: number, longMs: number): number {
    return this.#dice.int(0, this.#dice.chance(0.9) ? usualMs : longMs)
  }
}
