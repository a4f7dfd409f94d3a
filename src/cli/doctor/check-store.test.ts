import { expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Place } from '../../../test/parts/engines.ts'
import { createThrowAwayFolder, forEachEngine } from '../../../test/parts/engines.ts'
import type { Config } from '../../config/config.ts'
import { Secret } from '../../kernel/secret.ts'
import { confirmSecret } from '../../tenancy/secrets.ts'
import { checkDatabase, checkDataFolder } from './check-store.ts'

const noon = Date.UTC(2026, 10, 8, 12)
const secretOf = (first: number) => ({
  bytes: Uint8Array.from({ length: 32 }, (_, at) => first + at),
  source: 'TOLLGATE_SECRET',
})

/** What the checks look at, and nothing else of a configuration. */
function configOf({ url, dataFolder }: Pick<Place, 'url' | 'dataFolder'>): Config {
  return { databaseUrl: url === undefined ? undefined : new Secret(url), dataFolder } as Config
}

function secrets(current: number, previous?: number) {
  const config = {} as Config
  return { config, current: secretOf(current), previous: previous === undefined ? undefined : secretOf(previous) }
}

forEachEngine((engine) => {
  test('tables, and the secret that belongs to them', async () => {
    await using store = await engine.openStore()
    const { database, place } = store
    await database.transaction((sql) => confirmSecret(sql, secretOf(1)))
    const verdicts = async (current: number, previous?: number) => {
      const { findings } = await checkDatabase(configOf(place), secrets(current, previous), noon)
      return findings.map(({ area, verdict, what }) => [area, verdict, what] as const)
    }
    const name = engine.name === 'sqlite' ? 'SQLite' : 'PostgreSQL'
    expect(await verdicts(1)).toEqual([
      ['database', 'ok', expect.stringMatching(new RegExp(`^${name}, (\\d+) of \\1 migrations$`))],
      ['secret', 'ok', 'TOLLGATE_SECRET is the one of this database'],
    ])
    expect((await verdicts(2))[1]?.[1]).toBe('wrong')
    expect((await verdicts(2, 1))[1]).toEqual(['secret', 'note', 'TOLLGATE_SECRET is new here'])
    expect((await verdicts(1, 2))[1]?.[2]).toBe('a rotation is under way, 0 things hang on the previous secret')
  })

  test('a database that is behind is a note, one from the future is wrong', async () => {
    await using store = await engine.openStore()
    const { database, place } = store
    const look = async () => (await checkDatabase(configOf(place), secrets(1), noon)).findings[0]
    await database.transaction((sql) => sql`DELETE FROM schema_migrations WHERE name = '0007-own-keys'`)
    expect(await look()).toMatchObject({ verdict: 'note', advice: expect.stringContaining('next start') })
    const row = { name: '9999-later', checksum: 'x', applied_at: 1n }
    await database.transaction((sql) => sql`INSERT INTO schema_migrations ${sql([row])}`)
    expect(await look()).toMatchObject({
      verdict: 'wrong',
      what: expect.stringContaining('newer Tollgate (9999-later)'),
    })
  })
})

test('a database that cannot be reached is told without its password', async () => {
  using folder = createThrowAwayFolder()
  const url = 'postgres://me:canary@127.0.0.1:1/x'
  const { findings } = await checkDatabase(configOf({ url, dataFolder: folder.path }), secrets(1), noon)
  expect(findings).toMatchObject([{ area: 'database', verdict: 'wrong' }])
  expect(JSON.stringify(findings)).not.toContain('canary')
})

test('folders and files that others may read are named with what to type', () => {
  using folder = createThrowAwayFolder()
  const file = join(folder.path, 'secret')
  chmodSync(folder.path, 0o700)
  writeFileSync(file, 'x', { mode: 0o600 })
  expect(checkDataFolder(folder.path)).toMatchObject([{ verdict: 'ok' }])
  chmodSync(file, 0o640)
  expect(checkDataFolder(folder.path)).toMatchObject([{ verdict: 'wrong', advice: `chmod go= ${file}` }])
  chmodSync(folder.path, 0o755)
  expect(checkDataFolder(folder.path)).toHaveLength(2)
  expect(checkDataFolder(file)).toMatchObject([{ verdict: 'wrong', what: `${file} is not a folder` }])
  expect(checkDataFolder(join(folder.path, 'none'))).toMatchObject([{ verdict: 'note' }])
})
