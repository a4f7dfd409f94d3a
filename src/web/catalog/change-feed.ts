// Notifies open pages over server-sent events when prices, models, health or access change; the pages then load what is new.
// Polls the catalog once a second while there are listeners.

import type { CatalogEntry } from './entry.ts'

export interface ChangeFeed {
  /** undefined = too many listeners, in total or from this address, or the gateway is stopping. */
  listen(signal: AbortSignal, address: string | undefined): ReadableStream<Uint8Array> | undefined
  /** What keys and projects can use may have changed; sent with the next poll. */
  accessChanged(): void
  /** Ends all streams, so that the gateway can stop. */
  close(): void
}

export interface ChangeFeedOptions {
  entries(): readonly CatalogEntry[]
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

const encoder = new TextEncoder()
const accessMessage = encoder.encode('event: access\ndata: changed\n\n')

export function createChangeFeed({ entries, every = everyByTimer }: ChangeFeedOptions): ChangeFeed {
  /** With their addresses; listeners without one share `unknown`. */
  const listeners = new Map<ReadableStreamDefaultController<Uint8Array>, string>()
  let stopPolling: (() => void) | undefined
  let isClosed = false
  let polls = 0
  let state = ''
  let measured = ''
  /** Listeners that have not received the access message yet, because their buffer is full. */
  const awaitingAccess = new Set<ReadableStreamDefaultController<Uint8Array>>()

  const send = (text: string): void => {
    const bytes = encoder.encode(text)
    for (const listener of listeners.keys()) {
      // A slow reader misses nothing: the next change makes it load everything.
      if ((listener.desiredSize ?? 0) > 0) listener.enqueue(bytes)
    }
  }
  const sendAccess = (): void => {
    for (const listener of awaitingAccess) {
      if ((listener.desiredSize ?? 0) <= 0) continue
      listener.enqueue(accessMessage)
      awaitingAccess.delete(listener)
    }
  }
  const poll = (): void => {
    polls++
    sendAccess()
    const [stateBefore, measuredBefore] = [state, measured]
    const now = entries()
    state = stateOf(now)
    if (state !== stateBefore) {
      // Pages that load now get the measurements too.
      measured = measurementOf(now)
      return send(`event: changed\ndata: ${state}\n\n`)
    }
    if (polls % pollsPerMessage !== 0) return
    measured = measurementOf(now)
    send(measured === measuredBefore ? ': keep-alive\n\n' : 'event: measured\ndata: again\n\n')
  }
  const leave = (listener: ReadableStreamDefaultController<Uint8Array>): void => {
    listeners.delete(listener)
    awaitingAccess.delete(listener)
    if (listeners.size > 0) return
    stopPolling?.()
    stopPolling = undefined
  }
  const start = (): void => {
    const now = entries()
    state = stateOf(now)
    measured = measurementOf(now)
    stopPolling = every(pollMs, poll)
  }

  return {
    listen(signal, address = 'unknown') {
      const neighbours = listeners.values().reduce((count, other) => (other === address ? count + 1 : count), 0)
      if (isClosed || listeners.size >= listenersMax || neighbours >= perAddressMax) return undefined
      let own: ReadableStreamDefaultController<Uint8Array> | undefined
      return new ReadableStream<Uint8Array>(
        {
          start(controller) {
            own = controller
            if (listeners.size === 0) start()
            listeners.set(controller, address)
            // For pages rendered just before a change, and for those that reconnect.
            controller.enqueue(encoder.encode(`retry: 2000\nevent: changed\ndata: ${state}\n\n`))
            signal.addEventListener('abort', () => leave(controller), { once: true })
          },
          cancel() {
            if (own) leave(own)
          },
        },
        new CountQueuingStrategy({ highWaterMark: 4 }),
      )
    },
    accessChanged() {
      for (const listener of listeners.keys()) awaitingAccess.add(listener)
    },
    close() {
      // Refuses pages that reconnect, which would keep the gateway from stopping.
      isClosed = true
      for (const listener of [...listeners.keys()]) {
        leave(listener)
        listener.close()
      }
    },
  }
}

/** A hash of everything except measurements and countdowns. */
export function stateOf(entries: readonly CatalogEntry[]): string {
  return digest(entries, ['first_event_ms', 'tokens_per_second', 'wait_ms', 'factor'])
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
