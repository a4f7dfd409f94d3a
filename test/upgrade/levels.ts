// What a database of every age holds: for each migration, rows in the columns it made, written as SQL of that age. A new
// migration needs a line here; the code of today must not write these rows, because it was not there then.

import { createId, type KeyId, type ProjectId, type WorkspaceId } from '../../src/kernel/ids.ts'
import { openDataFolder } from '../../src/store/data-folder.ts'
import type { Sql } from '../../src/store/sql.ts'
import { type ApiKey, createApiKey, createVerifier, lastFour } from '../../src/tenancy/api-key.ts'
import { appendAudit } from '../../src/tenancy/audit.ts'
import { confirmSecret, deriveSubkey, loadMasterSecret, type MasterSecret } from '../../src/tenancy/secrets.ts'

/** Who was there before the upgrade. */
export interface OldTenant {
  readonly workspaceId: WorkspaceId
  readonly projectId: ProjectId
  readonly keyId: KeyId
  readonly secret: ApiKey
  readonly requestId: string
  readonly master: MasterSecret
}

export function inventTenant(dataFolder: string): OldTenant {
  return {
    workspaceId: createId('ws'),
    projectId: createId('prj'),
    keyId: createId('key'),
    secret: createApiKey(),
    requestId: createId('req'),
    master: loadMasterSecret(
      undefined,
      openDataFolder(dataFolder, () => {}),
    ),
  }
}

const at = 1_790_000_000_000n
/** $25.00. */
export const topUp = 25_000_000_000n
/** 3 × $3.00 + 2 × $15.00 a million: 39 millionths of a dollar. */
export const charge = 39_000n
const price = JSON.stringify({
  input: '3000000',
  output: '15000000',
  cache_read: '3000000',
  cache_write: '3000000',
  cache_write_1h: '3000000',
})
const usage = JSON.stringify({
  inputTokens: 3,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  outputTokens: 2,
  source: 'reported',
})
export const today = (): string => `day:${new Date().toISOString().slice(0, 10)}`

type Fill = (sql: Sql, tenant: OldTenant) => Promise<unknown>

const nothing: Fill = async () => undefined

/** By the migration that made it possible; those of earlier ones are there too. */
export const fills: Readonly<Record<string, Fill>> = {
  async '0001-tenancy'(sql, { workspaceId, projectId, keyId, secret, master }) {
    await sql`INSERT INTO installation (name, value) VALUES ('first_start', '2026-01-01T00:00:00.000Z')`
    await confirmSecret(sql, master)
    await sql`INSERT INTO workspaces (id, name, created_at) VALUES (${workspaceId}, 'old acme', ${at})`
    await sql`INSERT INTO projects (id, workspace_id, name, models, created_at)
      VALUES (${projectId}, ${workspaceId}, 'old web', '["sandbox/*"]', ${at})`
    const verify = createVerifier(deriveSubkey(master, 'api-key-pepper'))
    await sql`INSERT INTO api_keys (id, project_id, name, verifier, pepper_version, last4, created_at)
      VALUES (${keyId}, ${projectId}, 'old ci', ${verify(secret)}, ${verify.version}, ${lastFour(secret)}, ${at})`
  },
  async '0002-ledger'(sql, { workspaceId, requestId }) {
    const wallet = `wallet:${workspaceId}`
    await sql`INSERT INTO accounts (id, kind, workspace_id, created_at) VALUES (${wallet}, 'wallet', ${workspaceId}, ${at})`
    await sql`INSERT INTO balances (account_id, posted, held) VALUES (${wallet}, ${topUp - charge}, 0)`
    await sql`INSERT INTO prices (version, model_id, price, source, effective_from)
      VALUES ('acme/large#1', 'acme/large', ${price}, 'built in', ${at})`
    await sql`INSERT INTO transfers (id, kind, seq, debit_account, credit_account, amount, estimated, reference, created_at)
      VALUES (${createId('tr')}, 'topup', 0, 'funding', ${wallet}, ${topUp}, 0, 'invoice 17', ${at})`
    await sql`INSERT INTO transfers (id, kind, request_id, seq, debit_account, credit_account, amount, price_version, usage,
        estimated, created_at)
      VALUES (${createId('tr')}, 'charge', ${requestId}, 0, ${wallet}, 'revenue', ${charge}, 'acme/large#1', ${usage}, 0, ${at})`
  },
  async '0003-budgets'(sql, { workspaceId, keyId }) {
    const wallet = `wallet:${workspaceId}`
    await sql`UPDATE balances SET posted = posted - ${charge} WHERE account_id = ${wallet}`
    await sql`INSERT INTO budgets (scope_id, time_window, spent, held) VALUES (${keyId}, ${today()}, ${charge}, 0)`
    await sql`INSERT INTO transfers (id, kind, request_id, seq, debit_account, credit_account, amount, price_version, usage,
        estimated, created_at, budgets)
      VALUES (${createId('tr')}, 'charge', ${createId('req')}, 0, ${wallet}, 'revenue', ${charge}, 'acme/large#1', ${usage},
        0, ${at}, ${`${keyId} ${today()}`})`
  },
  async '0004-tenancy-more'(sql, { workspaceId, keyId }) {
    await sql`UPDATE workspaces SET limits = '{"requests_per_minute":600}' WHERE id = ${workspaceId}`
    await sql`UPDATE api_keys SET sources = '["127.0.0.0/8"]', workspace_id = ${workspaceId} WHERE id = ${keyId}`
    await sql`INSERT INTO key_uses (key_id, last_used_at) VALUES (${keyId}, ${at})`
    await appendAudit(sql, {
      actor: 'management token',
      at: Number(at),
      action: 'workspace.create',
      object: workspaceId,
    })
  },
  '0005-credentials': (sql, { workspaceId }) => sql`INSERT INTO credentials (workspace_id, provider, id, origin,
      ciphertext, wrapped_key, key_version, last4, created_at, updated_at)
    VALUES (${workspaceId}, 'openai', ${`cred_${createId('tr').slice(3)}`}, 'https://api.openai.com', 'c', 'w', 'v', '4711', ${at}, ${at})`,
  '0006-requests': (sql, { workspaceId, projectId, keyId, requestId }) => sql`INSERT INTO requests (id, started_at,
      workspace_id, project_id, key_id, path, stream, model, status, provider, lane, candidates, attempts, warnings, notes,
      usage, price_version, held, charge, total_ms)
    VALUES (${requestId}, ${at}, ${workspaceId}, ${projectId}, ${keyId}, '/v1/messages', 0, 'acme/large', 200, 'acme',
      'bytes', '[]', '[]', '[]', '[]', ${usage}, 'acme/large#1', 50000, ${charge}, 12)`,
  '0007-own-keys': (sql, { workspaceId }) => sql`UPDATE workspaces SET shares_routes = 1 WHERE id = ${workspaceId}`,
  '0008-replicas': (sql, { keyId }) => sql`INSERT INTO changes (kind, object, at) VALUES ('key', ${keyId}, ${at})`,
  '0009-price-overrides': (sql) => sql`INSERT INTO price_overrides (model_id, price, set_at)
    VALUES ('sandbox/echo', ${price}, ${at})`,
  // Filled by the gateway itself, from the requests of above.
  '0010-rollups': nothing,
  '0011-request-sums': nothing,
  // Whoever was signed in then signs in again.
  '0013-console-sessions': nothing,
  '0014-budget-seeds': (sql, { keyId }) => sql`UPDATE budgets SET spent = spent + 11, seeded = 11
    WHERE scope_id = ${keyId} AND time_window = ${today()}`,
}
