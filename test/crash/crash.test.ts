import { describe, expect, test } from 'bun:test'
import { availableParallelism } from 'node:os'
import { requestFailpoints } from '../../src/kernel/failpoint.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { createTurns } from '../parts/turns.ts'
import type { CycleResult } from './cycle.ts'
import { type Engine, runCycles } from './run-cycles.ts'

// The short version of `npm run crash`. Both engines run side by side: while one waits for a reap the other uses the cores.

/** Each failpoint once on each engine. Kills at other moments are for `npm run crash`. */
const cycles = requestFailpoints.length
/** Allows for a machine under heavy load. The limit of a minute is checked by `npm run crash` and the simulator. */
const reapedWithinMs = 1_200_000
const engines: readonly Engine[] = ['sqlite', 'postgres']
const takeTurn = createTurns(availableParallelism())
const hasPostgres = findPostgresPrograms() !== undefined
/** The results of both engines. */
const all: CycleResult[] = []

for (const engine of engines) {
  describe.skipIf(engine === 'postgres' && !hasPostgres)(`on ${engine}`, () => {
    test.concurrent(`the ledger keeps every promise after each of ${cycles} kills in the middle of fifty streams`, async () => {
      const { results, cycles: counted } = await runCycles({ engine, cycles, takeTurn, reapedWithinMs })
      all.push(...results)
      expect(results.flatMap(({ violations }) => violations)).toEqual([])
      expect(counted).toBe(cycles)
      // A gateway that refused every call, or a load that never came, would prove nothing.
      expect(results.reduce((sum, { complete }) => sum + complete, 0)).toBeGreaterThan(10 * cycles)
    })
  })
}

// A failpoint that the code no longer reaches kills no process.
test.skipIf(!hasPostgres)('every failpoint killed a gateway', () => {
  const deaths = all.filter(({ killedBy, laterKills }) => killedBy === 'failpoint' || laterKills > 0)
  expect(new Set(deaths.map(({ failpoint }) => failpoint))).toEqual(new Set(requestFailpoints))
})
