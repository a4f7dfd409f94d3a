// Keeps the models on an open page up to date: the server announces changes and the page loads the catalog again, as the
// viewer sees it: the public one, that of a project, or that of a key.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { CatalogEntry, DatedPrice } from '../catalog/entry.ts'
import { type CatalogViewer, type ViewedProject, viewedProjectCookie } from '../page-data.ts'
import { ApiError, readJson } from './api.ts'
import { useQuery } from './hooks.ts'

export type LiveState = 'waiting' | 'live' | 'lost'

/** Whose models and prices are shown. */
export type Subject =
  | { readonly kind: 'public' }
  | { readonly kind: 'project'; readonly project: ViewedProject }
  | { readonly kind: 'key'; readonly secret: string }

export interface LiveCatalog<Initial> {
  readonly entries: readonly CatalogEntry[] | Initial
  readonly live: LiveState
  readonly subject: Subject
  readonly isLoading: boolean
  /** Why another subject could not be shown, or the catalog of this one not be loaded again. */
  readonly error: ApiError | undefined
  /** Keeps the old one if it fails. The choice is kept for the tab. */
  choose(subject: Subject): void
}

interface EntriesAnswer {
  readonly state: string
  readonly entries: readonly CatalogEntry[]
}

const publicSubject: Subject = { kind: 'public' }

export function subjectOf({ project }: CatalogViewer): Subject {
  return project ? { kind: 'project', project } : publicSubject
}

/** Of the catalog's JSON: a key is only sent as a header. */
function readOf<Answer>(path: string, subject: Subject, query: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const params = new URLSearchParams({ ...query, ...(subject.kind === 'project' && { project: subject.project.id }) })
  if (subject.kind !== 'key') return readJson(params.size > 0 ? `${path}?${params}` : path)
  // Other characters cannot be sent in a header.
  if (!/^[!-~]+$/.test(subject.secret)) return Promise.reject(new ApiError(0, 'This is not a key.'))
  return readJson(params.size > 0 ? `${path}?${params}` : path, { authorization: `Bearer ${subject.secret}` })
}

/** All models as the subject sees them. */
export async function readEntries(subject: Subject): Promise<EntriesAnswer> {
  return await readOf('/catalog/entries', subject)
}

const keyStorage = 'tollgate-viewer'

function keptKey(): Subject | undefined {
  const secret = sessionStorage.getItem(keyStorage)
  return secret === null ? undefined : { kind: 'key', secret }
}

const yearSeconds = 31_536_000

/** A key stays in the tab, a project is the person's choice. */
function keepSubject(subject: Subject): void {
  if (subject.kind === 'key') sessionStorage.setItem(keyStorage, subject.secret)
  else {
    sessionStorage.removeItem(keyStorage)
    const id = subject.kind === 'project' ? subject.project.id : ''
    const age = id === '' ? 0 : yearSeconds
    // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing on plain http, where gateways often are
    document.cookie = `${viewedProjectCookie}=${id}; path=/; max-age=${age}; samesite=lax`
  }
}

export interface LiveCatalogOptions<Initial> {
  /** undefined = loaded at once. */
  readonly initial: Initial
  /** The state that the page was rendered from. */
  readonly state: string
  /** Whose catalog the page was rendered with. Its choices are kept. */
  readonly viewer?: CatalogViewer
  /** Without a viewer: whose catalog is shown first; absent = the public one. */
  readonly subject?: Subject
  /** What the page shows of the whole catalog. */
  select(all: readonly CatalogEntry[]): readonly CatalogEntry[]
}

export function useLiveCatalog<Initial extends readonly CatalogEntry[] | undefined>({
  initial,
  state,
  viewer,
  subject: first = publicSubject,
  select,
}: LiveCatalogOptions<Initial>): LiveCatalog<Initial> {
  const [entries, setEntries] = useState<readonly CatalogEntry[] | Initial>(initial)
  const [live, setLive] = useState<LiveState>('waiting')
  const [subject, setSubject] = useState<Subject>(() => (viewer ? subjectOf(viewer) : first))
  const [isLoading, setLoading] = useState(false)
  const [error, setError] = useState<ApiError | undefined>(undefined)
  const known = useRef(state)
  /** Of the entries that are shown, and the one chosen last. */
  const shown = useRef(subject)
  const wanted = useRef(subject)
  const hasEntries = useRef(initial !== undefined)
  /** The number of the last call: answers to earlier ones are dropped. */
  const calls = useRef(0)
  const pick = useRef(select)
  pick.current = select
  const load = async (): Promise<void> => {
    const call = ++calls.current
    const next = wanted.current
    const isChoice = next !== shown.current
    setLoading(true)
    const answer = await readEntries(next).catch((thrown: unknown) => {
      if (thrown instanceof ApiError) return thrown
      throw thrown
    })
    if (call !== calls.current) return
    setLoading(false)
    if (answer instanceof ApiError) {
      setError(answer)
      if (!isChoice) return answer.status === 0 ? setLive('lost') : undefined
      if (viewer && next.kind === 'key') sessionStorage.removeItem(keyStorage)
      wanted.current = shown.current
      return hasEntries.current ? undefined : await load()
    }
    // A refused choice is still explained when the catalog that was shown before is loaded again.
    setError((before) => (isChoice || before?.status === 0 ? undefined : before))
    setLive('live')
    known.current = answer.state
    hasEntries.current = true
    shown.current = next
    setSubject(next)
    setEntries(pick.current(answer.entries))
    if (isChoice && viewer) keepSubject(next)
  }
  useEffect(() => {
    const kept = viewer && keptKey()
    if (kept) wanted.current = kept
    if (kept || initial === undefined) void load()
    let knownAccess = ''
    return followEvents('/catalog/events', {
      open: () => setLive('live'),
      error: () => setLive('lost'),
      changed(version) {
        const [next = '', access = ''] = version.split(' ')
        // The first message only sets the starting point of the access, which concerns keys and projects.
        const isOther = shown.current.kind !== 'public' && knownAccess !== '' && access !== knownAccess
        knownAccess = access
        if (next !== known.current || isOther) void load()
      },
      measured: () => void load(),
    })
  }, [])
  const choose = (next: Subject) => {
    wanted.current = next
    void load()
  }
  return { entries, live, subject, isLoading, error, choose }
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
export function usePriceHistory(
  { id, price_version: version }: CatalogEntry,
  initial: readonly DatedPrice[],
  subject: Subject,
) {
  const [first] = useState(version)
  const isNew = version !== first
  const { value } = useQuery(
    isNew ? `${id} ${version}` : undefined,
    () => readOf<{ readonly history: readonly DatedPrice[] }>('/catalog/history', subject, { model: id }),
    { keepPrevious: true },
  )
  return (isNew ? value?.history : undefined) ?? initial
}
