// Tells open pages that prices, models or health have changed, or what somebody can use; what is new they ask for
// themselves. It looks at the catalog once a second while somebody listens, and not at all otherwise.

import type { CatalogEntry } from './entry.ts'

export interface ChangeFeed {
  /** undefined = too many listen already, all in all or from this address, or the gateway stops. */
  listen(signal: AbortSignal, address: string | undefined): ReadableStream<Uint8Array> | undefined
  /** Whoever shows what one key or project can use has to ask again; told with the next look. */
  accessChanged(): void
  /** Ends every stream, so that a gateway can stop. */
  close(): void
}

export interface ChangeFeedOptions {
  entries(): readonly CatalogEntry[]
  /** Calls back every so many milliseconds until the returned function is called; for tests. */
  every?(milliseconds: number, run: () => void): () => void
}

const lookMs = 1_000
/**
 * Measurements move with every request, and nobody reads them by the second. A word this often also keeps proxies, and
 * the gateway itself, from taking the connection for dead.
 */
const looksPerWord = 15
/** × one small buffer each; the pages of an office, not of the internet. */
const listenersMax = 500
/** Of one address, so that no stranger holds them all; an office, or a proxy that is not trusted, may be one. */
const perAddressMax = 50

const encoder = new TextEncoder()
const accessWord = encoder.encode('event: access\ndata: changed\n\n')

export function createChangeFeed({ entries, every = everyByTimer }: ChangeFeedOptions): ChangeFeed {
  /** Each with its address; those from unknown ones share one. */
  const listeners = new Map<ReadableStreamDefaultController<Uint8Array>, string>()
  let stopLooking: (() => void) | undefined
  let isClosed = false
  let looks = 0
  let state = ''
  let measured = ''
  /** Who is still to be told that somebody can use something else; one who does not read stays in it until it does. */
  const owed = new Set<ReadableStreamDefaultController<Uint8Array>>()

  const tell = (text: string): void => {
    const bytes = encoder.encode(text)
    for (const listener of listeners.keys()) {
      // A page that does not read misses nothing: the next change tells it to ask for everything again.
      if ((listener.desiredSize ?? 0) > 0) listener.enqueue(bytes)
    }
  }
  const tellOwed = (): void => {
    for (const listener of owed) {
      if ((listener.desiredSize ?? 0) <= 0) continue
      listener.enqueue(accessWord)
      owed.delete(listener)
    }
  }
  const look = (): void => {
    looks++
    tellOwed()
    const [stateBefore, measuredBefore] = [state, measured]
    const now = entries()
    state = stateOf(now)
    if (state !== stateBefore) {
      // Who asks now gets the measurements too.
      measured = measurementOf(now)
      return tell(`event: changed\ndata: ${state}\n\n`)
    }
    if (looks % looksPerWord !== 0) return
    measured = measurementOf(now)
    tell(measured === measuredBefore ? ': still here\n\n' : 'event: measured\ndata: again\n\n')
  }
  const leave = (listener: ReadableStreamDefaultController<Uint8Array>): void => {
    listeners.delete(listener)
    owed.delete(listener)
    if (listeners.size > 0) return
    stopLooking?.()
    stopLooking = undefined
  }
  const begin = (): void => {
    const now = entries()
    state = stateOf(now)
    measured = measurementOf(now)
    stopLooking = every(lookMs, look)
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
            if (listeners.size === 0) begin()
            listeners.set(controller, address)
            // Also for a page that was made a moment before a change, and for one that was away.
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
      for (const listener of listeners.keys()) owed.add(listener)
    },
    close() {
      // Pages come back within seconds, and would keep a gateway that stops from coming to its end.
      isClosed = true
      for (const listener of [...listeners.keys()]) {
        leave(listener)
        listener.close()
      }
    },
  }
}

/** Names what somebody would want to know at once: everything but what is measured or counts down. */
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
