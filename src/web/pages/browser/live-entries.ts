// Keeps an open page's models as the server has them: told that something changed, it asks for all of it.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { CatalogEntry } from '../../catalog/entry.ts'

export type LiveState = 'waiting' | 'live' | 'lost'

export interface LiveEntries {
  readonly entries: readonly CatalogEntry[]
  readonly live: LiveState
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
    return followEvents({
      onOpen: () => setLive('live'),
      onLost: () => setLive('lost'),
      onChanged: (state) => state !== known.current && askQuietly(),
      onMeasured: askQuietly,
    })
  }, [])
  return { entries, live }
}

interface Followers {
  onOpen(): void
  onLost(): void
  onChanged(state: string): void
  onMeasured(): void
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
