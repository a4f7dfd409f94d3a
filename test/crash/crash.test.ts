import { describe, expect, test } from 'bun:test'
import { availableParallelism } from 'node:os'
import { failpointNames } from '../../src/kernel/failpoint.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { createTurns } from '../parts/turns.ts'
import type { CycleResult } from './cycle.ts'
import { type Engine, runCycles } from './run-cycles.ts'

// The short version of `npm run crash`. Both engines at once: while one waits for a reap the other has the cores.

const cycles = 25
/** Waits out a machine under heavy load. The limit of a minute is checked by `npm run crash` and the simulator. */
const reapedWithinMs = 1_200_000
const engines: readonly Engine[] = ['sqlite', 'postgres']
const takeTurn = createTurns(availableParallelism())
const hasPostgres = findPostgresPrograms() !== undefined
/** Of both engines. */
const all: CycleResult[] = []

for (const engine of engines) {
  describe.skipIf(engine === 'postgres' && !hasPostgres)(`on ${engine}`, () => {
    test.concurrent(`after a kill in the middle of fifty streams every promise of the ledger holds, ${cycles} times`, async () => {
      const { results, cycles: counted } = await runCycles({ engine, cycles, takeTurn, reapedWithinMs })
      all.push(...results)
      expect(results.flatMap(({ violations }) => violations)).toEqual([])
      expect(counted).toBe(cycles)
      // Neither a gateway that refused everything nor a load that never came would have shown anything.
      expect(results.reduce((sum, { complete }) => sum + complete, 0)).toBeGreaterThan(10 * cycles)
    })
  })
}

// In 25 cycles every one of the nine comes twice on each engine. A place that is no longer there kills nobody.
test.skipIf(!hasPostgres)('every failpoint killed somebody', () => {
  const deaths = all.filter(({ killedBy, laterKills }) => killedBy === 'failpoint' || laterKills > 0)
  expect(new Set(deaths.map(({ failpoint }) => failpoint))).toEqual(new Set(failpointNames))
})
