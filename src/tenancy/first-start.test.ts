import { expect, test } from 'bun:test'
import { readFileSync, rmSync, statSync } from 'node:fs'
import { forEachEngine, type TestStore } from '../../test/parts/engines.ts'
import { systemClock } from '../kernel/clock.ts'
import { openDataFolder } from '../store/data-folder.ts'
import { openDatabase } from '../store/open-database.ts'
import { StartRefusal } from '../store/start-refusal.ts'
import { createAuthenticator } from './authenticate.ts'
import { ensureFirstStart, type FirstStart } from './first-start.ts'
import { deriveSubkey, loadMasterSecret } from './secrets.ts'

function open({ database, place }: TestStore) {
  const folder = openDataFolder(place.dataFolder, () => {})
  return { database, folder, secret: loadMasterSecret(undefined, folder), clock: systemClock }
}

/** The output of a start that accepts requests: a key, or none. */
async function shownBy({ show }: FirstStart): Promise<FirstStart['firstKey'][]> {
  const printed: FirstStart['firstKey'][] = []
  await show((firstKey) => printed.push(firstKey))
  return printed
}

forEachEngine((engine, storeTest) => {
  storeTest('the first start creates a workspace, a project and a working key in its file', async (store) => {
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

  storeTest('the second start creates and shows nothing, even if the key or its file was deleted', async (store) => {
    const options = open(store)
    await shownBy(await ensureFirstStart(options))
    await store.database.transaction((sql) => sql`DELETE FROM api_keys`)
    const again = await ensureFirstStart(options)
    expect(again).toMatchObject({
      firstKey: undefined,
      workspaceId: undefined,
      firstKeyFile: options.folder.file('first-key'),
    })
    expect(await shownBy(again)).toEqual([undefined])
    expect(await store.database.sql`SELECT id FROM api_keys`).toHaveLength(0)
    expect(await store.database.sql`SELECT id FROM workspaces`).toHaveLength(1)
  })

  storeTest('a key that was never shown is shown by the next start that gets that far, once', async (store) => {
    const options = open(store)
    // The port was taken, say.
    const { firstKey } = await ensureFirstStart(options)
    const second = await ensureFirstStart(options)
    expect([second.firstKey, second.workspaceId]).toEqual([firstKey, undefined])
    expect(await shownBy(second)).toEqual([firstKey])
    const third = await ensureFirstStart(options)
    expect(third.firstKey).toBeUndefined()
    expect(await shownBy(third)).toEqual([undefined])
    expect(await store.database.sql`SELECT id FROM api_keys`).toHaveLength(1)
  })

  storeTest('a start that fails to print has not shown the key', async (store) => {
    const options = open(store)
    const { firstKey, show } = await ensureFirstStart(options)
    const failing = show(() => {
      throw new Error('nobody reads')
    })
    await expect(failing).rejects.toThrow('nobody reads')
    expect(await shownBy(await ensureFirstStart(options))).toEqual([firstKey])
  })

  test('an invalid key and one of another database are not shown', async () => {
    for (const change of ['revoked', 'deleted', 'another', 'no file'] as const) {
      await using store = await engine.openStore()
      const options = open(store)
      await ensureFirstStart(options)
      await store.database.transaction(async (sql) => {
        if (change === 'revoked') await sql`UPDATE api_keys SET revoked_at = 1`
        if (change === 'deleted') await sql`DELETE FROM api_keys`
      })
      if (change === 'another') options.folder.write('first-key', 'sk-tg-0123456789ABCDEFGHIJKLMNOPQR47EiTD\n')
      if (change === 'no file') rmSync(options.folder.file('first-key'))
      expect([change, (await ensureFirstStart(options)).firstKey]).toEqual([change, undefined])
    }
  })

  test('one of several concurrent first starts creates the key, and one shows it', async () => {
    await using store = await engine.openStore()
    const options = open(store)
    const others =
      engine.name === 'postgres' ? await Promise.all([openDatabase(store.place), openDatabase(store.place)]) : []
    const databases = [store.database, ...others]
    const starts = await Promise.all(databases.map((database) => ensureFirstStart({ ...options, database })))
    expect(await store.database.sql`SELECT id FROM api_keys`).toHaveLength(1)
    const shown = await Promise.all(starts.map(shownBy))
    const keys = shown.flat().filter((key) => key !== undefined)
    expect(keys).toHaveLength(1)
    expect(readFileSync(options.folder.file('first-key'), 'utf8').trim()).toBe(keys[0] ?? '')
    for (const database of others) await database.close()
  })

  storeTest('K2: a start with another secret is refused and changes nothing', async (store) => {
    const options = open(store)
    const first = await ensureFirstStart(options)
    expect(await shownBy(first)).toEqual([first.firstKey])
    const wrong = { bytes: options.secret.bytes.toReversed(), source: 'TOLLGATE_SECRET' }
    const refusal = await ensureFirstStart({ ...options, secret: wrong }).catch((thrown: unknown) => thrown)
    expect(refusal).toBeInstanceOf(StartRefusal)
    expect((refusal as Error).message).toStartWith('The secret in TOLLGATE_SECRET is not the one')
    expect((await ensureFirstStart(options)).firstKey).toBeUndefined()
    expect(readFileSync(options.folder.file('first-key'), 'utf8').trim()).toBe(first.firstKey ?? '')
  })

  storeTest('a key of another database in the folder is replaced, not reused', async (store) => {
    const options = open(store)
    options.folder.write('first-key', 'sk-tg-0123456789ABCDEFGHIJKLMNOPQR47EiTD\n')
    const { firstKey, firstKeyFile } = await ensureFirstStart(options)
    expect(firstKey).not.toBe('sk-tg-0123456789ABCDEFGHIJKLMNOPQR47EiTD')
    expect(readFileSync(firstKeyFile, 'utf8').trim()).toBe(firstKey ?? '')
  })

  storeTest('nothing is created if the key file cannot be written', async (store) => {
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
