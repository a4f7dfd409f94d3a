// Tells listeners of requests as they are written, of every replica: it looks at the newest ids of the log once a second
// while somebody listens, and not at all otherwise. A flood is thinned out: this is for eyes, not for bookkeeping.

import type { Clock } from '../kernel/clock.ts'
import { type Every, onTimer } from '../kernel/every.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { breathe } from './breathe.ts'
import { firstIdAt } from './id-at.ts'
import { type LoggedRequest, requestFromRow, type StoredRow } from './request-row.ts'

export interface RequestTail {
  /** Answers with how to stop; undefined = too many listen already, or the gateway stops. `onEnd`: it stops now. */
  listen(listener: TailListener): (() => void) | undefined
  close(): void
}

export interface TailListener {
  /** Those that are new, oldest first; also called with none, as a sign of life. */
  onRequests(requests: readonly LoggedRequest[]): void
  onEnd(): void
}

export interface RequestTailOptions {
  readonly database: Database
  readonly clock: Clock
  onFault(error: unknown): void
  readonly every?: Every
}

const lookMs = 1_000
/** A request is written at its end, under an id from its beginning: so far back it is looked for. */
const lookBackMs = 30 * 60_000
const idsMax = 500
/** As many as a person could read, and more. */
const toldMax = 25
/** Read without a breath between them. */
const portionMax = 5
const listenersMax = 100

export function createRequestTail({ database, clock, onFault, every = onTimer }: RequestTailOptions): RequestTail {
  const listeners = new Set<TailListener>()
  let known: ReadonlySet<RequestId> | undefined
  let stop: (() => void) | undefined
  let isClosed = false

  const look = async (): Promise<void> => {
    try {
      const since = firstIdAt(Math.max(0, Math.floor(clock.now() - lookBackMs)))
      const rows = await database.sql<{ id: RequestId }>`SELECT id FROM requests WHERE id >= ${since}
        ORDER BY id DESC LIMIT ${BigInt(idsMax)}`
      const before = known
      known = new Set(rows.map(({ id }) => id))
      const fresh = before ? rows.filter(({ id }) => !before.has(id)).slice(0, toldMax) : []
      const told = await findAll(database, fresh.reverse())
      for (const listener of [...listeners]) listener.onRequests(told)
    } catch (error) {
      onFault(error)
    }
  }
  const leave = (listener: TailListener): void => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    stop?.()
    stop = undefined
    known = undefined
  }

  return {
    listen(listener) {
      if (isClosed || listeners.size >= listenersMax) return undefined
      listeners.add(listener)
      if (!stop) {
        stop = every(lookMs, look)
        // What is there already is not new.
        void look()
      }
      return () => leave(listener)
    },
    close() {
      // Pages come back within seconds, and would keep a gateway that stops from coming to its end.
      isClosed = true
      for (const listener of [...listeners]) {
        leave(listener)
        listener.onEnd()
      }
    },
  }
}

async function findAll(database: Database, places: readonly { readonly id: RequestId }[]): Promise<LoggedRequest[]> {
  const found: LoggedRequest[] = []
  for (let from = 0; from < places.length; from += portionMax) {
    await breathe()
    const portion = places.slice(from, from + portionMax)
    for (const request of await Promise.all(portion.map(({ id }) => find(database, id))))
      if (request) found.push(request)
  }
  return found
}

async function find(database: Database, id: RequestId): Promise<LoggedRequest | undefined> {
  const [row] = await database.sql<StoredRow>`SELECT * FROM requests WHERE id = ${id}`
  return row && requestFromRow(row)
}
