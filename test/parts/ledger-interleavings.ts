// Tells thousands of random stories on the embedded ledger, a fresh store for each portion, and verifies every store at
// the end. Stories of one store follow each other; what interleaves are the calls inside a story.

import fc from 'fast-check'
import { systemClock } from '../../src/kernel/clock.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { createThrowAwayFolder } from './engines.ts'
import { addWorkspace, expectBooksRight, openLedger } from './ledger.ts'
import { story, storyPlan, Witness } from './ledger-story.ts'

const portionMax = 1000

export interface Interleavings {
  readonly stories: number
  /** The stories follow from it. */
  readonly seed: number
  onProgress?(done: number): void
}

export async function runInterleavings({ stories, seed, onProgress = () => {} }: Interleavings): Promise<void> {
  for (let done = 0; done < stories; ) {
    const count = Math.min(portionMax, stories - done)
    await runPortion(count, seed + done, (run) => onProgress(done + run))
    done += count
  }
}

async function runPortion(count: number, seed: number, onRun: (run: number) => void): Promise<void> {
  using folder = createThrowAwayFolder()
  const database = await openDatabase({ url: undefined, dataFolder: folder.path })
  try {
    await migrate({ database, clock: systemClock })
    await using books = await openLedger(database)
    const { ledger, clock } = books
    let run = 0
    await fc.assert(
      fc.asyncProperty(story, async (one) => {
        const workspaceId = await addWorkspace(database)
        const expireAll = async () => clock.advance(60 * 60_000)
        const now = clock.now()
        const plan = storyPlan(database, workspaceId, now)
        await new Witness({ ledger, workspaceId, now, expireAll, plan }, one.caps).tell(one)
        onRun(++run)
      }),
      { numRuns: count, seed, endOnFailure: true },
    )
    await expectBooksRight(database)
  } finally {
    await database.close()
  }
}
