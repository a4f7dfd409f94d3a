import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import { openDataFolder } from '../src/store/data-folder.ts'
import { openDatabase } from '../src/store/open-database.ts'
import { createAuthenticator } from '../src/tenancy/authenticate.ts'
import { deriveSubkey, loadMasterSecret } from '../src/tenancy/secrets.ts'
import { forEachEngine, type Place } from './parts/engines.ts'

interface Start {
  readonly killed: boolean
  readonly firstKey?: string
  readonly steps?: number
}

async function start(place: Place, dieAt: number): Promise<Start> {
  const child = Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, 'parts/first-start-child.ts'),
      place.url ?? '',
      place.dataFolder,
      String(dieAt),
    ],
    { stdout: 'pipe', stderr: 'inherit' },
  )
  const output = await new Response(child.stdout).text()
  await child.exited
  if (child.signalCode === 'SIGKILL') return { killed: true }
  return { killed: false, ...JSON.parse(output) }
}

/** What must be true after any start that was allowed to finish, whatever happened before. */
async function checkInstallation(place: Place): Promise<void> {
  const database = await openDatabase(place)
  const folder = openDataFolder(place.dataFolder, () => {})
  const counts = await database.sql`SELECT (SELECT COUNT(*) FROM workspaces) AS workspaces,
    (SELECT COUNT(*) FROM projects) AS projects, (SELECT COUNT(*) FROM api_keys) AS keys`
  expect([...counts]).toEqual([{ workspaces: 1n, projects: 1n, keys: 1n }])
  const pepper = deriveSubkey(loadMasterSecret(undefined, folder), 'api-key-pepper')
  const { authenticate } = createAuthenticator({ database, pepper, clock: systemClock })
  const key = readFileSync(folder.file('first-key'), 'utf8').trim()
  expect(await authenticate(new Headers({ 'x-api-key': key }))).toMatchObject({ keyName: 'first-key' })
  await database.close()
}

forEachEngine((engine) => {
  test('a first start killed at any step leaves either nothing or a key that stands in its file', async () => {
    using whole = await engine.createPlace()
    const { steps = 0, firstKey } = await start(whole, 0)
    expect(firstKey).toBeDefined()
    // Secret check (2 statements), claim, workspace, project, key, before and after the file, before and after commit.
    expect(steps).toBe(10)
    for (let dieAt = 1; dieAt <= steps; dieAt++) {
      using place = await engine.createPlace()
      expect(await start(place, dieAt)).toEqual({ killed: true })
      const second = await start(place, 0)
      // Only the last step lies behind the commit: there the key exists, and is not announced a second time.
      expect(second.firstKey === undefined).toBe(dieAt === steps)
      await checkInstallation(place)
      expect((await start(place, 0)).firstKey).toBeUndefined()
    }
  }, 60_000)
})
