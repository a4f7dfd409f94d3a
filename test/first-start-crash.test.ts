import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import { openDataFolder } from '../src/store/data-folder.ts'
import { openDatabase } from '../src/store/open-database.ts'
import { createAuthenticator } from '../src/tenancy/authenticate.ts'
import { deriveSubkey, loadMasterSecret } from '../src/tenancy/secrets.ts'
import { forEachEngine, type Place } from './parts/engines.ts'
import { firstStart } from './parts/first-start-child.ts'

/** Starts in a process that is killed at a step; the key, if it was printed before. */
async function startKilled(place: Place, dieAt: number): Promise<string | undefined> {
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
  expect([dieAt, child.signalCode]).toEqual([dieAt, 'SIGKILL'])
  return /^sk-tg-\w+$/m.exec(output)?.[0]
}

/** Starts to the end: the key, if it was shown, and the number of steps. */
async function start(place: Place): Promise<{ readonly shown: string | undefined; readonly steps: number }> {
  const shown: string[] = []
  let steps = 0
  await firstStart({ ...place, step: () => void steps++, show: (key) => void shown.push(key) })
  return { shown: shown[0], steps }
}

/** The state that must hold after any start that was allowed to finish, whatever happened before. */
async function checkInstallation(place: Place): Promise<string> {
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
  return key
}

forEachEngine((engine) => {
  test('a first start that is killed at any step leaves nothing, or a key in its file that is shown', async () => {
    using whole = await engine.createPlace()
    const { steps, shown } = await start(whole)
    expect(shown).toBeDefined()
    // Secret check (2 statements), claim, workspace, its alert rules, project, key, mark, before and after the file, before
    // and after the commit; then the mark taken away, before and after the printing, before and after the commit.
    expect(steps).toBe(17)
    for (let dieAt = 1; dieAt <= steps; dieAt++) {
      using place = await engine.createPlace()
      const printed = await startKilled(place, dieAt)
      const second = await start(place)
      const key = await checkInstallation(place)
      // Only the last step lies behind the second commit. Between printing and that, the key is shown twice.
      expect([dieAt, second.shown]).toEqual([dieAt, dieAt === steps ? undefined : key])
      expect(second.shown ?? printed).toBe(key)
      expect((await start(place)).shown).toBeUndefined()
    }
  })
})
