// Keeps an open page's price history as the server has it: asked for again when the model has a new price.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { CatalogEntry, DatedPrice } from '../../catalog/entry.ts'

export function useHistory({ id, price_version: version }: CatalogEntry, initial: readonly DatedPrice[]) {
  const [history, setHistory] = useState(initial)
  const known = useRef(version)
  useEffect(() => {
    if (known.current === version) return
    known.current = version
    const ask = async () => {
      const response = await fetch(`/catalog/history?model=${encodeURIComponent(id)}`)
      if (response.ok) setHistory(((await response.json()) as { history: readonly DatedPrice[] }).history)
    }
    // What cannot be asked for now is there when the page is opened again.
    void ask().catch(() => {})
  }, [id, version])
  return history
}
