// Fills a gateway's database behind its back, while it is stopped: keys, transfers and log rows by bulk insert, which is
// thousands of times faster than asking for them. Embedded database only.

import { systemClock } from '../src/kernel/clock.ts'
import { firstIdAt, type ProjectId } from '../src/kernel/ids.ts'
import { openDataFolder } from '../src/store/data-folder.ts'
import type { Database } from '../src/store/database.ts'
import { openDatabase } from '../src/store/open-database.ts'
import { createApiKey, createVerifier } from '../src/tenancy/api-key.ts'
import { insertKey } from '../src/tenancy/keys.ts'
import { deriveSubkey, loadMasterSecret } from '../src/tenancy/secrets.ts'

export interface Seeds {
  readonly keys: number
  readonly transfers: number
  readonly logRows: number
}

const KEYS_PER_TRANSACTION = 1_000
const ROWS_PER_TRANSACTION = 50_000
const HOUR_MS = 3_600_000

/** The new keys. */
export async function seed(dataFolder: string, seeds: Seeds): Promise<string[]> {
  const database = await openDatabase({ url: undefined, dataFolder })
  try {
    await addTransfers(database, seeds.transfers)
    await addLogRows(database, seeds.logRows)
    return await addKeys(database, dataFolder, seeds.keys)
  } finally {
    await database.close()
  }
}

async function addKeys(database: Database, dataFolder: string, count: number): Promise<string[]> {
  const secret = loadMasterSecret(undefined, openDataFolder(dataFolder, console.error))
  const computeVerifier = createVerifier(deriveSubkey(secret, 'api-key-pepper'))
  const [project] = await database.sql<{ id: ProjectId }>`SELECT id FROM projects`
  if (!project) throw new Error('the first start made no project')
  const keys = Array.from({ length: count }, createApiKey)
  for (let from = 0; from < keys.length; from += KEYS_PER_TRANSACTION) {
    await database.transaction(async (sql) => {
      for (const key of keys.slice(from, from + KEYS_PER_TRANSACTION)) {
        const input = { projectId: project.id, name: 'bench', key, createdAt: systemClock.now() }
        await insertKey(sql, input, computeVerifier)
      }
    })
  }
  return keys
}

/** Charges of nothing to the wallet that is in use: rows like any other, and balances that still agree with them. */
async function addTransfers(database: Database, count: number): Promise<void> {
  const [wallet] = await database.sql<{ workspace_id: string }>`SELECT workspace_id FROM accounts
    WHERE kind = 'wallet'`
  if (!wallet) throw new Error('the first start made no wallet')
  const at = BigInt(systemClock.now() - HOUR_MS)
  const usage = '{"inputTokens":220,"outputTokens":100,"source":"reported"}'
  await inPortions(database, count, async (sql, from, until, ids) => {
    await sql`WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${until})
      INSERT INTO archived_charges (id, workspace_id, charge, price_version, usage, estimated, created_at)
      SELECT 'req_' || ${ids} || printf('%010d', i), ${wallet.workspace_id}, 0, 'seed', ${usage}, 0, ${at} FROM n`
  })
}

async function addLogRows(database: Database, count: number): Promise<void> {
  const [key] = await database.sql<{ id: string; project_id: string; workspace_id: string }>`
    SELECT k.id, k.project_id, p.workspace_id FROM api_keys k JOIN projects p ON p.id = k.project_id`
  if (!key) throw new Error('the first start made no key')
  const at = BigInt(systemClock.now() - HOUR_MS)
  const usage = '{"inputTokens":220,"outputTokens":100,"source":"reported"}'
  await inPortions(database, count, async (sql, from, until, ids) => {
    await sql`WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${until})
      INSERT INTO requests (id, started_at, workspace_id, project_id, key_id, path, stream, model, status, provider,
        upstream_model, lane, usage, held, charge, first_event_ms, total_ms, estimated)
      SELECT 'req_' || ${ids} || printf('%010d', i), ${at}, ${key.workspace_id}, ${key.project_id}, ${key.id},
        '/v1/chat/completions', 0, 'bench/chat', 200, 'fake-chat', 'fake-large-2026-01-15', 'bytes', ${usage}, 2100, 0, 5, 6,
        0 FROM n`
  })
}

type Sql = Parameters<Parameters<Database['transaction']>[0]>[0]

async function inPortions(
  database: Database,
  count: number,
  insert: (sql: Sql, from: bigint, until: bigint, ids: string) => Promise<void>,
): Promise<void> {
  const ids = seedIds()
  for (let from = 0; from < count; from += ROWS_PER_TRANSACTION) {
    const until = Math.min(count, from + ROWS_PER_TRANSACTION)
    await database.transaction((sql) => insert(sql, BigInt(from), BigInt(until), ids))
  }
}

/** The first 16 characters of ids made an hour ago: before all that the measurement adds; ten digits follow. */
function seedIds(): string {
  const hour = Math.floor(systemClock.now() / HOUR_MS) * HOUR_MS
  return firstIdAt(hour - 2 * HOUR_MS).slice(4, 20)
}
