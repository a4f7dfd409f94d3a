// The console's data hooks: a query, a list with pages, a change, a timer, an idempotency key, and filters kept in the address.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { systemClock } from '../../kernel/clock.ts'
import {
  type AnswerOf,
  ApiError,
  type CallOf,
  callApi,
  callForPage,
  type ItemOf,
  type ListAnswer,
  type ListName,
  type OperationName,
  targetOfCall,
} from './api.ts'

export interface Query<Value> {
  /** The last good answer; undefined = none yet. */
  readonly value: Value | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  reload(): void
  /** Ends the running call, which then shows as an error. */
  cancel(): void
}

/** The result of a call, or why it failed. Anything else that is thrown is a defect. */
async function outcomeOf<Value>(call: Promise<Value>): Promise<{ value: Value } | { error: ApiError }> {
  try {
    return { value: await call }
  } catch (thrown) {
    if (thrown instanceof ApiError) return { error: thrown }
    throw thrown
  }
}

export interface QueryOptions {
  /** Shows the value of the previous key until the new one has loaded. */
  readonly keepPrevious?: boolean
}

/** Answers that came with the document, by path. Emptied once the page has used them. */
const firstAnswers = new Map<string, unknown>()

/** On the server for one rendering, in the browser before the first one. */
export function setFirstAnswers(answers: Readonly<Record<string, unknown>>): void {
  firstAnswers.clear()
  for (const [path, answer] of Object.entries(answers)) firstAnswers.set(path, answer)
}

/** The current time, or the one at which the first answers were read as long as the page is rendered with them. */
export function firstTime(answeredAt: number): number {
  return firstAnswers.size > 0 ? answeredAt : systemClock.now()
}

export const cancelledText = 'Cancelled before the log was read to its end.'

interface QueryState<Value> {
  readonly key: string | undefined
  readonly value?: Value | undefined
  readonly error?: ApiError
}

/**
 * Loads a value when the component mounts, when the key changes, and on `reload`. While it loads, the value of the same key
 * stays; answers to superseded calls are dropped. A key of undefined loads nothing yet.
 */
export function useQuery<Value>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<Value>,
  { keepPrevious = false }: QueryOptions = {},
): Query<Value> {
  const [state, setState] = useState<QueryState<Value>>(() => ({
    key,
    ...(key !== undefined && firstAnswers.has(key) && { value: firstAnswers.get(key) as Value }),
  }))
  const isFirst = useRef(state.value !== undefined)
  const [reloads, setReloads] = useState(0)
  const [isLoading, setLoading] = useState(state.value === undefined)
  const running = useRef<AbortController | undefined>(undefined)
  const latest = useRef(load)
  latest.current = load
  useEffect(() => {
    if (key === undefined) return
    const isAnswered = isFirst.current
    isFirst.current = false
    if (isAnswered) return
    const leaving = new AbortController()
    running.current = leaving
    const run = async () => {
      const answer = await outcomeOf(latest.current(leaving.signal))
      if (leaving.signal.aborted) return
      setLoading(false)
      setState((before) => ({ ...(before.key === key && { value: before.value }), key, ...answer }))
    }
    setLoading(true)
    void run()
    return () => leaving.abort()
  }, [key, reloads])
  const reload = useCallback(() => setReloads((before) => before + 1), [])
  const cancel = useCallback(() => {
    running.current?.abort()
    setLoading(false)
    setState((before) => ({ ...before, error: new ApiError(0, cancelledText) }))
  }, [])
  const isCurrent = state.key === key || keepPrevious
  return {
    cancel,
    value: isCurrent ? state.value : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading,
    reload,
  }
}

/** One operation of the API. A call of undefined loads nothing yet. */
export function useApi<Name extends OperationName>(
  name: Name,
  call: CallOf<Name> | undefined,
  options?: QueryOptions,
): Query<AnswerOf<Name>> {
  const load = async (signal: AbortSignal) => await callApi(name, call as CallOf<Name>, { signal })
  return useQuery(call && targetOfCall(name, call).path, load, options)
}

export interface List<Item, First = unknown> extends Query<First> {
  readonly items: readonly Item[]
  readonly hasMore: boolean
  readonly isLoadingMore: boolean
  /** Why the last further page did not load. */
  readonly moreError: ApiError | undefined
  loadMore(): void
  /** Puts an item that the server pushed on top; an item with the same id is replaced. */
  add(item: Item): void
}

export const idOf = (item: unknown) => (item as { readonly id: string }).id

/**
 * A list of the API, with further pages on demand; a new first page starts over. A call of undefined loads nothing yet.
 * `read` loads the first page where more than the list is needed.
 */
export function useList<Name extends ListName, First extends ListAnswer<ItemOf<Name>> = ListAnswer<ItemOf<Name>>>(
  name: Name,
  call: CallOf<Name> | undefined,
  read: (signal: AbortSignal) => Promise<First> = async (signal) =>
    (await callForPage(name, call as CallOf<Name>, undefined, { signal })) as First,
): List<ItemOf<Name>, First> {
  type Items = readonly ItemOf<Name>[]
  const query = useQuery(call && targetOfCall(name, call).path, read, { keepPrevious: true })
  const first = query.value
  const [more, setMore] = useState<{ readonly after?: First; readonly page: ListAnswer<ItemOf<Name>> }>()
  const [added, setAdded] = useState<Items>([])
  const submit = useSubmit()
  useEffect(() => setAdded([]), [first])
  const later = more && more.after === first ? more.page : undefined
  const cursor = (later ?? first)?.next_cursor ?? null
  const fresh = new Set(added.map(idOf))
  const loaded: Items = [...(first?.data ?? []), ...(later?.data ?? [])]
  return {
    ...query,
    items: [...added, ...loaded.filter((item) => fresh.size === 0 || !fresh.has(idOf(item)))],
    hasMore: cursor !== null,
    isLoadingMore: submit.isBusy,
    moreError: submit.error,
    loadMore() {
      if (cursor === null || !first || !call) return
      submit.run(
        () => callForPage(name, call, cursor),
        ({ data, next_cursor }) =>
          setMore({ after: first, page: { data: [...(later?.data ?? []), ...data], next_cursor } }),
      )
    },
    add: (item) => setAdded((before) => [item, ...before.filter((each) => idOf(each) !== idOf(item))]),
  }
}

export interface Submit {
  readonly isBusy: boolean
  readonly error: ApiError | undefined
  run<Value>(call: () => Promise<Value>, onDone: (value: Value) => void): void
}

/** Sends a change once, however often its button is pressed. */
export function useSubmit(): Submit {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | undefined>(undefined)
  // A ref, because a second press can come before the state has rendered.
  const isRunning = useRef(false)
  return {
    isBusy,
    error,
    run(call, onDone) {
      if (isRunning.current) return
      isRunning.current = true
      setBusy(true)
      setError(undefined)
      const finish = async () => {
        const answer = await outcomeOf(call())
        isRunning.current = false
        setBusy(false)
        if ('error' in answer) setError(answer.error)
        else onDone(answer.value)
      }
      void finish()
    },
  }
}

/** Runs something after a while, again whenever `since` changes; undefined = not now. */
export function useTimeout(run: () => void, afterMs: number | undefined, since?: unknown): void {
  useEffect(() => {
    if (afterMs === undefined) return
    const timer = setTimeout(run, afterMs)
    return () => clearTimeout(timer)
  }, [afterMs, since])
}

/**
 * An idempotency key for a form. It stays the same while the form's content does, so that pressing again after a lost
 * response returns the first result; changed content gets a new key.
 */
export function useIdempotencyKey(content: unknown): string {
  const text = JSON.stringify(content) ?? ''
  const kept = useRef({ text, key: '' })
  if (kept.current.key === '' || kept.current.text !== text) kept.current = { text, key: createKey() }
  return kept.current.key
}

/** Not randomUUID, which browsers hide on plain http. */
function createKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

const idPrefix = typeof document === 'undefined' ? 'server' : 'page'
let ids = 0

/**
 * An id for an element. Not Preact's useId, which repeats ids that the server rendered. The prefix differs between server and
 * browser; hydration keeps the server's ids.
 */
export function useUniqueId(): string {
  return useState(() => `${idPrefix}-${++ids}`)[0]
}

export type AddressQuery<Name extends string> = Readonly<Record<Name, string>>

/**
 * Filters kept in the address, so that views can be shared and Back works; empty = not set. `names` must not change. A change
 * while someone types is no step of its own for Back.
 */
export function useAddressQuery<Name extends string>(
  names: readonly Name[],
): readonly [AddressQuery<Name>, (change: Partial<AddressQuery<Name>>, kind?: 'step' | 'typing') => void] {
  const [query, setQuery] = useState<AddressQuery<Name>>(() => readAddress(names, ''))
  useEffect(() => {
    const read = () => setQuery(readAddress(names, location.search))
    read()
    addEventListener('popstate', read)
    return () => removeEventListener('popstate', read)
  }, [])
  const change = (changed: Partial<AddressQuery<Name>>, kind: 'step' | 'typing' = 'step') => {
    const next = { ...readAddress(names, location.search), ...changed }
    const params = new URLSearchParams(location.search)
    for (const name of names) {
      if (next[name] === '') params.delete(name)
      else params.set(name, next[name])
    }
    const text = params.toString()
    const address = text === '' ? location.pathname : `${location.pathname}?${text}`
    if (kind === 'typing') history.replaceState(null, '', address)
    else history.pushState(null, '', address)
    setQuery(next)
  }
  return [query, change]
}

function readAddress<Name extends string>(names: readonly Name[], search: string): AddressQuery<Name> {
  const params = new URLSearchParams(search)
  return Object.fromEntries(names.map((name) => [name, params.get(name) ?? ''])) as Record<Name, string>
}
