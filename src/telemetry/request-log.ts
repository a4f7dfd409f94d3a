// The request log: who asked for what, which provider answered, and what it cost. A charged request is written with its
// charge; the others here, in the background and in batches, because nothing waits for them and losing the last second of
// them in a crash loses no money. Charges must not wait for them either, so on SQLite they go through the journal.

import { firstIdAt, type KeyId, type ProjectId, type RequestId } from '../kernel/ids.ts'
import { giveWay } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import { type RequestRow, writeRequests } from '../store/request-rows.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import {
  conditionsOf,
  isFailedOnly,
  type LogDatabase,
  type Piece,
  type RequestFilters,
  readPortions,
  run,
} from './read-log.ts'
import {
  endOfLog,
  type LoggedRequest,
  type RequestRecord,
  requestFromRow,
  requestRow,
  type StoredRow,
} from './request-record.ts'

export type RequestLog = ReturnType<typeof createRequestLog>

export interface RequestLogOptions {
  readonly database: Database
  /** How long a record may wait for others; absent = 200. */
  readonly flushMs?: number | undefined
  /** Called once per batch that could not be written, with the number of lost records. */
  onLost(count: number, error: unknown): void
}

const defaultFlushMs = 200
/** About 1 KB each. Beyond that the newest are dropped, so that a flood of refused requests does not fill the memory. */
const queueMax = 10_000
/** Of one commit: charges on SQLite wait for it, also in a flood. */
const portionMax = 128

export function createRequestLog({ database, flushMs = defaultFlushMs, onLost }: RequestLogOptions) {
  let queue: RequestRow[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let writing: Promise<void> = Promise.resolve()
  let dropped = 0
  let lost = 0
  const lose = (count: number, error: unknown): void => {
    lost += count
    onLost(count, error)
  }

  async function flush(): Promise<void> {
    const rows = queue
    queue = []
    if (dropped > 0) lose(dropped, new Error('the queue of the request log was full'))
    dropped = 0
    for (let from = 0; from < rows.length; from += portionMax) {
      const portion = rows.slice(from, from + portionMax)
      try {
        await insert(portion)
      } catch (error) {
        if (isStoreUnavailable(error)) lose(portion.length, error)
        else await insertEach(portion)
      }
    }
  }

  const insert = (rows: readonly RequestRow[]) =>
    database.journal
      ? database.journal.append(rows)
      : database.transaction((sql) => writeRequests(sql, database.engine, rows))

  /** A row that the database refuses must not lose the rows of other callers. */
  async function insertEach(rows: readonly RequestRow[]): Promise<void> {
    let refused = 0
    let fault: unknown
    for (const row of rows) {
      try {
        await insert([row])
      } catch (error) {
        refused++
        fault = error
      }
    }
    if (refused > 0) lose(refused, fault)
  }

  return {
    /** Queues a request that was not charged, or a correction of one that was: see `writeRequests`. */
    write(record: RequestRecord): void {
      const row = requestRow(record)
      if (!row) return
      if (queue.length >= queueMax) dropped++
      else queue.push(row)
      timer ??= setTimeout(() => {
        timer = undefined
        writing = writing.then(flush)
      }, flushMs)
    },
    list: (query: RequestQuery) => listRequests(database.sql, query),
    find: (id: RequestId) => findRequest(database.sql, id),
    /** How many records could not be written since the start. */
    lost: () => lost,
    /** Writes what is queued. */
    async close(): Promise<void> {
      clearTimeout(timer)
      timer = undefined
      await writing
      await flush()
    },
  }
}

export async function findRequest(sql: Sql, id: RequestId): Promise<LoggedRequest | undefined> {
  const [row] = await sql<StoredRow>`SELECT * FROM requests WHERE id = ${id}`
  return row && requestFromRow(row)
}

export interface RequestQuery extends RequestFilters {
  /** When they started, epoch milliseconds; `to` is exclusive. */
  readonly from?: number
  readonly to?: number
  readonly limit: number
  /** The id of the last one of the page before. */
  readonly before?: RequestId
}

/** Newest first. */
export async function listRequests(sql: Sql, query: RequestQuery): Promise<readonly LoggedRequest[]> {
  const { projectId, keyId, keyIds } = query
  if (keyIds) {
    const wanted = keyId === undefined ? keyIds : keyIds.filter((id) => id === keyId)
    return (await findOfKeys(sql, wanted, query)).map(requestFromRow)
  }
  const rows =
    projectId === undefined || keyId !== undefined ? findRows(sql, query) : findOfProject(sql, projectId, query)
  return (await rows).map(requestFromRow)
}

/** With more keys, the whole log is searched. */
const projectKeysMax = 40

/** There is no index by project, because every request would have to update it. The index by key is used for each key. */
async function findOfProject(sql: Sql, project: ProjectId, query: RequestQuery): Promise<StoredRow[]> {
  const keys = await sql<{ id: KeyId }>`SELECT id FROM api_keys WHERE project_id = ${project}
    ORDER BY id LIMIT ${BigInt(projectKeysMax + 1)}`
  if (keys.length > projectKeysMax) return await findRows(sql, query)
  const ids = keys.map(({ id }) => id)
  return await findOfKeys(sql, ids, query)
}

/** Reads a page of each key by its index, and merges them. */
async function findOfKeys(sql: Sql, keyIds: readonly KeyId[], query: RequestQuery): Promise<StoredRow[]> {
  const pages: StoredRow[][] = []
  for (const keyId of keyIds) pages.push(await findRows(sql, { ...query, keyId }))
  return pages
    .flat()
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, query.limit)
}

/** Each has an index together with the id. The first one in a query uses its index; the database tests the rows for the others. */
const indexedColumns = { batch_id: 'batchId', key_id: 'keyId', model: 'model', workspace_id: 'workspaceId' } as const
type IndexedColumn = keyof typeof indexedColumns
/** How many rows are tested at once: few first, because most filters find a page soon. */
const portions = { first: 200n, next: 2_000n } as const

async function findRows(sql: Sql, query: RequestQuery): Promise<StoredRow[]> {
  const column = (Object.keys(indexedColumns) as IndexedColumn[]).find(
    (each) => query[indexedColumns[each]] !== undefined,
  )
  const name = column && indexedColumns[column]
  const { from = 0, to = lastMoment, before, limit, outcome, ...filters } = query
  const rest = Object.fromEntries(Object.entries(filters).filter(([each]) => each !== name)) as RequestFilters
  const others = conditionsOf(rest, true)
  const [since, end] = idRange(query)
  const ofIndex = isFailedOnly(query) ? 'failed' : outcome
  const place = { column, value: name && query[name], outcome: ofIndex, since }
  const conditions: readonly Piece[] = [
    ['started_at >= ? AND started_at < ?', timeToSql(from), timeToSql(to)],
    ...others,
  ]
  const found: StoredRow[] = []
  let portion: bigint = portions.first
  for (let until: string = end; ; portion = portions.next) {
    // Without other filters the index has the page.
    const [last] = others.length === 0 ? [] : await findPlace(sql, { ...place, before: until }, portion)
    const wanted = { ...place, since: last?.id ?? since, before: until }
    found.push(...(await findAlong(sql, wanted, conditions, limit - found.length)))
    if (found.length >= limit || !last) return found
    until = last.id
    // A search may read the whole log; running requests go first.
    await giveWay()
  }
}

interface IndexPlace {
  readonly column: IndexedColumn | undefined
  readonly value: string | undefined
  readonly outcome: RequestFilters['outcome']
  readonly since: string
  readonly before: string
}

/** Compares pairs, so that the planner uses the index on the pair instead of scanning by id. */
function alongIndex({ column, value = '', outcome, since, before }: IndexPlace): readonly Piece[] {
  const range: Piece =
    column === undefined
      ? ['id >= ? AND id < ?', since, before]
      : [`(${column}, id) >= (?, ?) AND (${column}, id) < (?, ?)`, value, since, value, before]
  return [range, ...(outcome === undefined ? [] : ([[` AND code IS ${outcome === 'ok' ? '' : 'NOT '}NULL`]] as const))]
}

const newestFirst = (column: IndexedColumn | undefined): string =>
  ` ORDER BY ${column === undefined ? '' : `${column} DESC, `}id DESC`

/** The place so many rows further on, which is read from the index alone. */
function findPlace(sql: Sql, place: IndexPlace, rows: bigint): Promise<{ id: string }[]> {
  const order = newestFirst(place.column)
  return run(sql, [['SELECT id FROM requests WHERE '], ...alongIndex(place), [`${order} LIMIT 1 OFFSET ?`, rows - 1n]])
}

function findAlong(sql: Sql, place: IndexPlace, conditions: readonly Piece[], limit: number): Promise<StoredRow[]> {
  return run(sql, [
    ['SELECT * FROM requests WHERE '],
    ...alongIndex(place),
    ...conditions.flatMap((condition): Piece[] => [[' AND '], condition]),
    [`${newestFirst(place.column)} LIMIT ?`, BigInt(limit)],
  ])
}

/** An id holds its time in 48 bits. */
const lastMoment = 2 ** 48 - 1
const idMarginMs = 60_000

/** Begins before `from`: an id is created a moment before the start time of its request is taken. */
function idRange({ from, to, before = endOfLog }: RequestQuery): readonly [since: string, before: RequestId] {
  const idAt = (time: number): RequestId => firstIdAt(Math.min(lastMoment, Math.max(0, Math.floor(time))))
  const end = to === undefined ? endOfLog : idAt(to)
  return [from === undefined ? '' : idAt(from - idMarginMs), end < before ? end : before]
}

/** What requests can be sorted by, and the column of each. */
const sortColumns = {
  started_at: 'started_at',
  total_ms: 'total_ms',
  first_event_ms: 'first_event_ms',
  input_tokens: 'input_tokens',
  output_tokens: 'output_tokens',
  cost: 'charge',
} as const

export interface SortedQuery extends RequestFilters {
  readonly from?: number
  readonly to?: number
  readonly sort: keyof typeof sortColumns
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** The last place of the page before. */
  readonly after?: SortedPlace
  readonly signal?: LogDatabase['signal']
}

export interface SortedPlace {
  readonly id: RequestId
  /** null = the request has none; those come last in either order. */
  readonly value: bigint | null
}

/** The first places of a sorted list. No index has these orders, so all requests of the period are read, in portions. */
export async function sortedPlaces(database: LogDatabase, query: SortedQuery): Promise<readonly SortedPlace[]> {
  const { sort, order, limit, after, signal, from = 0, to = lastMoment - idMarginMs, ...filters } = query
  const column = sortColumns[sort]
  const [condition, ...values] = after ? placesAfter(after, column, order) : ['']
  const portions = readPortions<SortedPlace>(
    { ...database, ...(signal && { signal }) },
    { ...filters, from, to },
    `SELECT id, ${column} AS value`,
    [`${condition} ORDER BY ${column} ${order} NULLS LAST, id DESC LIMIT ?`, ...values, BigInt(limit)],
  )
  let found: SortedPlace[] = []
  for await (const places of portions) {
    found = [...found, ...places].sort((a, b) => comparePlaces(a, b, order)).slice(0, limit)
  }
  return found
}

/** The condition that `comparePlaces` sorts a place behind another. */
function placesAfter({ id, value }: SortedPlace, column: string, order: SortedQuery['order']): Piece {
  if (value === null) return [` AND ${column} IS NULL AND id < ?`, id]
  const further = order === 'asc' ? '>' : '<'
  return [` AND (${column} ${further} ? OR ${column} IS NULL OR (${column} = ? AND id < ?))`, value, value, id]
}

/** The newest first among equals. */
function comparePlaces(a: SortedPlace, b: SortedPlace, order: SortedQuery['order']): number {
  if (a.value === b.value) return a.id < b.id ? 1 : a.id > b.id ? -1 : 0
  if (a.value === null || b.value === null) return a.value === null ? 1 : -1
  return a.value < b.value === (order === 'asc') ? -1 : 1
}

/** The requests at these places, in their order. */
export async function requestsAt(sql: Sql, places: readonly SortedPlace[]): Promise<readonly LoggedRequest[]> {
  if (places.length === 0) return []
  const ids = places.map(({ id }) => id)
  const texts = ['SELECT * FROM requests WHERE id IN (', ...ids.slice(1).map(() => ', '), ')']
  const rows = await sql<StoredRow>(templateOf(texts), ...ids)
  const byId = new Map(rows.map((row) => [row.id, requestFromRow(row)]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}
