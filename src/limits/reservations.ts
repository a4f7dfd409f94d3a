// Tokens are taken from a bucket by an estimate and corrected when the real count is known: less is as if the rest had
// never been reserved, more is taken when it becomes known.
//
// The rest is not simply given back. A bucket that is full does not refill, so what an estimate kept out of it may have
// come back by itself: of 1,000 per minute, 1,000 reserved for 59 seconds and never used would be refilled, reserved by
// the next and then given back to a third, 2,000 in one moment. Had the rest never been reserved, the bucket would be
// fuller by the rest, but at no time since by more than was in use at that time. So the rest counts up to the least that
// was in use since the reservation, and that is remembered of each.

import { type Bucket, unitsPerWhole } from './bucket.ts'

/** Tokens set aside for a running request. */
export interface Reservation {
  readonly units: number
  readonly past: Past
}

/** Neighbouring reservations since which the least in use is the same. */
interface Past {
  leastUnits: number
  /** Reservations that still run. */
  running: number
  /** An older one with which it has become the same. */
  mergedInto: Past | undefined
}

export class Reservations {
  readonly #bucket: Bucket
  /** Oldest first, and so the smallest least first: a later reservation looks back on a part of an earlier one's past. */
  readonly #pasts: Past[] = []

  constructor(bucket: Bucket) {
    this.#bucket = bucket
  }

  reserve(tokens: number): Reservation {
    const units = tokens * unitsPerWhole
    this.#lower(this.#pasts.length, this.#bucket.usedUnits)
    this.#bucket.take(units)
    const past: Past = { leastUnits: this.#bucket.usedUnits, running: 1, mergedInto: undefined }
    this.#pasts.push(past)
    return { units, past }
  }

  /** Ends a reservation, once, with what was really used. */
  correct(reservation: Reservation, tokens: number): void {
    this.#lower(this.#pasts.length, this.#bucket.usedUnits)
    const past = latest(reservation.past)
    const restUnits = reservation.units - tokens * unitsPerWhole
    if (restUnits < 0) this.#bucket.take(-restUnits)
    else this.#giveBack(past, Math.min(restUnits, past.leastUnits))
    const still = latest(past)
    still.running--
    if (still.running === 0) this.#pasts.splice(this.#pasts.indexOf(still), 1)
  }

  /** How many pasts are told apart: at most as many as reservations run. */
  get pastCount(): number {
    return this.#pasts.length
  }

  /** The past is told anew without these units, to everyone whose past it is. */
  #giveBack(past: Past, units: number): void {
    this.#bucket.giveBack(units)
    const at = this.#pasts.indexOf(past)
    for (let later = at; later < this.#pasts.length; later++) {
      const each = this.#pasts[later]
      if (each) each.leastUnits -= units
    }
    this.#lower(at + 1, past.leastUnits)
  }

  /** Of the pasts before `end`, those with a larger least become one with this least. */
  #lower(end: number, leastUnits: number): void {
    let start = end
    while (start > 0 && (this.#pasts[start - 1]?.leastUnits ?? 0) >= leastUnits) start--
    const oldest = this.#pasts[start]
    if (start === end || !oldest) return
    oldest.leastUnits = leastUnits
    if (end - start === 1) return
    for (const each of this.#pasts.splice(start + 1, end - start - 1)) {
      oldest.running += each.running
      each.mergedInto = oldest
    }
  }
}

function latest(past: Past): Past {
  let found = past
  while (found.mergedInto) {
    // Shortens the way for the next.
    found.mergedInto = found.mergedInto.mergedInto ?? found.mergedInto
    found = found.mergedInto
  }
  return found
}
