// Requests as they end, while the page is open and asks for them.

import { useEffect, useState } from 'preact/hooks'
import type { LiveState } from '../../browser/live-entries.ts'
import type { RequestItem } from '../parts/api-answers.ts'

export interface LiveRequestsOptions {
  /** undefined = not now. */
  readonly address: string | undefined
  /** The stream is open: what happened before it was has to be asked for. */
  onOpen(): void
  onRequest(request: RequestItem): void
}

/** A browser tries again by itself after a lost connection, but not after a refusal; then we do. */
const retryMs = 10_000

export function useLiveRequests({ address, onOpen, onRequest }: LiveRequestsOptions): LiveState | undefined {
  const [state, setState] = useState<LiveState>('waiting')
  useEffect(() => {
    if (address === undefined) return
    let source: EventSource | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    const open = () => {
      const opened = new EventSource(address)
      source = opened
      opened.addEventListener('open', () => {
        setState('live')
        onOpen()
      })
      opened.addEventListener('request', ({ data }) => onRequest(JSON.parse(String(data)) as RequestItem))
      opened.addEventListener('error', () => {
        setState('lost')
        if (opened.readyState === EventSource.CLOSED) timer = setTimeout(open, retryMs)
      })
    }
    open()
    return () => {
      clearTimeout(timer)
      source?.close()
      setState('waiting')
    }
  }, [address])
  return address === undefined ? undefined : state
}
