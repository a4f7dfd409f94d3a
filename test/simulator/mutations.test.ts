// Whether the simulator would notice: each deliberate mistake in a copy of the ledger must break a promise within a few hundred
// seeds. Those in the code of replicas need a PostgreSQL.

import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { mutatedParts } from './ledger-parts.ts'
import { type Mutation, mutations } from './mutations.ts'
import { planOf } from './plan.ts'
import { simulateSeed } from './simulate-seed.ts'

const seedsMost = { embedded: 400, shared: 12 } as const

/** The first seed at which it shows, and what it breaks. Of rare conditions, only seeds that have them are run. */
async function firstCatch({ engine, mayShow = () => true, ...mutation }: Mutation): Promise<string | undefined> {
  const parts = await mutatedParts({ engine, ...mutation })
  for (let seed = 1, left = seedsMost[engine]; left > 0; seed++) {
    if (!mayShow(planOf(seed, engine))) continue
    const { violations } = await simulateSeed({ seed, engine, parts })
    if (violations.length > 0) return `seed ${seed}: ${violations[0]}`
    left--
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
