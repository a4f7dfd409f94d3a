// The money of one running request: what is held for it, how that grows while it streams, and the one charge at its end.
// Whatever happens to the request, exactly one of settle and release ends it.

import { freePrice, type Price, priceBound, priceUsage } from '../catalog/price.ts'
import { unreachable } from '../kernel/assert.ts'
import { Failure, type FailureCode } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import type { ExtendOutcome, Ledger, SettleEnd, Settlement } from '../ledger/ledger.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { OfferedModel } from '../routing/offer.ts'
import { type Slice, type SliceFacts, sliceTokens, sliceTokensLeast } from './slice.ts'

/** On the safe side of what text comes to: a token is rarely less. */
const bytesPerTokenLeast = 3
/** More is asked for while there is still something left. */
const growShare = 0.75

/** Whether the answer may go on; if not, what is held is used up and there is no more of it, or nobody can say. */
export type Growth = 'enough' | 'out of money' | 'over limit' | 'no ledger'

/** A charge that was sent to the database and has not been confirmed in time. */
export interface UnconfirmedCharge {
  /** Whether it was made, once that is certain; undefined = this process could not find out. Never rejects. */
  readonly isCharged: Promise<boolean | undefined>
}

export class Bill {
  /** Bytes of generated text from which `grow` has something to do. */
  growAtBytes: number
  /** Once it is settled, where this process knows. */
  balanceAfter: Nano | undefined
  #held: Nano
  /** The part of it that was added when the cost was known. */
  #covered = zeroNano
  #price: Price
  #priceVersion: string | undefined
  #outputTokens: number
  readonly #outputTokensMost: number
  #refusal: Exclude<Growth, 'enough'> | undefined
  #growing: Promise<void> | undefined
  /** What was priced last, and the figure that was told for it: it stays the figure. */
  #priced: Usage | undefined
  #charge = zeroNano
  /** What it costs, whoever pays. */
  #cost = zeroNano

  constructor(
    readonly requestId: RequestId,
    private readonly ledger: Ledger,
    private readonly model: OfferedModel,
    private readonly facts: SliceFacts,
    readonly slice: Slice,
  ) {
    this.#held = slice.amount
    this.#price = facts.price
    this.#priceVersion = model.priceVersion
    this.#outputTokens = slice.outputTokens
    this.#outputTokensMost = slice.cap * facts.choices
    this.growAtBytes = this.#nextGrowth()
  }

  /** The cap to send upstream where there is no room for the one that was asked for. */
  get loweredCap(): number | undefined {
    return this.slice.cap < this.facts.cap ? this.slice.cap : undefined
  }

  /** What was set aside before the cost was known. */
  get held(): Nano {
    return (this.#held - this.#covered) as Nano
  }

  markSent(): void {
    this.ledger.markSent(this.requestId)
  }

  /** Holds more as the answer grows; called when it has reached `growAtBytes`. */
  grow(outputBytes: number): Growth | Promise<Growth> {
    const isOver = (): Growth => (outputBytes >= this.#bytesHeld() ? this.#refusal : undefined) ?? 'enough'
    // Refused before, it is asked for once more when all is used up: other requests may have ended meanwhile.
    if (!this.#growing) {
      const growing = this.#extend()
      if (growing) this.#growing = growing.finally(() => (this.#growing = undefined))
    }
    // What is held is enough for now: the answer flows on while more is asked for.
    if (this.#growing && outputBytes >= this.#bytesHeld()) return this.#growing.then(isOver)
    return isOver()
  }

  /** undefined on the workspace's own credential, where there is no fee. */
  get priceVersion(): string | undefined {
    return this.#priceVersion
  }

  /** Who answers decides what it costs: on the workspace's own credential its provider sends the bill, and we at most a fee. */
  serveBy({ isOwn }: Pick<Candidate, 'isOwn'>): void {
    this.#priced = undefined
    const { price, priceVersion, fee } = this.model
    this.#price = isOwn ? (fee?.price ?? freePrice) : price
    this.#priceVersion = isOwn ? fee?.version : priceVersion
  }

  /** The charge of a usage, as it is told: what the wallet can pay of what it costs. */
  chargeOf(usage: Usage): Nano {
    if (this.#priced !== usage) {
      this.#priced = usage
      this.#cost = this.#costOf(usage)
      this.#charge = this.#cost > this.#held ? this.#payable(this.#cost) : this.#cost
    }
    return this.#charge
  }

  /** What the wallet can pay of more than was held: what it is told now is what it pays, the rest is the operator's loss. */
  #payable(cost: Nano): Nano {
    const covered = this.ledger.cover(this.requestId, (cost - this.#held) as Nano)
    if (covered === undefined) return cost
    this.#covered = (this.#covered + covered) as Nano
    this.#held = (this.#held + covered) as Nano
    return this.#held
  }

  /** What is reported costs what it costs; what is estimated costs what was held for it at most. */
  #costOf(usage: Usage): Nano {
    const price = priceUsage(this.#price, usage)
    if (usage.source === 'reported' || price <= this.#held) return price
    const sure = usage.inputReported ? priceUsage(this.#price, this.#withOutputHeld(usage)) : zeroNano
    return sure > this.#held ? sure : this.#held
  }

  #withOutputHeld(usage: Usage): Usage {
    return { ...usage, outputTokens: Math.min(usage.outputTokens, this.#outputTokens) }
  }

  /** undefined = the charge is durable. A Failure = nothing was charged, and never will be. */
  async settle(
    usage: Usage,
    rows: NonNullable<Settlement['rows']>,
    usageJson = JSON.stringify(usage),
  ): Promise<Failure | UnconfirmedCharge | undefined> {
    const told = this.chargeOf(usage)
    const outcome = await this.ledger.settle({
      requestId: this.requestId,
      told,
      charge: this.#cost,
      priceVersion: this.#priceVersion,
      usage: usageJson,
      estimated: usage.source === 'estimated',
      rows,
    })
    if (outcome.kind === 'unknown') return { isCharged: outcome.end.then((end) => end && this.#isCharged(end)) }
    if (this.#isCharged(outcome)) return undefined
    const retryAfterMs = outcome.kind === 'unavailable' ? outcome.retryAfterMs : 1000
    const message =
      'Tollgate could not record the charge for this answer, so it cannot complete it. Nothing was charged.'
    return new Failure('OVERLOADED', message, { retryAfterMs })
  }

  #isCharged(end: SettleEnd): boolean {
    if (end.kind === 'settled') this.balanceAfter = end.posted
    return end.kind === 'settled'
  }

  /** Ends the hold without a charge. A release that does not come through is made up for by the reaper. */
  release(onFault: (error: unknown) => void): void {
    const outcome = this.ledger.release(this.requestId)
    // A rejection that nobody waits for would end the process.
    if (outcome instanceof Promise) outcome.catch(onFault)
  }

  /** The steps from a whole slice down to the least; the first that is granted counts. */
  #extend(more = sliceTokens): Promise<void> | undefined {
    const outputTokens = Math.min(this.#outputTokens + more * this.facts.choices, this.#outputTokensMost)
    const { inputTokens } = this.slice
    const bound = priceBound(this.facts.price, { ...this.facts, inputTokens, outputTokens })
    // A provider that counts on the way may have cost more by now than was thought.
    const amount = bound > this.#held ? bound : this.#held
    const outcome = this.ledger.extend(this.requestId, (amount - this.#held) as Nano)
    const take = (kind: ExtendOutcome['kind']): Promise<void> | undefined => {
      if (kind === 'held') {
        this.#held = amount
        this.#outputTokens = outputTokens
        this.#refusal = undefined
        this.growAtBytes = this.#nextGrowth()
        return undefined
      }
      const isMoney = kind === 'insufficient' || kind === 'over budget'
      if (isMoney && more > sliceTokensLeast) return this.#extend(more / 2)
      this.#refusal = kind === 'insufficient' ? 'out of money' : kind === 'over budget' ? 'over limit' : 'no ledger'
      this.growAtBytes = this.#bytesHeld()
      return undefined
    }
    if (!(outcome instanceof Promise)) return take(outcome.kind)
    // An extension that fails was not granted; the answer must not end the process with it.
    return outcome.then(
      ({ kind }) => take(kind),
      () => take('unavailable'),
    )
  }

  #nextGrowth(): number {
    return this.#outputTokens >= this.#outputTokensMost ? Number.POSITIVE_INFINITY : this.#bytesHeld() * growShare
  }

  #bytesHeld(): number {
    return this.#outputTokens * bytesPerTokenLeast
  }
}

/**
 * The error of a request that may have been charged. Under an idempotency key a retry is safe: it is answered from the
 * first request, or runs only once it is certain that the first was not charged. Without one a retry would be a second
 * request with a charge of its own, so the official clients are told not to retry by themselves.
 */
export function chargeUnknown(code: FailureCode, requestId: RequestId, hasKey: boolean): Failure {
  const again = hasKey
    ? 'Send it again with the same Idempotency-Key: it is not paid for twice.'
    : 'If you send it again, that is a new request with a charge of its own.'
  return new Failure(
    code,
    `Tollgate could not complete this answer, and it is not known yet whether it was charged. Look it up: \`tollgate explain ${requestId}\`, or GET /api/requests/${requestId}. ${again}`,
    { retryAfterMs: 1000, shouldRetry: hasKey },
  )
}

/** What the client of an answer is told that ends because no more could be held for it. */
export function cutShort(growth: Exclude<Growth, 'enough'>, requestId: RequestId): Failure {
  switch (growth) {
    case 'no ledger':
      return new Failure(
        'OVERLOADED',
        `Tollgate cannot reach its ledger, so it cannot pay for more of this answer; what came before is all there is. Request ${requestId}.`,
        { retryAfterMs: 1000 },
      )
    case 'out of money':
      return new Failure(
        'INSUFFICIENT_BALANCE',
        `The wallet cannot pay for more of this answer, so it ends here. Top up: console → Wallet, or \`tollgate wallet topup\`. Request ${requestId}.`,
        { shouldRetry: false },
      )
    case 'over limit':
      return new Failure(
        'LIMIT_EXCEEDED',
        `A spend limit leaves no room for more of this answer, so it ends here. Raise the limit: console → Keys, or \`tollgate limits put\`. Request ${requestId}.`,
        { shouldRetry: false },
      )
    default:
      return unreachable(growth)
  }
}
