// Notices that a value on an open page has changed, for as long as people should see it.

import { useEffect, useRef, useState } from 'preact/hooks'

const shownMs = 8_000

/** The value before, for a while after a change; otherwise undefined. */
export function useChanged(value: string): string | undefined {
  const last = useRef(value)
  const [before, setBefore] = useState<string | undefined>(undefined)
  useEffect(() => {
    if (last.current === value) return
    setBefore(last.current)
    last.current = value
    const timer = setTimeout(() => setBefore(undefined), shownMs)
    return () => clearTimeout(timer)
  }, [value])
  return before
}
