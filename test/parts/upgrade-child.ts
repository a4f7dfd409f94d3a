// An upgrade, statement by statement. Run as a separate process, it kills itself with SIGKILL at the step given as its
// last argument: before and after each statement of the migration, before its commit and after it.

import { systemClock } from '../../src/kernel/clock.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { nextMigrations, nextStatements } from '../upgrade/next-migration.ts'

interface Upgrade {
  readonly url: string | undefined
  readonly dataFolder: string
  step(): void
}

/** Returns the names of the migrations that it applied. */
export async function upgrade({ url, dataFolder, step }: Upgrade): Promise<readonly string[]> {
  const plain = await openDatabase({ url, dataFolder })
  const database: Database = {
    ...plain,
    async schemaTransaction(work) {
      let changes = false
      const outcome = await plain.schemaTransaction(async (sql, runScript) => {
        const result = await work(sql, async () => {
          changes = true
          for (const statement of nextStatements) {
            step()
            await runScript(statement)
          }
          step()
        })
        if (changes) step()
        return result
      })
      if (changes) step()
      return outcome
    },
  }
  try {
    return await migrate({ database, clock: systemClock, migrations: nextMigrations })
  } finally {
    await database.close()
  }
}

if (import.meta.main) {
  const [url, dataFolder = '', dieAt] = process.argv.slice(2)
  let steps = 0
  await upgrade({
    url: url || undefined,
    dataFolder,
    step() {
      steps++
      if (steps === Number(dieAt)) process.kill(process.pid, 'SIGKILL')
    },
  })
}
