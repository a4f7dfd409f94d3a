// Keeps an open page's models as the server has them: told that something changed, it asks for all of it.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { CatalogEntry } from '../../catalog/entry.ts'

export type LiveState = 'waiting' | 'live' | 'lost'

export interface LiveEntries {
  readonly entries: readonly CatalogEntry[]
  readonly live: LiveState
  /** Grows whenever what a key or a project can use may have changed. */
  readonly accessTurn: number
}

interface Answer {
  readonly state: string
  readonly entries: readonly CatalogEntry[]
}

/** `keep` picks what the page shows of the whole catalog. */
export function useLiveEntries(
  initial: readonly CatalogEntry[],
  initialState: string,
  keep: (all: readonly CatalogEntry[]) => readonly CatalogEntry[],
): LiveEntries {
  const [entries, setEntries] = useState(initial)
  const [live, setLive] = useState<LiveState>('waiting')
  const [accessTurn, setAccessTurn] = useState(0)
  const known = useRef(initialState)
  const choose = useRef(keep)
  choose.current = keep
  useEffect(() => {
    const ask = async () => {
      const response = await fetch('/catalog/entries', { headers: { accept: 'application/json' } })
      if (!response.ok) return
      const answer = (await response.json()) as Answer
      known.current = answer.state
      setEntries(choose.current(answer.entries))
    }
    // A page that cannot ask now is told again with the next change.
    const askQuietly = () => void ask().catch(() => setLive('lost'))
    const noteAccess = () => setAccessTurn((before) => before + 1)
    let wasLost = false
    return followEvents({
      onOpen() {
        setLive('live')
        // Nobody told us while we were away.
        if (wasLost) noteAccess()
        wasLost = false
      },
      onLost() {
        setLive('lost')
        wasLost = true
      },
      onChanged(state) {
        if (state === known.current) return
        askQuietly()
        noteAccess()
      },
      onAccess: noteAccess,
      onMeasured: askQuietly,
    })
  }, [])
  return { entries, live, accessTurn }
}

interface Followers {
  onOpen(): void
  onLost(): void
  onChanged(state: string): void
  onMeasured(): void
  onAccess(): void
}

/** A browser tries again by itself after a lost connection, but not after a refusal; then we do. */
const retryMs = 10_000

/** Answers with how to stop. */
function followEvents(followers: Followers): () => void {
  let source: EventSource | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  const open = () => {
    const opened = new EventSource('/catalog/events')
    source = opened
    opened.addEventListener('open', followers.onOpen)
    opened.addEventListener('changed', ({ data }) => followers.onChanged(String(data)))
    opened.addEventListener('measured', followers.onMeasured)
    opened.addEventListener('access', followers.onAccess)
    opened.addEventListener('error', () => {
      followers.onLost()
      if (opened.readyState === EventSource.CLOSED) timer = setTimeout(open, retryMs)
    })
  }
  open()
  return () => {
    clearTimeout(timer)
    source?.close()
  }
}
