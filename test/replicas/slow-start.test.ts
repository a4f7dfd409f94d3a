import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { systemClock } from '../../src/kernel/clock.ts'
import { StartRefusal } from '../../src/store/start-refusal.ts'
import { startCrashApp } from '../parts/crash-app.ts'
import { createEngine } from '../parts/engines.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'

describe.skipIf(findPostgresPrograms() === undefined)('on postgres', () => {
  test('a database that does not answer in time at the start is a refusal that says what to do', async () => {
    using place = await createEngine('postgres').createPlace()
    mkdirSync(place.dataFolder, { recursive: true, mode: 0o700 })
    const configPath = join(place.dataFolder, 'tollgate.yaml')
    writeFileSync(configPath, 'models: []\n')
    const data = { dataFolder: place.dataFolder, databaseUrl: place.url, configPath }
    await (await startCrashApp(data, systemClock)).stop()

    const other = new SQL({ adapter: 'postgres', url: place.url ?? '', max: 1 })
    const refusal = await other.begin(async (sql) => {
      await sql.unsafe('LOCK TABLE replicas IN ACCESS EXCLUSIVE MODE')
      return await startCrashApp(data, systemClock).catch((thrown: unknown) => thrown)
    })
    await other.close()
    expect(refusal).toBeInstanceOf(StartRefusal)
    expect((refusal as StartRefusal).message).toMatch(
      /^Tollgate could not start: the database did not answer in time \(.*\)\. Check that it is running/,
    )
    // Once the lock is gone, it starts.
    await (await startCrashApp(data, systemClock)).stop()
  })
})
