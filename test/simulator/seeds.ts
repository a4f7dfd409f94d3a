// Seeds whose worlds once broke a promise, each with what it found; they run again with every run of the tests. A new
// one is a line, added with the fix. The story of a seed changes when the simulator does: then it is only one seed more.

import type { EngineName } from './plan.ts'

export interface KnownSeed {
  readonly engine: EngineName
  readonly seed: number
  readonly found: string
}

export const knownSeeds: readonly KnownSeed[] = [
  {
    engine: 'embedded',
    seed: 348,
    found: 'a commit that hung, was given up, and then failed though it was written left the book above the disk',
  },
  {
    engine: 'shared',
    seed: 177,
    found: 'a settlement that came again while the database was away threw instead of answering "unavailable"',
  },
]
