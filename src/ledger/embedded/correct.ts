// A correction on the embedded engine. What is to be taken is set aside in memory like the hold of a request, so that no
// request can be promised it meanwhile, and leaves the balance only when the transfer is durable.

import { assert } from '../../kernel/assert.ts'
import { createId } from '../../kernel/ids.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import { type Correction, type CorrectOutcome, recordCorrection } from '../correct.ts'
import type { Gate } from '../gate.ts'
import type { Insufficient } from '../insufficient.ts'
import type { LedgerOptions } from '../options.ts'
import { unavailable } from '../unavailable.ts'
import type { Claim, WalletBook } from './wallet-book.ts'

export interface CorrectDependencies {
  readonly book: WalletBook
  readonly gate: Gate
  /** The correction is committed, and the book could not be changed with it. */
  onBroken(thrown: unknown): void
}

export async function correct(
  { database, clock, reach }: LedgerOptions,
  { book, gate, onBroken }: CorrectDependencies,
  correction: Correction,
): Promise<CorrectOutcome> {
  let claim: Claim | undefined
  const reserve = () => {
    const set = setAside(book, correction, clock.now())
    if ('kind' in set) return set
    claim = set
    return undefined
  }
  const end = gate.begin()
  let outcome: CorrectOutcome
  try {
    outcome = await database.transaction((sql) =>
      recordCorrection(sql, correction, { now: clock.now(), reach, reserve }),
    )
    end('committed')
  } catch (thrown) {
    // SQLite has undone what it could not commit.
    if (claim) book.drop(claim)
    const isUnavailable = isStoreUnavailable(thrown)
    end(isUnavailable ? 'failed' : 'undecided')
    if (isUnavailable) return unavailable
    throw thrown
  }
  const isMade = outcome.kind === 'corrected' && !outcome.repeated
  // Before anything else can happen: the next hold must see what the database says.
  try {
    if (claim) isMade ? book.commit(claim) : book.drop(claim)
    else if (isMade) book.credit(correction.workspaceId, correction.amount)
  } catch (thrown) {
    onBroken(thrown)
  }
  return outcome
}

/** Claimed at once: the reaper, which ends holds past their time, must not end this one. */
function setAside(book: WalletBook, { workspaceId, amount }: Correction, now: number): Claim | Insufficient {
  const id = createId('req')
  const terms = { amount, roomLeast: undefined, now, expiresAtMs: Number.POSITIVE_INFINITY, budgets: undefined }
  const reservation = book.hold(id, workspaceId, terms)
  if (reservation.kind === 'insufficient') return reservation
  const claim = book.claim(id, amount)
  assert(claim, 'what was just held is open')
  return claim
}
