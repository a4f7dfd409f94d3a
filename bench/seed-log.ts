// Fills a gateway's database with a log of the requested size: requests over the last thirty days, charges for some of them,
// and everything the gateway would have counted by now. The gateway must not be running on it.

import { Database as File } from 'bun:sqlite'
import { join } from 'node:path'
import { SQL } from 'bun'
import { systemClock } from '../src/kernel/clock.ts'
import { firstIdAt } from '../src/kernel/ids.ts'
import { openDatabase } from '../src/store/open-database.ts'
import { foldHours, grainMs, HourSums, type RequestRow, requestValues, writeHours } from '../src/store/request-rows.ts'

export interface Tenant {
  readonly workspaceId: string
  readonly projectId: string
  readonly keyId: string
}

export interface Seed {
  /** undefined = the embedded database in the folder. */
  readonly url: string | undefined
  readonly dataFolder: string
  readonly tenants: readonly Tenant[]
  readonly requests: number
  readonly transfers: number
  /** How many there are in the log. */
  readonly models?: number
  /**
   * At least so many requests, spread over the whole log, are of the first tenant, for one model and failed: so that a list
   * narrowed to any of these is as long in a small log as in a large one. None unless told.
   */
  readonly examples?: number
  progress(done: string): void
}

type Row = RequestRow | Readonly<Record<string, string | number | null>>

const spanMs = 30 * 86_400_000
const portion = 5_000
const sumsPortion = 50_000
const modelsUsual = 40
/** Nano-dollars of each charge; the wallets get as much back, so that their balances stay true. */
const charge = 25_000

const hosts = ['acme', 'acme-eu', 'acme-us', 'bolt', 'core'] as const
const agents = ['claude-code', 'codex', 'aider', 'opencode', null] as const
/** Code and cause. */
const failures = [
  ['UNAVAILABLE', 'routes_failed'],
  ['LIMIT_EXCEEDED', 'provider_throttled'],
  ['STREAM_INTERRUPTED', null],
] as const

/** Which of the models those are for. */
export const exampleModel = 7

export const seededModel = (at: number): string => `acme/model-${at}`

export async function seedLog(seed: Seed): Promise<void> {
  const writer = seed.url === undefined ? openFile(seed.dataFolder) : openServer(seed.url)
  const sums: HourSums[] = []
  const end = systemClock.now() - 5_000
  const idOf = (at: number): string => {
    const id = firstIdAt(Math.floor(end - spanMs + (spanMs * at) / seed.requests))
    return `${id.slice(0, -8)}${String(at).padStart(8, '0')}`
  }
  for (let from = 0; from < seed.requests; from += portion) {
    const size = Math.min(portion, seed.requests - from)
    const places = Array.from({ length: size }, (_, place) => from + place)
    const startOf = (at: number): number => Math.floor(end - spanMs + (spanMs * at) / seed.requests)
    const rows = places.map((at) => requestRow(idOf(at), startOf(at), at, seed))
    await writer.insert('requests', rows)
    // So many hours fit into one statement.
    const current = from % sumsPortion === 0 ? new HourSums() : sums.pop()
    for (const row of rows) current?.add(requestValues(row))
    if (current) sums.push(current)
    seed.progress(`${from + size} of ${seed.requests} requests written`)
  }
  await writer.insert('fundings', refunds(seed, end))
  await writer.close()
  await writeAllSums(seed, sums)
  if (seed.url !== undefined) await tidy(seed.url)
}

/** Maintenance that the server would have done in those thirty days, and would otherwise do while it is measured. */
async function tidy(url: string): Promise<void> {
  const sql = new SQL({ adapter: 'postgres', url, max: 1 })
  // It never had more than an hour at once.
  await sql.unsafe('VACUUM (FULL) request_hours')
  await sql.unsafe('VACUUM (ANALYZE)')
  await sql.close()
}

/** Spread evenly over the log. */
function isCharged(at: number, { requests, transfers }: Seed): boolean {
  return Math.floor((at * transfers) / requests) !== Math.floor(((at + 1) * transfers) / requests)
}

/** The same scatter for every size, without a generator of chance; another `salt` is another scatter. */
function scattered(at: number, among: number, salt: number): number {
  let mixed = Math.imul(at + 1, 2_654_435_761) ^ Math.imul(salt, 2_246_822_519)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 2_246_822_507)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 3_266_489_909)
  return ((mixed ^ (mixed >>> 16)) >>> 0) % among
}

function isExample(at: number, { requests, examples = 0 }: Seed): boolean {
  return examples > 0 && at % Math.max(1, Math.floor(requests / examples)) === 0
}

function tenantOf(at: number, seed: Seed): Tenant {
  const { tenants } = seed
  const tenant = tenants[isExample(at, seed) ? 0 : scattered(at, tenants.length, 1)]
  if (!tenant) throw new Error('there is no tenant to write requests for')
  return tenant
}

function requestRow(id: string, startedAt: number, at: number, seed: Seed): RequestRow {
  const { workspaceId, projectId, keyId } = tenantOf(at, seed)
  const isFailed = isExample(at, seed) || scattered(at, 50, 2) === 0
  const model = isExample(at, seed) ? exampleModel : scattered(at, seed.models ?? modelsUsual, 4)
  const isLong = scattered(at, 200, 3) === 0
  const [code, cause] = failures[scattered(at, failures.length, 8)] ?? failures[0]
  const provider = hosts[(model + scattered(at, 2, 9)) % hosts.length] ?? 'acme'
  const candidate = { provider, upstreamModel: `model-${model}-v1`, why: 'priority 1; 100 % of the first tries' }
  // A session is over after some hours.
  const hours = Math.floor(at / 1_000)
  const usage = { inputTokens: 900, cacheReadTokens: 100, cacheWriteTokens: 0, cacheWriteLongTokens: 0 }
  return {
    id,
    started_at: startedAt,
    workspace_id: workspaceId,
    project_id: projectId,
    key_id: keyId,
    path: '/v1/chat/completions',
    stream: 1,
    model: seededModel(model),
    status: isFailed ? 502 : 200,
    code: isFailed ? code : null,
    cause: isFailed ? cause : null,
    reason: null,
    provider,
    upstream_model: candidate.upstreamModel,
    lane: 'bytes',
    attempt_start_ms: 1,
    attempt_ms: 812,
    first_event_ms: 120 + scattered(at, 900, 5),
    total_ms: isLong ? 90_000 : 1_250,
    client: 'seed/1.0',
    session: `${keyId}-${hours}`,
    agent: agents[scattered(hours, agents.length, 10)] ?? null,
    end_user: `user-${scattered(at, 500, 11)}`,
    tags: `team=${scattered(at, 8, 7)}`,
    details: JSON.stringify({ candidates: [candidate] }),
    held: charge,
    charge: isCharged(at, seed) ? charge : null,
    written_off: null,
    upstream_cost: null,
    price_version: null,
    input_tokens: 1000,
    cache_read_tokens: 100,
    cache_write_tokens: 0,
    cache_write_1h_tokens: 0,
    output_tokens: 200,
    cache_saved: isCharged(at, seed) ? 90 : null,
    usage: JSON.stringify({ ...usage, outputTokens: 200, source: 'reported' }),
    estimated: 0,
    budgets: null,
    cost_version: null,
    failed_cost: null,
    batch_id: null,
  }
}

function refunds(seed: Seed, createdAt: number): readonly Row[] {
  const spent = new Map<string, number>()
  for (let at = 0; at < seed.requests; at++) {
    if (!isCharged(at, seed)) continue
    const { workspaceId } = tenantOf(at, seed)
    spent.set(workspaceId, (spent.get(workspaceId) ?? 0) + charge)
  }
  return [...spent].map(([workspaceId, amount]) => ({
    id: `tr_${firstIdAt(createdAt - spanMs).slice(4, -6)}${workspaceId.slice(-6)}`,
    kind: 'topup',
    workspace_id: workspaceId,
    debit_account: 'funding',
    credit_account: `wallet:${workspaceId}`,
    amount,
    created_at: createdAt - spanMs,
  }))
}

interface Writer {
  insert(table: string, rows: readonly Row[]): Promise<void>
  close(): Promise<void>
}

function openFile(dataFolder: string): Writer {
  const file = new File(join(dataFolder, 'tollgate.db'))
  file.exec('PRAGMA synchronous = OFF')
  const insert = file.transaction((table: string, rows: readonly Row[]) => {
    const names = Object.keys(rows[0] ?? {})
    const statement = file.prepare(
      `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    )
    for (const row of rows) statement.run(...Object.values(row))
  })
  return {
    insert: async (table, rows) => void (rows.length > 0 && insert(table, rows)),
    close: async () => file.close(),
  }
}

function openServer(url: string): Writer {
  const sql = new SQL({ adapter: 'postgres', url, max: 1 })
  return {
    async insert(table, rows) {
      if (rows.length === 0) return
      const names = Object.keys(rows[0] ?? {}).join(', ')
      const text = `INSERT INTO ${table} (${names}) SELECT ${names} FROM json_populate_recordset(NULL::${table}, $1::text::json)`
      await sql.unsafe(text, [JSON.stringify(rows)])
    },
    close: () => sql.close(),
  }
}

/** The sums that the gateway writes with every request. */
async function writeAllSums({ url, dataFolder }: Seed, all: readonly HourSums[]): Promise<void> {
  const database = await openDatabase({ url, dataFolder })
  const now = systemClock.now()
  // Without the time limit of a usual transaction.
  for (const sums of all) {
    await database.schemaTransaction(async (sql, run) => {
      await writeHours(sql, database.engine, sums)
      // Otherwise PostgreSQL plans for the few hours that it knew before.
      await run('ANALYZE request_hours')
      await foldHours(sql, database.engine, now - (now % grainMs.hour), Number.MAX_SAFE_INTEGER)
    })
  }
  await database.close()
}
