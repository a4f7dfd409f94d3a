// A first start, step by step. Run as a separate process, it prints the key that it shows and kills itself with SIGKILL at
// the step given as its last argument. Steps are what the start does to the world, one by one, in order.

import { writeSync } from 'node:fs'
import { systemClock } from '../../src/kernel/clock.ts'
import { openDataFolder } from '../../src/store/data-folder.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import type { Sql } from '../../src/store/sql.ts'
import { ensureFirstStart } from '../../src/tenancy/first-start.ts'
import { loadMasterSecret } from '../../src/tenancy/secrets.ts'

export interface FirstStart {
  readonly url: string | undefined
  readonly dataFolder: string
  step(): void
  show(key: string): void
}

export async function firstStart({ url, dataFolder, step, show }: FirstStart): Promise<void> {
  const plainFolder = openDataFolder(dataFolder, () => {})
  const folder = {
    ...plainFolder,
    write(name: string, text: string) {
      step()
      plainFolder.write(name, text)
      step()
    },
  }
  /** A step before every statement. */
  const stepping = (sql: Sql): Sql =>
    ((first: TemplateStringsArray, ...values: []) => {
      if ('raw' in first) step()
      return sql(first, ...values)
    }) as Sql
  const plain = await openDatabase({ url, dataFolder: folder.path })
  const database: Database = {
    ...plain,
    transaction: async (work) => {
      const result = await plain.transaction(async (sql) => {
        const done = await work(stepping(sql))
        step()
        return done
      })
      step()
      return result
    },
  }
  const secret = loadMasterSecret(undefined, folder)
  await migrate({ database, clock: systemClock })
  const started = await ensureFirstStart({ database, folder, secret, clock: systemClock })
  await started.show((firstKey) => {
    step()
    if (firstKey !== undefined) show(firstKey)
    step()
  })
  await database.close()
}

if (import.meta.main) {
  const [url, dataFolder = '', dieAt] = process.argv.slice(2)
  let steps = 0
  await firstStart({
    url: url || undefined,
    dataFolder,
    step() {
      steps++
      if (steps === Number(dieAt)) process.kill(process.pid, 'SIGKILL')
    },
    show: (key) => void writeSync(1, `${key}\n`),
  })
}
