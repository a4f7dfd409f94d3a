// Bounds how often secrets that people choose or type can be guessed: passwords, and the codes of devices. An attempt counts
// before its secret is compared, so that many at once gain nothing, and a right one is forgiven. Counted in memory, so each
// replica has these bounds. Nothing that one network does can refuse the people of others.

import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'

/** As long as the code of a device is valid. */
const windowMs = 10 * 60_000

/** Attempts in ten minutes. */
const bounds = {
  accountAtNetwork: 10,
  /** More than one network can use up: a hundred of them have to guess together. */
  account: 1000,
  person: 20,
  peopleAtNetwork: 200,
  /** Of 2.6 × 10^10 codes: with 1,000 devices waiting, a guess is right once in 13,000 such windows. */
  everyone: 2000,
  startsAtNetwork: 500,
} as const

export interface Attempt {
  /** It was right, or nothing was compared. */
  forgive(): void
}

/** An attempt that has to wait so long, or what takes it back. */
type Counted = { readonly waitMs: number } | { takeBack(): void }

type Counter = (name: string) => Counted

const namesMax = 10_000

/** A window that slides, so that the bound holds for any ten minutes. */
function createCounter(clock: Pick<Clock, 'monotonicMs'>, max: number): Counter {
  const byName = new Map<string, number[]>()
  return (name) => {
    const now = clock.monotonicMs()
    const times = (byName.get(name) ?? []).filter((time) => now - time < windowMs)
    const [oldest = now] = times
    // The first name is the one that was not used for the longest, so a flood of names cannot use more memory than this.
    byName.delete(name)
    byName.set(name, times)
    const [first = name] = byName.keys()
    if (byName.size > namesMax) byName.delete(first)
    if (times.length >= max) return { waitMs: oldest + windowMs - now }
    times.push(now)
    return {
      takeBack() {
        const current = byName.get(name)
        const at = current?.indexOf(now) ?? -1
        if (at !== -1) current?.splice(at, 1)
      },
    }
  }
}

/** Counts by each name, or by none if one of them has had too many. */
function begin(counted: readonly (readonly [Counter, string])[], refusal: (wait: string) => string): Attempt | Failure {
  const taken: { takeBack(): void }[] = []
  const forgive = () => {
    for (const each of taken.splice(0)) each.takeBack()
  }
  for (const [count, name] of counted) {
    const outcome = count(name)
    if ('takeBack' in outcome) taken.push(outcome)
    else {
      forgive()
      const minutes = Math.ceil(outcome.waitMs / 60_000)
      const wait = minutes === 1 ? 'a minute' : `${minutes} minutes`
      return new Failure('LIMIT_EXCEEDED', refusal(wait), { retryAfterMs: outcome.waitMs })
    }
  }
  return { forgive }
}

export type GuessLimits = ReturnType<typeof createGuessLimits>

/** `network`: as `networkOf` in kernel/ip-range.ts names it. */
export function createGuessLimits(clock: Pick<Clock, 'monotonicMs'>) {
  const counter = (name: keyof typeof bounds) => createCounter(clock, bounds[name])
  const [accountAtNetwork, account] = [counter('accountAtNetwork'), counter('account')]
  const [person, peopleAtNetwork, everyone] = [counter('person'), counter('peopleAtNetwork'), counter('everyone')]
  const startsAtNetwork = counter('startsAtNetwork')
  return {
    password: (email: string, network: string) =>
      begin(
        [
          [accountAtNetwork, `${email} ${network}`],
          [account, email],
        ],
        (wait) => `Too many wrong passwords for this account. Retry in ${wait}, or ask an admin for a reset link.`,
      ),
    userCode: (personId: string, network: string) =>
      begin(
        [
          [person, personId],
          [peopleAtNetwork, network],
          [everyone, ''],
        ],
        (wait) => `Too many wrong codes of devices were entered. Retry in ${wait}.`,
      ),
    deviceStart: (network: string) =>
      begin(
        [[startsAtNetwork, network]],
        (wait) => `Too many sign-ins of devices were started from your network. Retry in ${wait}.`,
      ),
  }
}
