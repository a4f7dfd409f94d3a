// The independent judge of a simulated world. It observes calls and outcomes, keeps by plain arithmetic what money.md
// promises (M1–M8), and reports every outcome that cannot be. It reads no code of the ledger and never calls it.

import type { ExtendOutcome, HoldOutcome, ReleaseOutcome, SettleEnd, SettleOutcome } from '../../src/ledger/ledger.ts'
import { type AskedSettlement, type CappedRoom, RequestModel } from './request-model.ts'
import { Room } from './room.ts'

export interface AskedHold {
  readonly id: string
  readonly process: string
  readonly wallet: Room
  readonly budgets: readonly CappedRoom[]
  readonly amount: bigint
  /** The amount that must be free for it, at least the amount. */
  readonly room: bigint
  readonly expiresAt: number
}

/** Answers, or `lost`: the process died or threw before it gave one. */
export type Observed<Outcome> = Outcome | { readonly kind: 'lost' }

type Reservation = Observed<HoldOutcome | ExtendOutcome>

export class Oracle {
  readonly requests = new Map<string, RequestModel>()
  readonly violations: string[] = []
  readonly rooms = new Map<string, Room>()

  constructor(readonly hasFaults: boolean) {}

  violate(text: string): void {
    this.violations.push(text)
  }

  room(name: string): Room {
    const known = this.rooms.get(name) ?? new Room(name)
    this.rooms.set(name, known)
    return known
  }

  tick(now: number): void {
    for (const request of this.requests.values()) {
      if (request.state === 'open' && !request.isLoose && request.expiresAt <= now) this.loosen(request)
    }
  }

  loosen(request: RequestModel): void {
    request.isLoose = true
    request.refresh()
  }

  /** M4: whatever is still on its way, no wallet can be below zero. Caps are judged with each charge. */
  checkRooms(): void {
    for (const { name, high } of this.rooms.values()) {
      if (name.startsWith('wallet:') && high < 0n) this.violate(`M4: ${name} is overdrawn by ${-high}`)
    }
  }

  hold(asked: AskedHold): (outcome: Observed<HoldOutcome>) => void {
    const { id, process, wallet, budgets, amount, expiresAt } = asked
    const request = new RequestModel(id, process, wallet, budgets, amount, expiresAt, this.hasFaults)
    this.requests.set(id, request)
    request.refresh()
    const judge = this.#demand(request, id, asked.amount, asked.room)
    return (outcome) => {
      judge(outcome, `hold of ${amount} for ${id}`)
      request.state = outcome.kind === 'held' ? 'open' : isUnclear(outcome) ? 'unknown' : 'refused'
      request.refresh()
    }
  }

  extend(request: RequestModel, more: bigint): (outcome: Observed<ExtendOutcome>) => void {
    const extension = { more }
    const mayBeGone = request.mayBeGone()
    const part = request.id
    request.extending.add(extension)
    request.refresh()
    const judge = this.#demand(request, part, more, more, request)
    return (outcome) => {
      if (outcome.kind === 'gone' && !mayBeGone && !request.mayBeGone()) {
        this.violate(`M5: extension of ${request.id} finds no hold, and nothing had ended it`)
      }
      judge(outcome, `extension by ${more} of ${request.id}`)
      request.extending.delete(extension)
      if (outcome.kind === 'held') request.held += more
      if (isUnclear(outcome)) request.extendedMaybe += more
      request.refresh()
    }
  }

  /** `isOwner`: whether the called process holds the request; another one knows only what is stored. */
  settle(request: RequestModel, asked: AskedSettlement, isOwner: boolean): (outcome: Observed<SettleOutcome>) => void {
    const mayBeGone = request.mayBeGone()
    if (isOwner) {
      request.asked.push(asked)
      request.settling++
      request.refresh()
    }
    const demands = [{ room: request.wallet, cap: 0n }, ...request.budgets].map(({ room, cap }) => ({
      ...{ room, cap },
      demand: room.demand(request.id),
    }))
    return (outcome) => {
      for (const { room, demand } of demands) room.end(demand)
      // The wallet and each cap must cover a charge.
      const coverable: Coverable = {
        low: least(demands.map(({ demand, cap }) => demand.low + cap)),
        high: least(demands.map(({ demand, cap }) => demand.high + cap)),
      }
      if (isOwner) request.settling--
      if (outcome.kind === 'settled') this.#settled(request, outcome, coverable)
      else if (outcome.kind === 'gone' && isOwner) this.#gone(request, mayBeGone, 'settlement')
      else if (isOwner && request.state !== 'ended') request.isUnclear = true
      if (outcome.kind === 'unavailable' && isOwner) this.#uncharged(request)
      request.refresh()
    }
  }

  /** How a settlement ended whose outcome was unknown when it was answered. */
  settleLate(request: RequestModel, end: SettleEnd, isOwner: boolean): void {
    if (end.kind === 'settled') this.#settled(request, end, undefined)
    else if (isOwner) this.#uncharged(request)
    request.refresh()
  }

  #uncharged(request: RequestModel): void {
    if (request.charge) this.violate(`M3: ${request.id} gets "nothing was charged", and was charged`)
    request.isUncharged = true
  }

  release(request: RequestModel, isOwner: boolean): (outcome: Observed<ReleaseOutcome>) => void {
    const mayBeGone = request.mayBeGone()
    if (isOwner) request.releasing++
    request.refresh()
    return (outcome) => {
      if (isOwner) request.releasing--
      if (outcome.kind === 'released') {
        if (request.state === 'ended') this.violate(`M3: ${request.id} was released after it had ended`)
        if (request.charge) this.violate(`M3: ${request.id} was released after it was charged`)
        request.end()
      } else if (outcome.kind === 'gone' && isOwner) {
        // Where connections break, a release whose commit was not confirmed is tried again and finds itself.
        if (this.hasFaults && request.state === 'open') this.loosen(request)
        if (!mayBeGone && !request.mayBeGone()) this.violate(`M5: release of ${request.id} finds no hold`)
      } else if (isOwner && request.state === 'open') this.loosen(request)
      request.refresh()
    }
  }

  reaped(id: string): void {
    const request = this.requests.get(id)
    if (!request) return
    if (request.charge) this.violate(`M3: ${id} was reaped after it was charged`)
    if (!request.mayBeGone()) this.violate(`M5: ${id} was reaped though it and its process are alive`)
    if (request.state === 'ended') this.violate(`M3: ${id} was reaped after it had ended`)
    if (request.settling > 0 || request.state === 'asked') request.isLoose = true
    else request.end()
  }

  #settled(
    request: RequestModel,
    outcome: Extract<SettleEnd, { kind: 'settled' }>,
    coverable: Coverable | undefined,
  ): void {
    const { charge: amount, writtenOff, repeated } = outcome
    const { charge } = request
    const found = { amount, writtenOff }
    if (!repeated && ++request.chargers > 1) this.violate(`M3: ${request.id} was charged twice`)
    if (charge) {
      if (charge.amount !== amount || charge.writtenOff !== writtenOff)
        this.violate(`M3: ${request.id} gets another charge than before`)
      return
    }
    if (request.state === 'ended') this.violate(`M3: ${request.id} was charged after it had ended without a charge`)
    if (request.isUncharged) this.violate(`M3: ${request.id} was charged after it was reported as not charged`)
    if (repeated && request.asked.length < 1) this.violate(`M3: ${request.id} has a charge that was not requested`)
    // A repeated charge was decided before this call, when the wallet may have had less or more.
    const fault = this.chargeFault(request, found, repeated || request.isUnclear ? undefined : coverable)
    if (fault) this.violate(fault)
    request.end(found)
  }

  /** The fault in the amounts of a charge; undefined = one of the requested settlements explains them. */
  chargeFault(
    request: RequestModel,
    { amount, writtenOff }: { readonly amount: bigint; readonly writtenOff: bigint },
    coverable?: Coverable,
  ): string | undefined {
    const explains = ({ charge, quoted }: AskedSettlement): boolean => {
      if (amount + writtenOff !== charge) return false
      if (amount === quoted) return quoted <= request.heldMost() || coverable === undefined || coverable.high >= quoted
      // Less than was quoted only if the hold and what is free beside it did not cover it, and then all of both.
      if (amount > quoted || amount < request.held) return false
      return (
        coverable === undefined ||
        (amount >= coverable.low && (amount <= coverable.high || amount <= request.heldMost()))
      )
    }
    if (request.asked.some(explains)) return undefined
    const wanted = request.asked.map(({ charge, quoted }) => `${charge} (quoted ${quoted})`).join(' or ')
    return `M7: ${request.id} held ${request.held} and cost ${wanted}; charged ${amount}, written off ${writtenOff}`
  }

  #gone(request: RequestModel, mayBeGone: boolean, what: string): void {
    if (request.charge) this.violate(`M3: the ${what} of ${request.id} is reported as gone, but it was charged`)
    else if (!mayBeGone && !request.mayBeGone()) this.violate(`M5: the ${what} of ${request.id} finds no hold`)
    // A release that is on its way may be what has ended it, and says so later.
    else if (request.releasing > 0) this.loosen(request)
    else if (request.state !== 'asked') request.end()
  }

  /** Judges whether room was granted or refused with reason. */
  #demand(request: RequestModel, part: string, amount: bigint, room: bigint, extended?: RequestModel) {
    // An extension needs room beside its own hold; leaving out the whole part, that is both together.
    const heldLeast = extended?.held ?? 0n
    const heldMost = () => (extended ? extended.heldMost() - amount : 0n)
    const demands = [request.wallet, ...request.budgets.map((budget) => budget.room)].map((where) => ({
      where,
      demand: where.demand(part),
    }))
    return (outcome: Reservation, what: string): void => {
      for (const { where, demand } of demands) where.end(demand)
      const [wallet, ...budgets] = demands.map(({ demand }) => demand)
      if (!wallet) return
      const walletHigh = wallet.high - heldLeast
      const walletLow = wallet.low - heldMost()
      const isOver = (at: number, side: 'low' | 'high') =>
        (budgets[at]?.[side] ?? 0n) - (side === 'low' ? heldMost() : heldLeast) + (request.budgets[at]?.cap ?? 0n) <
        room
      const fault = (text: string) => this.violate(`M4: ${what} ${text}`)
      if (outcome.kind === 'held') {
        if (walletHigh < room) fault(`was granted, with at most ${walletHigh} free`)
        if (amount > 0n && budgets.some((_, at) => isOver(at, 'high'))) fault('was granted over its cap')
      } else if (outcome.kind === 'insufficient') {
        if (walletLow >= room) fault(`was refused, with at least ${walletLow} free`)
      } else if (outcome.kind === 'over budget') {
        if (walletHigh < room) fault('was refused for a cap, though the wallet cannot pay')
        if (amount === 0n || !budgets.some((_, at) => isOver(at, 'low'))) fault('was refused for a cap that has room')
      }
    }
  }
}

/** What the wallet and the caps can cover for a request, its own hold included: at least, and at most. */
interface Coverable {
  readonly low: bigint
  readonly high: bigint
}

function least(amounts: readonly bigint[]): bigint {
  return amounts.reduce((least, amount) => (amount < least ? amount : least))
}

function isUnclear(outcome: { readonly kind: string }): boolean {
  return outcome.kind === 'lost' || outcome.kind === 'unavailable'
}
