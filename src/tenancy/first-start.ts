// Creates the first workspace, project and key of an installation in one transaction. The key's secret is on disk before
// the commit, so a crash at any point leaves either nothing or a key that can be read. A start may end before it has shown
// the key, for example because the port is taken; until one has, each later start may show it.

import { readFileSync } from 'node:fs'
import { type Clock, isoTime } from '../kernel/clock.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import type { DataFolder } from '../store/data-folder.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { type ApiKey, createApiKey, createVerifier, hasApiKeyForm } from './api-key.ts'
import { insertKey } from './keys.ts'
import { confirmSecret, deriveSubkey, type MasterSecret } from './secrets.ts'
import { insertProject, insertWorkspace } from './workspaces.ts'

const firstKeyFile = 'first-key'
/** A row of `installation` from the creation of the key until it was shown. */
const unshownName = 'first_key_unshown'

export interface FirstStartOptions {
  readonly database: Database
  readonly folder: DataFolder
  readonly secret: MasterSecret
  /** The one it replaces, during a rotation. */
  readonly previousSecret?: MasterSecret | undefined
  readonly clock: Clock
  /** Runs in the transaction of the first start: the opening credit. */
  onWorkspace?(sql: Sql, workspaceId: WorkspaceId): Promise<void>
}

export interface FirstStart {
  /** undefined once a start has shown it. */
  readonly firstKey: ApiKey | undefined
  /** The workspace this start created. */
  readonly workspaceId: WorkspaceId | undefined
  /** Where the first key is, or was, written. */
  readonly firstKeyFile: string
  /** Call once requests are accepted. `print` gets the key if this start shows it. */
  show(print: (firstKey: ApiKey | undefined) => void): Promise<void>
}

/** Also confirms the secret, at every start: throws a StartRefusal if it is not this database's. */
export async function ensureFirstStart(options: FirstStartOptions): Promise<FirstStart> {
  const { database, folder, secret, previousSecret } = options
  const { firstKey, workspaceId } = await database.transaction(async (sql) => {
    await confirmSecret(sql, secret, previousSecret)
    if (await claimFirstStart(sql, options.clock)) return await createDefaults(sql, options)
    return { firstKey: await findUnshown(sql, options), workspaceId: undefined }
  })
  return {
    firstKey,
    workspaceId,
    firstKeyFile: folder.file(firstKeyFile),
    show: async (print) => (firstKey === undefined ? print(undefined) : await showOnce(database, firstKey, print)),
  }
}

/** Printed before the commit: after a crash in between the key is shown again rather than never. Locks the row. */
function showOnce(database: Database, firstKey: ApiKey, print: (firstKey: ApiKey | undefined) => void): Promise<void> {
  return database.transaction(async (sql) => {
    const claimed = await sql`DELETE FROM installation WHERE name = ${unshownName} RETURNING name`
    print(claimed.length === 1 ? firstKey : undefined)
  })
}

/** True once in the life of a database; with several replicas starting at once, for one of them. */
async function claimFirstStart(sql: Sql, clock: Clock): Promise<boolean> {
  const row = { name: 'first_start', value: isoTime(clock.now()) }
  const claimed = await sql`INSERT INTO installation ${sql([row])} ON CONFLICT DO NOTHING RETURNING name`
  return claimed.length === 1
}

async function createDefaults(sql: Sql, { folder, secret, clock, onWorkspace }: FirstStartOptions) {
  const createdAt = clock.now()
  const workspaceId = await insertWorkspace(sql, { name: 'default', createdAt })
  await onWorkspace?.(sql, workspaceId)
  const projectId = await insertProject(sql, { workspaceId, name: 'default', createdAt })
  const firstKey = createApiKey()
  const computeVerifier = createVerifier(deriveSubkey(secret, 'api-key-pepper'))
  await insertKey(sql, { projectId, name: 'first-key', key: firstKey, createdAt }, computeVerifier)
  await sql`INSERT INTO installation ${sql([{ name: unshownName, value: isoTime(createdAt) }])}`
  // Last before the commit. A key that a crashed start left in the file was never committed and is replaced; a key of an
  // earlier database must not be reused, because it may have been revoked there.
  folder.write(firstKeyFile, `${firstKey}\n`)
  return { firstKey, workspaceId }
}

/** Only a valid key: the file may be missing, of another database, or of a key that was revoked or rotated. */
async function findUnshown(sql: Sql, options: FirstStartOptions): Promise<ApiKey | undefined> {
  const { folder, secret, previousSecret = secret } = options
  const unshown = await sql`SELECT name FROM installation WHERE name = ${unshownName}`
  if (unshown.length === 0) return undefined
  const key = readKey(folder.file(firstKeyFile))
  if (key === undefined) return undefined
  const verifierUnder = (master: MasterSecret) => createVerifier(deriveSubkey(master, 'api-key-pepper'))(key)
  const found = await sql`SELECT id FROM api_keys
    WHERE verifier IN (${verifierUnder(secret)}, ${verifierUnder(previousSecret)}) AND revoked_at IS NULL`
  return found.length === 0 ? undefined : key
}

function readKey(path: string): ApiKey | undefined {
  try {
    const text = readFileSync(path, 'utf8').trim()
    return hasApiKeyForm(text) ? text : undefined
  } catch {
    return undefined
  }
}
