// What a page shows of the API: asked for when the page opens or its address changes, and again on request. The answer
// to a question that is not asked any more is thrown away.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { callApi, Refusal } from './call-api.ts'

export interface Resource<Value> {
  /** The last good answer, also while another is asked for. */
  readonly value: Value | undefined
  readonly refusal: Refusal | undefined
  readonly isLoading: boolean
  again(): void
}

/** undefined = there is nothing to ask for yet. */
export function useResource<Value>(path: string | undefined): Resource<Value> {
  const [state, setState] = useState<{ readonly value?: Value; readonly refusal?: Refusal; readonly of?: string }>({})
  const [turn, setTurn] = useState(0)
  const [isLoading, setLoading] = useState(true)
  useEffect(() => {
    if (path === undefined) return
    const leaving = new AbortController()
    setLoading(true)
    void callApi<Value>(path, { signal: leaving.signal }).then((answer) => {
      if (leaving.signal.aborted) return
      setLoading(false)
      setState((before) => {
        const kept = before.of === path && before.value !== undefined ? { value: before.value } : {}
        return answer instanceof Refusal ? { ...kept, refusal: answer, of: path } : { value: answer, of: path }
      })
    })
    return () => leaving.abort()
  }, [path, turn])
  const again = useCallback(() => setTurn((before) => before + 1), [])
  return { value: state.value, refusal: state.refusal, isLoading, again }
}

export interface ListAnswer<Item> {
  readonly data: readonly Item[]
  readonly next_cursor: string | null
}

export interface List<Item> {
  readonly items: readonly Item[]
  readonly refusal: Refusal | undefined
  readonly isLoading: boolean
  readonly hasMore: boolean
  more(): void
  again(): void
  /** Puts something on top that the server told of; what is listed already is replaced. */
  add(item: Item): void
}

/** undefined = there is nothing to ask for yet. */
export function useList<Item extends { readonly id: string }>(path: string | undefined): List<Item> {
  const first = useResource<ListAnswer<Item>>(path)
  const [later, setLater] = useState<readonly Item[]>([])
  const [added, setAdded] = useState<readonly Item[]>([])
  const [cursor, setCursor] = useState<string | null>(null)
  const [problem, setProblem] = useState<Refusal | undefined>(undefined)
  const current = useRef(path)
  current.current = path
  useEffect(() => {
    setLater([])
    setAdded([])
    setProblem(undefined)
    setCursor(first.value?.next_cursor ?? null)
  }, [first.value])
  const more = async () => {
    if (cursor === null || path === undefined) return
    const next = await callApi<ListAnswer<Item>>(`${path}${path.includes('?') ? '&' : '?'}cursor=${cursor}`)
    if (current.current !== path) return
    if (next instanceof Refusal) return setProblem(next)
    setLater((before) => [...before, ...next.data])
    setCursor(next.next_cursor)
  }
  const add = useCallback(
    (item: Item) => setAdded((before) => [item, ...before.filter(({ id }) => id !== item.id)]),
    [],
  )
  const fresh = new Set(added.map(({ id }) => id))
  const old = [...(first.value?.data ?? []), ...later].filter(({ id }) => !fresh.has(id))
  return {
    items: [...added, ...old],
    refusal: problem ?? first.refusal,
    isLoading: first.isLoading,
    hasMore: cursor !== null,
    more: () => void more(),
    again: first.again,
    add,
  }
}
