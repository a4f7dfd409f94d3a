import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, openLedger, type TestClock } from '../../test/parts/ledger.ts'
import { runInterleavings } from '../../test/parts/ledger-interleavings.ts'
import { story, storyPlan, Witness } from '../../test/parts/ledger-story.ts'
import type { Database } from '../store/database.ts'

/** Holds of the embedded engine age with the clock of the process, those of replicas with that of the database. */
function expireAllOn(database: Database, clock: TestClock): () => Promise<void> {
  return async () => {
    if (database.engine === 'sqlite') clock.advance(60 * 60_000)
    else
      await database.transaction(
        (sql) => sql`UPDATE holds SET expires_at = 0 WHERE state = 'open' AND request_id IN (
          SELECT request_id FROM holds WHERE state = 'open' ORDER BY request_id FOR UPDATE)`,
      )
  }
}

forEachEngine((engine, storeTest) => {
  storeTest(
    'however calls interleave, a hold ends exactly once and the books are right after every step',
    async ({ database }) => {
      await using books = await openLedger(database)
      const { ledger, clock } = books
      await fc.assert(
        fc.asyncProperty(story, async (reported) => {
          const workspaceId = await addWorkspace(database)
          const expireAll = expireAllOn(database, clock)
          const now = clock.now()
          const plan = storyPlan(database, workspaceId, now)
          const witness = new Witness({ ledger, workspaceId, now, expireAll, plan }, reported.caps)
          await witness.tell(reported, () => expectBooksRight(database))
        }),
        // A story that failed leaves holds behind, so a shorter one would fail for another reason.
        { numRuns: engine.name === 'sqlite' ? 30 : 10, endOnFailure: true },
      )
    },
  )
})

// `npm run interleavings` plays a hundred thousand.
test('the long run plays the requested number of stories, and every store is right at the end', async () => {
  const reported: number[] = []
  await runInterleavings({ stories: 30, seed: 7, onProgress: (done) => reported.push(done) })
  expect(reported.at(-1)).toBe(30)
})
