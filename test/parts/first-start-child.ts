// Run as a process of its own: starts on a place, prints the first key if it shows it, then the number of its steps, and
// kills itself with SIGKILL at the step given as last argument (0 = never). Steps are what the start does to the world,
// one by one, in order.

import { writeSync } from 'node:fs'
import { systemClock } from '../../src/kernel/clock.ts'
import { openDataFolder } from '../../src/store/data-folder.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import type { Sql } from '../../src/store/sql.ts'
import { ensureFirstStart } from '../../src/tenancy/first-start.ts'
import { loadMasterSecret } from '../../src/tenancy/secrets.ts'

const [url, dataFolder, dieAt] = process.argv.slice(2)
let steps = 0

function step(): void {
  steps++
  if (steps === Number(dieAt)) process.kill(process.pid, 'SIGKILL')
}

/** A step before every statement. */
function stepping(sql: Sql): Sql {
  return ((first: TemplateStringsArray, ...values: []) => {
    if ('raw' in first) step()
    return sql(first, ...values)
  }) as Sql
}

const plainFolder = openDataFolder(dataFolder ?? '', () => {})
const folder = {
  ...plainFolder,
  write(name: string, text: string) {
    step()
    plainFolder.write(name, text)
    step()
  },
}
const plain = await openDatabase({ url: url || undefined, dataFolder: folder.path })
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
const { show } = await ensureFirstStart({ database, folder, secret, clock: systemClock })
await show((firstKey) => {
  step()
  if (firstKey !== undefined) writeSync(1, `${firstKey}\n`)
  step()
})
await database.close()
writeSync(1, `${steps} steps\n`)
