// Runs the worlds of many seeds one after the other, and makes those that fail smaller before it tells of them.

import { type LedgerParts, realParts } from './ledger-parts.ts'
import type { EngineName } from './plan.ts'
import { type SeedResult, shrinkSeed, simulateSeed } from './simulate-seed.ts'

export interface SeedRange {
  readonly engine: EngineName
  readonly first: number
  readonly seeds: number
}

/** A world that failed, and how to see it again. */
export interface FailedSeed {
  readonly seed: number
  readonly violation: string
  readonly replay: string
}

export interface SeedProgress {
  readonly done: number
  readonly steps: number
  readonly failed: FailedSeed | undefined
}

export interface RunSeedsOptions extends SeedRange {
  readonly parts?: LedgerParts
  onProgress?(progress: SeedProgress): void
}

/** More would only repeat what the first ones say. */
const failuresMax = 5

export async function runSeeds({
  engine,
  first,
  seeds,
  parts = realParts,
  onProgress = () => {},
}: RunSeedsOptions): Promise<boolean> {
  let failures = 0
  for (let done = 0; done < seeds && failures < failuresMax; done++) {
    const options = { seed: first + done, engine, parts }
    const result = await simulateSeed(options)
    const failed = result.violations.length > 0 ? await describeFailure(options, result) : undefined
    if (failed) failures++
    onProgress({ done: 1, steps: result.steps, failed })
  }
  return failures === 0
}

async function describeFailure(
  options: { readonly seed: number; readonly engine: EngineName; readonly parts: LedgerParts },
  { violations }: SeedResult,
): Promise<FailedSeed> {
  const { seed, engine } = options
  const without = [...(await shrinkSeed(options))].sort((a, b) => a - b)
  const left = without.length > 0 ? ` --without ${without.join(',')}` : ''
  const replay = `npm run simulate -- --engine ${engine} --seed ${seed}${left} --trace`
  return { seed, violation: violations[0] ?? '', replay }
}
