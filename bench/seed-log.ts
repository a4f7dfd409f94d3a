// Fills a gateway's database with a log of the wished size: requests over the last thirty days, charges for some of them,
// and everything the gateway would have counted by now. The gateway must not be running on it.

import { Database as File } from 'bun:sqlite'
import { join } from 'node:path'
import { SQL } from 'bun'
import { systemClock } from '../src/kernel/clock.ts'
import { openDatabase } from '../src/store/open-database.ts'
import { type CountedRequest, HourBuckets, writeSums } from '../src/store/request-rows.ts'
import { firstIdAt } from '../src/telemetry/request-row.ts'

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

type Row = Readonly<Record<string, string | number | null>>

const spanMs = 30 * 86_400_000
const portion = 5_000
const modelsUsual = 40
/** Nano-dollars of each charge; the wallets get as much back, so that their balances stay true. */
const charge = 25_000

/** Which of the models those are for. */
export const exampleModel = 7

export const seededModel = (at: number): string => `acme/model-${at}`

export async function seedLog(seed: Seed): Promise<void> {
  const writer = seed.url === undefined ? openFile(seed.dataFolder) : openServer(seed.url)
  const sums = new HourBuckets()
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
    for (const row of rows) sums.add(countedOf(row))
    const charged = places.filter((at) => isCharged(at, seed))
    await writer.insert(
      'transfers',
      charged.map((at) => chargeRow(idOf(at), startOf(at), at, seed)),
    )
    seed.progress(`${from + size} of ${seed.requests} requests written`)
  }
  await writer.insert('transfers', refunds(seed, end))
  await writer.close()
  await writeAllSums(seed, sums)
  if (seed.url !== undefined) await tidy(seed.url)
}

/** What the server would have done by itself in those thirty days, and would otherwise do while it is measured. */
async function tidy(url: string): Promise<void> {
  const sql = new SQL({ adapter: 'postgres', url, max: 1 })
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

function requestRow(id: string, startedAt: number, at: number, seed: Seed): Row {
  const { workspaceId, projectId, keyId } = tenantOf(at, seed)
  const isFailed = isExample(at, seed) || scattered(at, 50, 2) === 0
  const model = isExample(at, seed) ? exampleModel : scattered(at, seed.models ?? modelsUsual, 4)
  const isLong = scattered(at, 200, 3) === 0
  const candidate = { provider: 'acme', upstreamModel: 'acme-large-v1', why: 'priority 1; 100 % of the first tries' }
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
    code: isFailed ? 'PROVIDER_ERROR' : null,
    provider: 'acme',
    upstream_model: 'acme-large-v1',
    lane: 'bytes',
    candidates: JSON.stringify([candidate]),
    attempts: JSON.stringify([{ provider: 'acme', upstreamModel: 'acme-large-v1', outcome: 'ok', ms: 812 }]),
    warnings: '[]',
    notes: '[]',
    usage: JSON.stringify({ ...usage, outputTokens: 200, source: 'reported' }),
    price_version: null,
    held: charge,
    charge,
    first_event_ms: 120 + scattered(at, 900, 5),
    total_ms: isLong ? 90_000 : 1_250,
    client: 'seed/1.0',
  }
}

function chargeRow(requestId: string, createdAt: number, at: number, seed: Seed): Row {
  return {
    ...transferRow(`tr_${requestId.slice(4)}`, createdAt),
    kind: 'charge',
    request_id: requestId,
    debit_account: `wallet:${tenantOf(at, seed).workspaceId}`,
    credit_account: 'revenue',
    amount: charge,
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
    ...transferRow(`tr_${firstIdAt(createdAt - spanMs).slice(4, -6)}${workspaceId.slice(-6)}`, createdAt - spanMs),
    kind: 'topup',
    request_id: null,
    debit_account: 'funding',
    credit_account: `wallet:${workspaceId}`,
    amount,
  }))
}

function transferRow(id: string, createdAt: number): Row {
  return { id, seq: 0, price_version: null, usage: null, estimated: 0, created_at: createdAt }
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
async function writeAllSums({ url, dataFolder }: Seed, sums: HourBuckets): Promise<void> {
  const database = await openDatabase({ url, dataFolder })
  // Without the time limit of a usual transaction.
  await database.schemaTransaction((sql) => writeSums(sql, database.engine, sums.all()))
  await database.close()
}

function countedOf(row: Row): CountedRequest {
  return {
    startedAt: Number(row.started_at),
    workspaceId: String(row.workspace_id),
    projectId: String(row.project_id),
    keyId: String(row.key_id),
    model: String(row.model),
    isError: row.code !== null,
    inputTokens: 1_000,
    outputTokens: 200,
    charge,
    firstEventMs: Number(row.first_event_ms),
  }
}
