// The share of the simulated worlds that runs with every change: three hundred of the embedded ledger, a few of replicas on a
// real PostgreSQL, and the seeds that once failed. `npm run simulate` does as many as one likes.

import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../parts/postgres.ts'
import type { EngineName } from './plan.ts'
import { type FailedSeed, runSeeds } from './run-seeds.ts'
import { knownSeeds } from './seeds.ts'
import { simulateSeed } from './simulate-seed.ts'

async function failuresOf(engine: EngineName, first: number, seeds: number): Promise<readonly FailedSeed[]> {
  const failures: FailedSeed[] = []
  await runSeeds({ engine, first, seeds, onProgress: ({ failed }) => void (failed && failures.push(failed)) })
  return failures
}

/** Ids of transfers and replicas are random in the product. */
async function traceOf(seed: number): Promise<string> {
  const lines: string[] = []
  await simulateSeed({ seed, engine: 'embedded', trace: (line) => lines.push(line) })
  return lines.join('\n').replaceAll(/tr_[0-9A-Z]{26}/g, 'tr')
}

test('M1–M8: three hundred worlds of the embedded ledger keep every promise', async () => {
  expect(await failuresOf('embedded', 1, 300)).toEqual([])
})

test('the same seed is the same world, step by step', async () => {
  for (const seed of [2, 5, 10]) expect(await traceOf(seed)).toBe(await traceOf(seed))
})

function testKnownSeeds(engine: EngineName): void {
  for (const { seed, found } of knownSeeds.filter((known) => known.engine === engine)) {
    test(`seed ${seed} of the ${engine} ledger, which once failed: ${found}`, async () => {
      expect((await simulateSeed({ engine, seed })).violations).toEqual([])
    })
  }
}

testKnownSeeds('embedded')

describe.skipIf(findPostgresPrograms() === undefined)('on postgres', () => {
  test('M1–M8: a few worlds of replicas on one database keep every promise', async () => {
    expect(await failuresOf('shared', 10, 3)).toEqual([])
  })

  testKnownSeeds('shared')
})
