// What a new installation starts with: a workspace, a project, a key. All of it is one transaction, and the key's
// secret is on the disk before that commits, so a crash at any point leaves either nothing or a key somebody can read.

import type { Clock } from '../kernel/clock.ts'
import { isoTime } from '../kernel/clock.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import type { DataFolder } from '../store/data-folder.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { type ApiKey, createApiKey, createVerifier } from './api-key.ts'
import { insertKey, insertProject, insertWorkspace } from './records.ts'
import { confirmSecret, deriveSubkey, type MasterSecret } from './secrets.ts'

const firstKeyFile = 'first-key'

export interface FirstStartOptions {
  readonly database: Database
  readonly folder: DataFolder
  readonly secret: MasterSecret
  /** The one it takes the place of, while a rotation is under way. */
  readonly previousSecret?: MasterSecret | undefined
  readonly clock: Clock
  /** Belongs to the first start and to its transaction: the opening credit. */
  onWorkspace?(sql: Sql, workspaceId: WorkspaceId): Promise<void>
}

export interface FirstStart {
  /** Only when this start created it. */
  readonly firstKey: ApiKey | undefined
  /** The workspace this start created. */
  readonly workspaceId: WorkspaceId | undefined
  /** Where the first key is, or was, written. */
  readonly firstKeyFile: string
}

/** Also confirms the secret, at every start: throws a StartRefusal if it is not this database's. */
export function ensureFirstStart(options: FirstStartOptions): Promise<FirstStart> {
  const { database, folder, secret, previousSecret } = options
  const path = folder.file(firstKeyFile)
  return database.transaction(async (sql) => {
    await confirmSecret(sql, secret, previousSecret)
    if (!(await claimFirstStart(sql, options.clock))) {
      return { firstKey: undefined, workspaceId: undefined, firstKeyFile: path }
    }
    return { ...(await createDefaults(sql, options)), firstKeyFile: path }
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
  // Last before the commit. A key that a crashed start left in the file was never committed and is replaced; one of an
  // earlier database must not come back to life, it may have been revoked there.
  folder.write(firstKeyFile, `${firstKey}\n`)
  return { firstKey, workspaceId }
}
