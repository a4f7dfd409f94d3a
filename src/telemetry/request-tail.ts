// Sends requests of every replica to listeners as they are written. While there are listeners, it polls the newest ids of
// the log once a second. Under load it skips requests: the tail is for people to watch, not for bookkeeping.

import type { Clock } from '../kernel/clock.ts'
import { firstIdAt, type RequestId } from '../kernel/ids.ts'
import { type Every, onTimer, yieldToEventLoop } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { findRequest } from './request-log.ts'
import type { LoggedRequest } from './request-record.ts'

export type RequestTail = ReturnType<typeof createRequestTail>

export interface TailListener {
  /** New requests, oldest first; also called without any, as a keep-alive. */
  onRequests(requests: readonly LoggedRequest[]): void
  /** The gateway is stopping. */
  onEnd(): void
}

export interface RequestTailOptions {
  readonly database: Database
  readonly clock: Clock
  onFault(error: unknown): void
  readonly every?: Every
}

const pollMs = 1_000
/** A request is written at its end, under an id from its start, so the poll looks back this far. */
const lookBackMs = 30 * 60_000
const idsMax = 500
/** More than a person can read in a second. */
const sentMax = 25
/** Requests that are read before yielding to the event loop. */
const portionMax = 5
const listenersMax = 100

export function createRequestTail({ database, clock, onFault, every = onTimer }: RequestTailOptions) {
  const listeners = new Set<TailListener>()
  let known: ReadonlySet<RequestId> | undefined
  let stop: (() => void) | undefined
  let isClosed = false

  const poll = async (): Promise<void> => {
    try {
      const since = firstIdAt(Math.max(0, Math.floor(clock.now() - lookBackMs)))
      const rows = await database.sql<{ id: RequestId }>`SELECT id FROM requests WHERE id >= ${since}
        ORDER BY id DESC LIMIT ${BigInt(idsMax)}`
      const before = known
      known = new Set(rows.map(({ id }) => id))
      const fresh = before ? rows.filter(({ id }) => !before.has(id)).slice(0, sentMax) : []
      const requests = await findAll(database, fresh.reverse())
      for (const listener of [...listeners]) listener.onRequests(requests)
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
    /** Returns a function that stops listening; undefined = too many listeners, or the gateway is stopping. */
    listen(listener: TailListener): (() => void) | undefined {
      if (isClosed || listeners.size >= listenersMax) return undefined
      listeners.add(listener)
      if (!stop) {
        stop = every(pollMs, poll)
        // The first poll only remembers what is in the log already.
        void poll()
      }
      return () => leave(listener)
    },
    close(): void {
      // Pages reconnect within seconds, which would keep a stopping gateway running.
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
    await yieldToEventLoop()
    const portion = places.slice(from, from + portionMax)
    for (const request of await Promise.all(portion.map(({ id }) => findRequest(database.sql, id))))
      if (request) found.push(request)
  }
  return found
}
