// Notifies open pages over server-sent events when prices, models, health or access change; the pages then load what is new.
// Polls the catalog once a second while there are listeners.

import { EventStream } from '../../pipeline/answer.ts'
import type { CatalogEntry } from './entry.ts'

export interface ChangeFeed {
  /** undefined = too many listeners, in total or from this address, or the gateway is stopping. */
  listen(address: string | undefined): EventStream | undefined
  /** Access of keys and projects may have changed; sent with the next poll. */
  accessChanged(): void
  /** Ends all streams, so that the gateway can stop. */
  close(): void
}

export interface ChangeFeedOptions {
  entries(): readonly CatalogEntry[]
  /** Another object once anything on sale has changed, prices in price lists included. */
  offered?(): unknown
  /** Like setInterval, returning how to stop; for tests. */
  every?(milliseconds: number, run: () => void): () => void
}

const pollMs = 1_000
/**
 * Measurements change with every request, so they are sent less often. Sending something this often also keeps proxies and
 * the gateway itself from closing an idle connection.
 */
const pollsPerMessage = 15
/** Each needs a small buffer. */
const listenersMax = 500
/** Keeps one client from using up all listeners; an office or an untrusted proxy may share one address. */
const perAddressMax = 50

/** How many messages may wait for a slow reader. */
const waitingMax = 4

export function createChangeFeed({
  entries,
  offered = () => undefined,
  every = everyByTimer,
}: ChangeFeedOptions): ChangeFeed {
  /** With their addresses (those without one share `unknown`), and the version that each was sent last. */
  const listeners = new Map<EventStream, { readonly address: string; version: string }>()
  let stopPolling: (() => void) | undefined
  let isClosed = false
  let polls = 0
  let measured = ''
  // Random, so that pages notice a change while they were not connected, also a restart.
  let access = crypto.randomUUID()
  let version = ''
  let offer: unknown

  const refresh = (): boolean => {
    const before = version
    const last = offer
    offer = offered()
    // Pages that show the catalog of a key or project load it again; most of these changes are in no public entry.
    if (last !== undefined && offer !== last) access = crypto.randomUUID()
    version = `${stateOf(entries())} ${access}`
    return version !== before
  }
  const poll = (): void => {
    polls++
    // Pages that load now get the measurements too.
    if (refresh()) measured = measurementOf(entries())
    for (const [listener, last] of listeners) {
      // A slow reader gets the latest version once it has room.
      const isNews = last.version !== version
      if (isNews && listener.send(`event: changed\ndata: ${version}\n\n`)) last.version = version
    }
    if (polls % pollsPerMessage !== 0) return
    const before = measured
    measured = measurementOf(entries())
    const message = measured === before ? ': keep-alive\n\n' : 'event: measured\ndata: again\n\n'
    for (const listener of listeners.keys()) listener.send(message)
  }
  const leave = (listener: EventStream): void => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    stopPolling?.()
    stopPolling = undefined
  }

  return {
    listen(address = 'unknown') {
      const neighbours = listeners.values().reduce((count, other) => count + Number(other.address === address), 0)
      if (isClosed || listeners.size >= listenersMax || neighbours >= perAddressMax) return undefined
      const listener = new EventStream(waitingMax, () => leave(listener))
      if (listeners.size === 0) {
        refresh()
        measured = measurementOf(entries())
        stopPolling = every(pollMs, poll)
      }
      listeners.set(listener, { address, version })
      // For pages rendered just before a change, and for those that reconnect.
      listener.send(`retry: 2000\nevent: changed\ndata: ${version}\n\n`)
      return listener
    },
    accessChanged() {
      access = crypto.randomUUID()
    },
    close() {
      // Refuses pages that reconnect, which would keep the gateway from stopping.
      isClosed = true
      for (const listener of [...listeners.keys()]) {
        leave(listener)
        listener.end()
      }
    },
  }
}

const states = new WeakMap<readonly CatalogEntry[], string>()

/** A hash of everything except measurements and countdowns, computed once per snapshot of the catalog. */
export function stateOf(entries: readonly CatalogEntry[]): string {
  const state = states.get(entries) ?? digest(entries, ['first_event_ms', 'tokens_per_second', 'wait_ms', 'factor'])
  states.set(entries, state)
  return state
}

function measurementOf(entries: readonly CatalogEntry[]): string {
  return digest(entries, ['window_ms', 'wait_ms'])
}

function digest(entries: readonly CatalogEntry[], without: readonly string[]): string {
  const text = JSON.stringify(entries, (name, value) => (without.includes(name) ? undefined : value))
  return Bun.hash(text).toString(36)
}

function everyByTimer(milliseconds: number, run: () => void): () => void {
  const timer = setInterval(run, milliseconds)
  return () => clearInterval(timer)
}
