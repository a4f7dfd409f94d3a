// Runs the world of one seed from beginning to end, and makes a failing one smaller by leaving out actors.

import { Dice } from './dice.ts'
import { embeddedBackend } from './embedded-backend.ts'
import { type LedgerParts, realParts } from './ledger-parts.ts'
import { type EngineName, planOf } from './plan.ts'
import { Scheduler } from './scheduler.ts'
import { sharedBackend } from './shared-backend.ts'
import { takeGlobals } from './virtual-time.ts'
import { World } from './world.ts'

export interface SeedOptions {
  readonly seed: number
  readonly engine: EngineName
  readonly parts?: LedgerParts
  readonly trace?: (line: string) => void
  readonly without?: ReadonlySet<number>
}

export interface SeedResult {
  /** Empty = the ledger kept every promise. */
  readonly violations: readonly string[]
  readonly steps: number
}

export async function simulateSeed(options: SeedOptions): Promise<SeedResult> {
  const { seed, engine, parts = realParts, trace = () => {}, without = new Set<number>() } = options
  const plan = planOf(seed, engine)
  const scheduler = new Scheduler(new Dice(seed + 0x5eed), plan.startsAt, trace)
  const backend = engine === 'embedded' ? embeddedBackend(scheduler, parts) : await sharedBackend(scheduler)
  using _globals = takeGlobals(scheduler, new Dice(seed + 0xd1ce))
  try {
    const violations = await new World({ plan, scheduler, backend, parts, trace, without }).live()
    return { violations, steps: scheduler.steps }
  } finally {
    await backend.close()
  }
}

/** The actors that can be left out while something is still wrong. */
export async function shrinkSeed(options: SeedOptions): Promise<ReadonlySet<number>> {
  const { actors } = planOf(options.seed, options.engine)
  const without = new Set<number>()
  for (let at = actors.length - 1; at >= 0; at--) {
    const { violations } = await simulateSeed({ ...options, without: new Set([...without, at]) })
    if (violations.length > 0) without.add(at)
  }
  return without
}
