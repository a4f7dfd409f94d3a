// Whether the simulator would notice: each deliberate mistake in a copy of the ledger must break a promise within few
// seeds. Those in the code of replicas need a PostgreSQL.

import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { mutatedParts } from './ledger-parts.ts'
import { type Mutation, mutations } from './mutations.ts'
import { simulateSeed } from './simulate-seed.ts'

const seedsMost = { embedded: 60, shared: 12 } as const

/** The first seed at which it shows, and what it breaks. */
async function firstCatch(mutation: Mutation): Promise<string | undefined> {
  const parts = await mutatedParts(mutation)
  const { firstSeed = 1 } = mutation
  for (let seed = firstSeed; seed < firstSeed + seedsMost[mutation.engine]; seed++) {
    const { violations } = await simulateSeed({ seed, engine: mutation.engine, parts })
    if (violations.length > 0) return `seed ${seed}: ${violations[0]}`
  }
  return undefined
}

for (const engine of ['embedded', 'shared'] as const) {
  describe.skipIf(engine === 'shared' && findPostgresPrograms() === undefined)(
    `the ${engine} ledger is caught when`,
    () => {
      for (const mutation of mutations.filter((one) => one.engine === engine)) {
        test(mutation.name, async () => {
          expect(await firstCatch(mutation)).toMatch(/^seed \d+: /)
        })
      }
    },
  )
}
