// What a run has shown: three amounts that should agree. What the provider served, what the gateway says was spent, and what
// the limit allowed.

import { atLeastZero } from './money.js'

/**
 * @typedef {object} Run
 * @property {bigint} served
 * @property {bigint} spent
 * @property {bigint} allowed
 * @property {bigint} delivered what the complete answers cost that callers got
 * @property {boolean} hasText whether a caller got a part of an answer
 * @property {'counted' | 'estimated'} charges
 */

/**
 * Amounts of zero are as they should be.
 *
 * @typedef {object} Verdict
 * @property {bigint} over what was charged beyond the limit
 * @property {bigint} servedOver what the provider served beyond the limit
 * @property {bigint} uncharged answers that were delivered and not charged
 * @property {bigint} twice what was charged and never served
 */

/** @param {Run} run @returns {Verdict} */
export function judge({ served, spent, allowed, delivered, hasText, charges }) {
  const isCounted = charges === 'counted'
  return {
    over: atLeastZero(spent - allowed),
    servedOver: atLeastZero(served - allowed),
    // Where only an estimate is possible, a difference says how good it is, and not that something was forgotten.
    uncharged: isCounted ? atLeastZero(delivered - spent) : spent === 0n && hasText ? served : 0n,
    twice: isCounted ? atLeastZero(spent - served) : 0n,
  }
}
