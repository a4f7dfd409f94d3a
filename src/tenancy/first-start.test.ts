import { expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { forEachEngine, type TestStore } from '../../test/parts/engines.ts'
import { systemClock } from '../kernel/clock.ts'
import { openDataFolder } from '../store/data-folder.ts'
import { openDatabase } from '../store/open-database.ts'
import { StartRefusal } from '../store/start-refusal.ts'
import { createAuthenticator } from './authenticate.ts'
import { ensureFirstStart } from './first-start.ts'
import { deriveSubkey, loadMasterSecret } from './secrets.ts'

function open({ database, place }: TestStore) {
  const folder = openDataFolder(place.dataFolder, () => {})
  return { database, folder, secret: loadMasterSecret(undefined, folder), clock: systemClock }
}

forEachEngine((engine) => {
  test('the first start makes a workspace, a project and a key that works and stands in its file', async () => {
    await using store = await engine.openStore()
    const options = open(store)
    const { firstKey, workspaceId, firstKeyFile } = await ensureFirstStart(options)
    expect(firstKeyFile).toBe(options.folder.file('first-key'))
    expect(readFileSync(firstKeyFile, 'utf8')).toBe(`${firstKey}\n`)
    expect(statSync(firstKeyFile).mode & 0o777).toBe(0o600)
    const pepper = deriveSubkey(options.secret, 'api-key-pepper')
    const { authenticate } = createAuthenticator({ ...options, pepper })
    const headers = new Headers({ authorization: `Bearer ${firstKey}` })
    expect(await authenticate(headers)).toMatchObject({
      keyName: 'first-key',
      workspaceId,
      workspaceName: 'default',
      allow: [],
      limits: [],
      sources: undefined,
    })
    expect([...(await store.database.sql`SELECT name FROM projects`)]).toEqual([{ name: 'default' }])
  })

  test('the second start makes nothing and shows nothing, even when the key was deleted or its file removed', async () => {
    await using store = await engine.openStore()
    const options = open(store)
    await ensureFirstStart(options)
    await store.database.transaction((sql) => sql`DELETE FROM api_keys`)
    const again = await ensureFirstStart(options)
    expect(again).toEqual({
      firstKey: undefined,
      workspaceId: undefined,
      firstKeyFile: options.folder.file('first-key'),
    })
    expect(await store.database.sql`SELECT id FROM api_keys`).toHaveLength(0)
    expect(await store.database.sql`SELECT id FROM workspaces`).toHaveLength(1)
  })

  test('of several that start for the first time at once, one makes the key', async () => {
    await using store = await engine.openStore()
    const options = open(store)
    const others =
      engine.name === 'postgres' ? await Promise.all([openDatabase(store.place), openDatabase(store.place)]) : []
    const databases = [store.database, ...others]
    const starts = await Promise.all(databases.map((database) => ensureFirstStart({ ...options, database })))
    const keys = starts.flatMap((start) => start.firstKey ?? [])
    expect(keys).toHaveLength(1)
    expect(readFileSync(options.folder.file('first-key'), 'utf8').trim()).toBe(keys[0] ?? '')
    for (const database of others) await database.close()
  })

  test('K2: a start with another secret is refused and leaves the first one in force', async () => {
    await using store = await engine.openStore()
    const options = open(store)
    const { firstKey } = await ensureFirstStart(options)
    const wrong = { bytes: options.secret.bytes.toReversed(), source: 'TOLLGATE_SECRET' }
    const refusal = await ensureFirstStart({ ...options, secret: wrong }).catch((thrown: unknown) => thrown)
    expect(refusal).toBeInstanceOf(StartRefusal)
    expect((refusal as Error).message).toStartWith('The secret in TOLLGATE_SECRET is not the one')
    expect((await ensureFirstStart(options)).firstKey).toBeUndefined()
    expect(readFileSync(options.folder.file('first-key'), 'utf8').trim()).toBe(firstKey ?? '')
  })

  test('a key left in the folder by another database is replaced, not brought back to life', async () => {
    await using store = await engine.openStore()
    const options = open(store)
    options.folder.write('first-key', 'sk-tg-0123456789ABCDEFGHIJKLMNOPQR47EiTD\n')
    const { firstKey, firstKeyFile } = await ensureFirstStart(options)
    expect(firstKey).not.toBe('sk-tg-0123456789ABCDEFGHIJKLMNOPQR47EiTD')
    expect(readFileSync(firstKeyFile, 'utf8').trim()).toBe(firstKey ?? '')
  })

  test('nothing is made when the key cannot be written down', async () => {
    await using store = await engine.openStore()
    const options = open(store)
    const fullDisk = {
      ...options.folder,
      write: () => {
        throw new Error('no space left on device')
      },
    }
    await expect(ensureFirstStart({ ...options, folder: fullDisk })).rejects.toThrow('no space left')
    expect(await store.database.sql`SELECT id FROM workspaces`).toHaveLength(0)
    expect((await ensureFirstStart(options)).firstKey).toBeDefined()
  })
})
