// Keeps the models on an open page up to date: the server announces changes and the page loads the catalog again.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { CatalogEntry, DatedPrice } from '../catalog/entry.ts'

export type LiveState = 'waiting' | 'live' | 'lost'

export interface LiveCatalog {
  readonly entries: readonly CatalogEntry[]
  readonly live: LiveState
  /** Grows whenever what a key or a project can use may have changed. */
  readonly accessVersion: number
}

interface EntriesAnswer {
  readonly state: string
  readonly entries: readonly CatalogEntry[]
}

/** `select` picks what the page shows of the whole catalog. */
export function useLiveCatalog(
  initial: readonly CatalogEntry[],
  initialState: string,
  select: (all: readonly CatalogEntry[]) => readonly CatalogEntry[],
): LiveCatalog {
  const [entries, setEntries] = useState(initial)
  const [live, setLive] = useState<LiveState>('waiting')
  const [accessVersion, setAccessVersion] = useState(0)
  const known = useRef(initialState)
  const pick = useRef(select)
  pick.current = select
  useEffect(() => {
    const load = async () => {
      const response = await fetch('/catalog/entries', { headers: { accept: 'application/json' } })
      if (!response.ok) return
      const answer = (await response.json()) as EntriesAnswer
      known.current = answer.state
      setEntries(pick.current(answer.entries))
    }
    // After a failure the next change loads it again.
    const reload = () => void load().catch(() => setLive('lost'))
    const bumpAccess = () => setAccessVersion((before) => before + 1)
    let wasLost = false
    return followEvents('/catalog/events', {
      open() {
        setLive('live')
        // Changes of access are not announced again after a lost connection.
        if (wasLost) bumpAccess()
        wasLost = false
      },
      error() {
        setLive('lost')
        wasLost = true
      },
      changed(state) {
        if (state === known.current) return
        reload()
        bumpAccess()
      },
      access: bumpAccess,
      measured: reload,
    })
  }, [])
  return { entries, live, accessVersion }
}

/** Browsers reconnect by themselves after a lost connection, but not after a refusal. */
const retryMs = 10_000

/** Listens to server-sent events by name, `open` and `error` included. Returns how to stop. */
export function followEvents(path: string, handlers: Readonly<Record<string, (data: string) => void>>): () => void {
  let source: EventSource | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  const open = () => {
    const opened = new EventSource(path)
    source = opened
    for (const [name, handle] of Object.entries(handlers)) {
      opened.addEventListener(name, (event) => handle(event instanceof MessageEvent ? String(event.data) : ''))
    }
    opened.addEventListener('error', () => {
      if (opened.readyState === EventSource.CLOSED) timer = setTimeout(open, retryMs)
    })
  }
  open()
  return () => {
    clearTimeout(timer)
    source?.close()
  }
}

/** A model's price history, loaded again when the model gets a new price. */
export function usePriceHistory({ id, price_version: version }: CatalogEntry, initial: readonly DatedPrice[]) {
  const [history, setHistory] = useState(initial)
  const known = useRef(version)
  useEffect(() => {
    if (known.current === version) return
    known.current = version
    const load = async () => {
      const response = await fetch(`/catalog/history?model=${encodeURIComponent(id)}`)
      if (response.ok) setHistory(((await response.json()) as { history: readonly DatedPrice[] }).history)
    }
    // After a failure the history is right when the page is opened again.
    void load().catch(() => {})
  }, [id, version])
  return history
}
