import { describe, expect, test } from 'bun:test'
import { availableParallelism } from 'node:os'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { createTurns } from '../parts/turns.ts'
import { type Engine, runCycles } from './run-cycles.ts'

// The short version of `npm run crash`. Both engines at once: while one waits for a reap the other has the cores.

const cycles = 25
const engines: readonly Engine[] = ['sqlite', 'postgres']
const takeTurn = createTurns(availableParallelism())

for (const engine of engines) {
  describe.skipIf(engine === 'postgres' && findPostgresPrograms() === undefined)(`on ${engine}`, () => {
    test.concurrent(`after a kill in the middle of fifty streams every promise of the ledger holds, ${cycles} times`, async () => {
      const { results, cycles: counted } = await runCycles({ engine, cycles, takeTurn })
      expect(results.flatMap(({ violations }) => violations)).toEqual([])
      expect(counted).toBe(cycles)
      // Neither a gateway that refused everything nor a load that never came would have shown anything.
      expect(results.reduce((sum, { complete }) => sum + complete, 0)).toBeGreaterThan(10 * cycles)
    }, 600_000)
  })
}
