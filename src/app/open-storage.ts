// Opens what everything else needs: the data folder, the migrated database and the secrets. On the first start it also creates
// the first workspace and key.

import type { ConfigSource } from '../config/source.ts'
import type { Clock } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { recordFunding } from '../ledger/fund.ts'
import { openDataFolder } from '../store/data-folder.ts'
import { lockDataFolder } from '../store/folder-lock.ts'
import { migrate } from '../store/migrate.ts'
import { openDatabase } from '../store/open-database.ts'
import type { Sql } from '../store/sql.ts'
import type { Log } from '../telemetry/log.ts'
import { ensureFirstStart } from '../tenancy/first-start.ts'
import {
  deriveSubkey,
  loadAdminToken,
  loadMasterSecret,
  parseMasterSecret,
  refuseLostSecret,
  type SubkeyLabel,
} from '../tenancy/secrets.ts'

/** The dependencies of every part of the app. */
export interface Base {
  readonly source: ConfigSource
  readonly clock: Clock
  readonly log: Log
}

/** The opening balance of a new installation; without it the first request could not be paid for. */
export const openingCredit = 5_000_000_000n as Nano

export type Storage = Awaited<ReturnType<typeof openStorage>>

interface StorageDependencies extends Base {
  onProgress(line: string): void
  /** For tests: see PostgresOptions. */
  readonly timeoutFactor?: number | undefined
}

export async function openStorage(deps: StorageDependencies) {
  const { source, clock, log, onProgress, timeoutFactor } = deps
  const config = source.current
  const folder = openDataFolder(config.dataFolder, (line) => log.warn(line))
  const lock = config.databaseUrl === undefined ? lockDataFolder(config.dataFolder) : undefined
  const database = await openDatabase({
    url: config.databaseUrl?.reveal(),
    dataFolder: config.dataFolder,
    report: (line) => log.warn(line),
    ...(timeoutFactor !== undefined && { timeoutFactor }),
  })
  await migrate({ database, clock, onProgress })
  await refuseLostSecret(database.sql, config.secret, folder)
  const secret = loadMasterSecret(config.secret, folder)
  const previousSecret = config.secretPrevious && parseMasterSecret(config.secretPrevious, 'TOLLGATE_SECRET_PREVIOUS')
  const firstStart = await ensureFirstStart({
    database,
    folder,
    secret,
    previousSecret,
    clock,
    onWorkspace: (sql, workspaceId) => giveOpeningCredit(sql, workspaceId, clock),
  })
  return {
    database,
    secret,
    previousSecret,
    firstStart,
    adminToken: loadAdminToken(config.adminToken, folder),
    /** A key derived from the master secret, and the one derived from the secret that is being replaced. */
    subkeys: (label: SubkeyLabel) => ({
      current: deriveSubkey(secret, label),
      previous: previousSecret && deriveSubkey(previousSecret, label),
    }),
    async close(): Promise<void> {
      await database.close()
      lock?.release()
    },
  }
}

async function giveOpeningCredit(sql: Sql, workspaceId: WorkspaceId, clock: Clock): Promise<void> {
  const funding = { workspaceId, amount: openingCredit, kind: 'grant', reference: 'opening-credit' } as const
  const outcome = await recordFunding(sql, funding, clock.now())
  assert(outcome.kind === 'funded', 'a new wallet takes its opening credit')
}

/** An error as a field of a log line. */
export function errorFields(error: unknown): { readonly error: string } {
  return { error: error instanceof Error ? error.message : String(error) }
}
