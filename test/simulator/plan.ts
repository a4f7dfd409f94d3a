// The events in the world of a seed, decided beforehand: how many processes, wallets and caps there are, who calls what and
// when, and what goes wrong. Every actor has separate dice, so that one can be left out without changing the others.

import { Dice } from './dice.ts'

export type EngineName = 'embedded' | 'shared'

export interface Trouble {
  readonly kind: 'crash' | 'freeze' | 'outage'
  readonly process: number
  readonly atMs: number
  readonly lastsMs: number
}

export interface Plan {
  readonly seed: number
  readonly engine: EngineName
  readonly processes: number
  readonly wallets: number
  readonly startsAt: number
  readonly hasFaults: boolean
  /** How likely a failpoint kills. */
  readonly killShare: number
  readonly troubles: readonly Trouble[]
  /** Amount of the first top-up of each wallet. */
  readonly funds: bigint
  readonly caps: readonly [day: bigint, month: bigint]
  /** Granted to each wallet every day, and gone with the day; 0 = there is no plan. */
  readonly credit: bigint
  readonly actors: readonly ActorKind[]
}

export type ActorKind = 'request' | 'fund' | 'reap' | 'correct' | 'renew'

/** Five seconds before a new month. */
const newMonthAt = Date.UTC(2027, 0, 31, 23, 59, 55)
const quietAt = Date.UTC(2027, 0, 15, 11, 0, 0)

export function planOf(seed: number, engine: EngineName): Plan {
  const dice = new Dice(seed)
  const processes = engine === 'embedded' ? 1 : dice.int(2, 3)
  const hasFaults = dice.chance(0.5)
  const troubles = Array.from({ length: dice.chance(0.6) ? dice.int(1, 3) : 0 }, () =>
    troubleOf(dice, engine, processes, hasFaults),
  )
  const actors = Array.from({ length: dice.int(6, 18) }, () =>
    dice.pick<ActorKind>(['request', 'request', 'request', 'request', 'fund', 'reap']),
  )
  // With separate dice, so that the rest of a world is the same with and without them.
  const others = new Dice(seed * 17 + 11)
  // A crash while the disk still fails, after settlements have been given up.
  for (const { kind, process, atMs, lastsMs } of [...troubles]) {
    if (kind === 'outage' && lastsMs > 40_000)
      troubles.push({ kind: 'crash', process, atMs: atMs + others.int(33_000, 44_000), lastsMs: 0 })
  }
  if (others.chance(0.6)) actors.push(...Array.from({ length: others.int(1, 4) }, () => 'correct' as const))
  const wallets = dice.int(1, 2)
  const startsAt = dice.chance(0.3) ? newMonthAt : quietAt
  const grants = new Dice(seed * 23 + 5)
  const credit = grants.chance(startsAt === newMonthAt ? 0.7 : 0.1) ? BigInt(grants.int(1, 6_000)) : 0n
  if (credit > 0n) actors.push(...Array.from({ length: grants.int(1, 4) }, () => 'renew' as const))
  return {
    seed,
    engine,
    processes,
    wallets,
    startsAt,
    credit,
    hasFaults,
    killShare: troubles.length > 0 ? 0.01 : 0,
    troubles,
    funds: BigInt(dice.int(0, 12_000)),
    caps: [BigInt(dice.int(0, 12_000)), BigInt(dice.int(2_000, 20_000))],
    actors,
  }
}

function troubleOf(dice: Dice, engine: EngineName, processes: number, hasFaults: boolean): Trouble {
  const kinds: Trouble['kind'][] = ['crash', 'crash']
  if (engine === 'shared') kinds.push('freeze')
  if (hasFaults) kinds.push('outage')
  return {
    kind: dice.pick(kinds),
    process: dice.int(0, processes - 1),
    atMs: dice.chance(0.7) ? dice.int(0, 1500) : dice.int(0, 20_000),
    lastsMs: dice.pick([100, 3000, 18_000, 26_000, 45_000]),
  }
}
