// The money held for one request: how much, its growth while the answer streams, and the charge that ends it.

import { type PossibleUsage, type Price, priceBound, priceUsage } from '../catalog/price.ts'
import { assert } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { formatUsd, type Nano, zeroNano } from '../kernel/money.ts'
import { matchesModel, parseScope } from '../kernel/spend-limit.ts'
import type { Usage } from '../kernel/usage.ts'
import { type Budget, noBudgets } from '../ledger/budget.ts'
import type { ExtendOutcome, Ledger, Settlement, SettleOutcome } from '../ledger/ledger.ts'
import type { OfferedModel } from '../routing/plan.ts'
import type { Place, Rooms } from './rooms.ts'

/** The facts that determine how much is held for a request. */
export interface HoldFacts extends PossibleUsage {
  readonly price: Price
  /** The most output tokens of one choice. */
  readonly cap: number
  readonly choices: number
  /** Hold the whole cap at once: the answer is not streamed, or part of what it bills is never visible. */
  readonly holdsWholeCap: boolean
  /** The cap must not be lowered below this: a thinking budget, and one token of text. */
  readonly minCap: number
  /** The other models that may answer, if their price is held too; absent = none. */
  readonly others?: readonly HoldFacts[] | undefined
}

export interface HoldAmount {
  readonly amount: Nano
  readonly inputTokens: number
  /** Over all choices. */
  readonly outputTokens: number
  /** What is promised to it beside the amount: the rest of the answer, up to its cap. */
  readonly growth: Nano
  /** The most output tokens of one choice, lowered where there is no room for more. */
  readonly cap: number
  /** Why the cap was lowered: to fit the wallet's balance, or a spend limit. */
  readonly within?: 'balance' | 'limit'
}

/** Output tokens held at a time while an answer streams. */
export const stepTokens = 4096
/** A request is not started with room for less. */
const stepTokensMin = 256

/** Holds the input at its highest possible price, and the output up to `step` tokens. */
export function holdAmount(facts: HoldFacts, inputTokens: number, cap: number, step = stepTokens): HoldAmount {
  const outputTokens = (facts.holdsWholeCap ? cap : Math.min(cap, step)) * facts.choices
  const amount = boundOf(facts, inputTokens, outputTokens)
  const outputTokensMax = cap * facts.choices
  const most = outputTokens < outputTokensMax ? boundOf(facts, inputTokens, outputTokensMax) : amount
  return { amount, growth: (most - amount) as Nano, inputTokens, outputTokens, cap }
}

/** The highest price of so much, of each model that may answer up to its own cap. */
function boundOf(facts: HoldFacts, inputTokens: number, outputTokens: number): Nano {
  const { price, cap, choices, others } = facts
  let most = priceBound(price, inputTokens, Math.min(outputTokens, cap * choices), facts)
  for (const other of others ?? []) {
    const bound = boundOf(other, inputTokens, outputTokens)
    if (bound > most) most = bound
  }
  return most
}

/**
 * The amount that must be free for the usual hold: twice as much, in case the estimate is wrong, and at least the price of the
 * whole answer, so that it need not be cut short. A wallet with less gets a hold on a low balance.
 */
export function requiredFree({ amount, growth }: HoldAmount): Nano {
  return (amount + (growth > amount ? growth : amount)) as Nano
}

/** The smallest cap with which a request is started. */
export function smallestCap({ cap, minCap }: HoldFacts): number {
  return Math.min(cap, Math.max(stepTokensMin, minCap))
}

/** The largest cap whose whole price fits into `room`; -1 = not even the input fits. */
export function affordableCap(facts: HoldFacts, inputTokens: number, room: Nano): number {
  const fits = (cap: number): boolean => boundOf(facts, inputTokens, cap * facts.choices) <= room
  if (fits(facts.cap)) return facts.cap
  let low = -1
  let high = facts.cap
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (fits(middle)) low = middle
    else high = middle
  }
  return low
}

// ── The hold ──

/** In which scopes the charge of a model counts, if others might have answered; undefined = in all. */
function countsFor(budgets: readonly Budget[] = noBudgets, model: string): Settlement['countsIn'] {
  const countsIn = (scopeId: string) => {
    const { models } = parseScope(scopeId)
    return models === undefined || matchesModel(models, model)
  }
  return budgets.every(({ scopeId }) => countsIn(scopeId)) ? undefined : countsIn
}

/** A low estimate of bytes per token, so that the hold grows in time. */
const bytesPerTokenMin = 3
/** The hold is extended when this share of it is used. */
const growShare = 0.75

/** Whether a stream may continue; otherwise why no more could be held for it. */
export type Growth = 'enough' | 'out of money' | 'over limit' | 'no ledger'

/** What a usage costs. */
export interface Quote {
  readonly usage: Usage
  /** By the price of the route; of estimated output, at most what was held for it. */
  readonly cost: Nano
  /** The part of the cost that the answer states, because the wallet can pay it. The charge is at most this. */
  readonly quoted: Nano
  /** The same as decimal USD. */
  readonly quotedUsd: string
}

/** The money held for one request. It grows while the answer streams and ends with one charge or a release. */
export class Hold {
  /** Bytes of generated text from which `grow` must be called. */
  growAtBytes: number
  /** The cap to send upstream if there is no room for the requested one. */
  readonly loweredCap: number | undefined
  #held: Nano
  /** The part of it that was added for a cost above the hold. */
  #addedForCost = zeroNano
  #outputTokens: number
  #outputTokensMax: number
  /** What it may still grow by, which no other hold may take. */
  #promised: bigint
  #refusal: Exclude<Growth, 'enough'> | undefined
  #growing: Promise<void> | undefined

  constructor(
    readonly requestId: RequestId,
    private readonly ledger: Ledger,
    private facts: HoldFacts,
    readonly initial: HoldAmount,
    /** The facts of each model that may answer, if there are several; `facts` are those of the dearest. */
    private readonly factsByModel: ReadonlyMap<OfferedModel, HoldFacts> | undefined,
    private readonly rooms: Rooms,
    /** The wallet and the limits in which its growth has been promised to it. */
    private readonly place: Place,
  ) {
    this.#held = initial.amount
    this.#outputTokens = initial.outputTokens
    this.loweredCap = initial.cap < facts.cap ? initial.cap : undefined
    this.#outputTokensMax = initial.cap * facts.choices
    this.growAtBytes = this.#nextGrowth()
    this.#promised = initial.growth
  }

  /** The amount held before the cost was known. */
  get heldBeforeCost(): Nano {
    return (this.#held - this.#addedForCost) as Nano
  }

  markSent(): void {
    this.ledger.markSent(this.requestId)
  }

  /** From here on the hold grows at the price of the model that answers. */
  growFor(model: OfferedModel): void {
    if (!this.factsByModel) return
    const facts = this.factsByModel.get(model)
    assert(facts, 'the hold covers each model that may answer')
    this.facts = facts
    this.#outputTokensMax = Math.min(facts.cap, this.loweredCap ?? facts.cap) * facts.choices
    this.growAtBytes = this.#nextGrowth()
    this.#lowerPromise()
  }

  /**
   * If a usage costs more than is held, reserves the difference as far as the balance allows; the rest is written off. On
   * PostgreSQL the whole cost is quoted, and the settlement may take less (decision 0012).
   */
  reserveQuote(price: Price, usage: Usage): Quote {
    const cost = this.#costOf(price, usage)
    const quoted = cost > this.#held ? this.#addForCost(cost) : cost
    return { usage, cost, quoted, quotedUsd: formatUsd(quoted) }
  }

  /**
   * Reported usage costs its price. Estimated usage costs at most what was held for it, except for input that the provider
   * reported, which is not cut down to the hold (decision 0012).
   */
  #costOf(price: Price, usage: Usage): Nano {
    const cost = priceUsage(price, usage)
    if (usage.source === 'reported' || cost <= this.#held) return cost
    const outputTokens = Math.min(usage.outputTokens, this.#outputTokens)
    const inputAndHeldOutput = usage.inputReported ? priceUsage(price, { ...usage, outputTokens }) : zeroNano
    return inputAndHeldOutput > this.#held ? inputAndHeldOutput : this.#held
  }

  #addForCost(cost: Nano): Nano {
    const added = this.ledger.coverOverrun(this.requestId, (cost - this.#held) as Nano)
    // On PostgreSQL the settlement decides.
    if (added === undefined) return cost
    this.#addedForCost = (this.#addedForCost + added) as Nano
    this.#held = (this.#held + added) as Nano
    return this.#held
  }

  /** Charges what was quoted, for this model. The row of the request is written in the same commit. */
  async settle({ usage, cost, quoted }: Quote, row: Settlement['row'], model?: string): Promise<SettleOutcome> {
    const estimated = usage.source === 'estimated'
    const countsIn = this.factsByModel && model !== undefined ? countsFor(this.place.budgets, model) : undefined
    try {
      return await this.ledger.settle({ requestId: this.requestId, cost, quoted, estimated, countsIn, row })
    } finally {
      this.#ended()
    }
  }

  /** Ends the hold without a charge. If that fails, the reaper ends it later. */
  async release(onFault: (error: unknown) => void): Promise<void> {
    try {
      await this.ledger.release(this.requestId)
    } catch (error) {
      onFault(error)
    }
    this.#ended()
  }

  #ended(): void {
    this.rooms.promise(this.place, -this.#promised)
    this.#promised = 0n
    this.rooms.freed(this.place)
  }

  /** The promise only falls: more was not free when it was made, and nothing would take it back after the end. */
  #lowerPromise(): void {
    if (this.#promised === 0n) return
    const { facts, initial } = this
    const isWhole = this.#outputTokens >= this.#outputTokensMax
    const most = isWhole ? 0n : priceBound(facts.price, initial.inputTokens, this.#outputTokensMax, facts)
    const growth = most > this.#held ? most - this.#held : 0n
    if (growth >= this.#promised) return
    this.rooms.promise(this.place, growth - this.#promised)
    this.#promised = growth
  }

  /**
   * Holds more as the answer grows; called first when three quarters are used. A refusal then changes nothing yet: it is called
   * again when everything is used, because other requests may have ended meanwhile, and only then the refusal counts.
   */
  grow(outputBytes: number): Growth | Promise<Growth> {
    const growth = (): Growth => (outputBytes >= this.#bytesHeld() ? this.#refusal : undefined) ?? 'enough'
    if (!this.#growing) {
      const growing = this.#extend()
      if (growing) this.#growing = growing.finally(() => (this.#growing = undefined))
    }
    // The answer continues during the extension while the hold still covers it.
    if (this.#growing && outputBytes >= this.#bytesHeld()) return this.#growing.then(growth)
    return growth()
  }

  /** Tries a whole step first, then smaller ones down to the minimum. */
  #extend(step = stepTokens): Promise<void> | undefined {
    const outputTokens = Math.min(this.#outputTokens + step * this.facts.choices, this.#outputTokensMax)
    const { inputTokens } = this.initial
    const bound = priceBound(this.facts.price, inputTokens, outputTokens, this.facts)
    // A provider that reports usage on the way may already have cost more than the bound.
    const amount = bound > this.#held ? bound : this.#held
    const apply = (kind: ExtendOutcome['kind']): Promise<void> | undefined => {
      if (kind === 'held') {
        this.#held = amount
        this.#outputTokens = outputTokens
        this.#refusal = undefined
        this.growAtBytes = this.#nextGrowth()
        this.#lowerPromise()
        return undefined
      }
      const isMoney = kind === 'insufficient' || kind === 'over budget'
      if (isMoney && step > stepTokensMin) return this.#extend(step / 2)
      this.#refusal = kind === 'insufficient' ? 'out of money' : kind === 'over budget' ? 'over limit' : 'no ledger'
      this.growAtBytes = this.#bytesHeld()
      return undefined
    }
    const outcome = this.ledger.extend(this.requestId, (amount - this.#held) as Nano)
    // Not awaited: a quote between the ledger's change and ours would count the difference twice.
    if (!(outcome instanceof Promise)) return apply(outcome.kind)
    // A rejected promise is a refusal; it must not end the process.
    return outcome.then(
      ({ kind }) => apply(kind),
      () => apply('unavailable'),
    )
  }

  #nextGrowth(): number {
    return this.#outputTokens >= this.#outputTokensMax ? Number.POSITIVE_INFINITY : this.#bytesHeld() * growShare
  }

  #bytesHeld(): number {
    return this.#outputTokens * bytesPerTokenMin
  }
}
