import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { type Engine, runCycles } from './run-cycles.ts'

// The short version of `npm run crash`, which takes longer and goes through all failpoints several times.

const cycles = 3
const engines: readonly Engine[] = ['sqlite', 'postgres']

for (const engine of engines) {
  describe.skipIf(engine === 'postgres' && findPostgresPrograms() === undefined)(`on ${engine}`, () => {
    test(`after a kill in the middle of fifty streams every promise of the ledger holds, ${cycles} times`, async () => {
      const { results, cycles: counted } = await runCycles({ engine, cycles })
      expect(results.flatMap(({ violations }) => violations)).toEqual([])
      expect(counted).toBe(cycles)
      // Neither a gateway that refused everything nor a load that never came would have shown anything.
      expect(results.reduce((sum, { complete }) => sum + complete, 0)).toBeGreaterThan(50)
    }, 240_000)
  })
}
