// Slows down whoever tries tokens: after a few wrong ones in a minute each answer to an address waits a second, and
// beyond a number of waiting ones further ones are refused at once. A right token is never asked about here.

import type { Clock } from '../../kernel/clock.ts'

export interface GuessBrake {
  /** False: so many wrong ones wait for their answer already that one more is not kept waiting. */
  admits(address: string): boolean
  /** Resolves when the wrong one may be answered. */
  afterWrong(address: string): Promise<void>
}

export interface GuessBrakeOptions {
  readonly clock: Clock
  pause(milliseconds: number): Promise<void>
}

const freeGuesses = 10
const windowMs = 60_000
const pauseMs = 1000
/** What an address may have waiting here, on however many connections: each costs a timer and a connection. */
const waitingMax = 32
const addressesMax = 10_000

interface Guesses {
  readonly sinceMs: number
  wrong: number
  waiting: number
}

export function createGuessBrake({ clock, pause }: GuessBrakeOptions): GuessBrake {
  const byAddress = new Map<string, Guesses>()

  function guessesOf(address: string): Guesses {
    const known = byAddress.get(address)
    const now = clock.monotonicMs()
    if (known && (known.waiting > 0 || now - known.sinceMs < windowMs)) return known
    const fresh = { sinceMs: now, wrong: 0, waiting: 0 }
    byAddress.delete(address)
    // The first is the oldest: a flood of addresses costs memory for these only.
    const oldest = byAddress.keys().next()
    if (byAddress.size >= addressesMax && !oldest.done) byAddress.delete(oldest.value)
    byAddress.set(address, fresh)
    return fresh
  }

  return {
    admits: (address) => (byAddress.get(address)?.waiting ?? 0) < waitingMax,
    async afterWrong(address) {
      const guesses = guessesOf(address)
      guesses.wrong++
      if (guesses.wrong <= freeGuesses) return
      guesses.waiting++
      try {
        await pause(pauseMs)
      } finally {
        guesses.waiting--
      }
    },
  }
}
