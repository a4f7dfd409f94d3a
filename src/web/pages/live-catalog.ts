// Keeps the models on an open page up to date: the server announces changes and the page loads the catalog again.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { CatalogEntry, DatedPrice } from '../catalog/entry.ts'
import { readJson } from './api.ts'
import { useQuery } from './hooks.ts'

export type LiveState = 'waiting' | 'live' | 'lost'

export interface LiveCatalog<Initial> {
  readonly entries: readonly CatalogEntry[] | Initial
  readonly live: LiveState
  /** Grows whenever what a key or a project can use may have changed. */
  readonly accessVersion: number
}

interface EntriesAnswer {
  readonly state: string
  readonly entries: readonly CatalogEntry[]
}

/** `select` picks what the page shows of the whole catalog. Without initial entries they are loaded at once. */
export function useLiveCatalog<Initial extends readonly CatalogEntry[] | undefined>(
  initial: Initial,
  initialState: string,
  select: (all: readonly CatalogEntry[]) => readonly CatalogEntry[],
): LiveCatalog<Initial> {
  const [entries, setEntries] = useState<readonly CatalogEntry[] | Initial>(initial)
  const [live, setLive] = useState<LiveState>('waiting')
  const [accessVersion, setAccessVersion] = useState(0)
  const known = useRef(initialState)
  const pick = useRef(select)
  pick.current = select
  useEffect(() => {
    const reload = async () => {
      // After a failure the next change loads it again.
      const answer = await readJson<EntriesAnswer>('/catalog/entries').catch(() => setLive('lost'))
      if (!answer) return
      setLive('live')
      known.current = answer.state
      setEntries(pick.current(answer.entries))
    }
    if (initial === undefined) void reload()
    let knownAccess = ''
    return followEvents('/catalog/events', {
      open: () => setLive('live'),
      error: () => setLive('lost'),
      changed(version) {
        const [state = '', access = ''] = version.split(' ')
        const isNew = state !== known.current
        if (isNew) void reload()
        // The first message only sets the starting point.
        if (isNew || (knownAccess !== '' && access !== knownAccess)) setAccessVersion((before) => before + 1)
        knownAccess = access
      },
      measured: () => void reload(),
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

/** A model's price history, loaded again when the model gets a new price; after a failure, when the page is opened again. */
export function usePriceHistory({ id, price_version: version }: CatalogEntry, initial: readonly DatedPrice[]) {
  const [first] = useState(version)
  const path = `/catalog/history?model=${encodeURIComponent(id)}`
  const isNew = version !== first
  const { value } = useQuery(
    isNew ? `${path} ${version}` : undefined,
    () => readJson<{ readonly history: readonly DatedPrice[] }>(path),
    { keepPrevious: true },
  )
  return value?.history ?? initial
}
