/** @jsxImportSource preact */
// What all pages of the console share: the chosen workspace, the time zone, and the toast that offers to undo a change.

import { type ComponentChildren, createContext } from 'preact'
import { useCallback, useContext, useEffect, useState } from 'preact/hooks'
import { systemClock } from '../../../kernel/clock.ts'
import { ApiError, type Workspace } from '../api.ts'
import { Button } from '../components.tsx'
import { useApi } from '../hooks.ts'

interface Children {
  readonly children: ComponentChildren
}

export interface Workspaces {
  /** undefined = not loaded yet. */
  readonly workspaces: readonly Workspace[] | undefined
  /** undefined = all workspaces, once `isDecided`. */
  readonly chosen: Workspace | undefined
  /** The chosen workspace, or the only one. */
  readonly current: Workspace | undefined
  /** Whether the choice is known: pages must not show all workspaces for a moment first. */
  readonly isDecided: boolean
  choose(id: string): void
}

const WorkspaceContext = createContext<Workspaces>({
  workspaces: undefined,
  chosen: undefined,
  current: undefined,
  isDecided: false,
  choose() {},
})
const workspaceStorage = 'tollgate-workspace'

export function WorkspaceProvider({ children }: Children) {
  const { value, error } = useApi('listWorkspaces', { query: { limit: 200 } })
  const [id, setId] = useState('')
  useEffect(() => setId(localStorage.getItem(workspaceStorage) ?? ''), [])
  const choose = (next: string) => {
    localStorage.setItem(workspaceStorage, next)
    setId(next)
  }
  const workspaces = value?.data
  const chosen = workspaces?.find((workspace) => workspace.id === id)
  const current = chosen ?? (workspaces?.length === 1 ? workspaces[0] : undefined)
  // After an error the page's own calls most likely fail too, and say why.
  const isDecided = value !== undefined || error !== undefined
  return (
    <WorkspaceContext.Provider value={{ workspaces, chosen, current, isDecided, choose }}>
      {children}
    </WorkspaceContext.Provider>
  )
}

export function useWorkspaces(): Workspaces {
  return useContext(WorkspaceContext)
}

export function WorkspaceSwitch() {
  const { workspaces = [], chosen, choose } = useWorkspaces()
  return (
    <label class="field">
      <span>Workspace</span>
      <select value={chosen?.id ?? ''} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        <option value="">All workspaces</option>
        {workspaces.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

type Zone = 'local' | 'utc'

const ZoneContext = createContext<{ readonly zone: Zone; setZone(zone: Zone): void }>({ zone: 'local', setZone() {} })
const zoneStorage = 'tollgate-zone'

export function ZoneProvider({ children }: Children) {
  const [zone, setZone] = useState<Zone>('local')
  useEffect(() => {
    if (localStorage.getItem(zoneStorage) === 'utc') setZone('utc')
  }, [])
  const keep = (next: Zone) => {
    localStorage.setItem(zoneStorage, next)
    setZone(next)
  }
  return <ZoneContext.Provider value={{ zone, setZone: keep }}>{children}</ZoneContext.Provider>
}

export function ZoneSwitch() {
  const { zone, setZone } = useContext(ZoneContext)
  return (
    <label class="tick">
      <input
        type="checkbox"
        checked={zone === 'utc'}
        onChange={({ currentTarget }) => setZone(currentTarget.checked ? 'utc' : 'local')}
      />
      <span>Times in UTC</span>
    </label>
  )
}

export interface TimeFormats {
  /** `15 Nov, 14:02:11` */
  moment(at: string | number): string
  /** `15 Nov, 14:00` */
  hour(at: string | number): string
  /** `15 Nov 2026` */
  day(at: string | number): string
  /** `UTC`, or the name of the browser's zone. */
  readonly zoneName: string
}

export function useTimeFormats(): TimeFormats {
  const { zone } = useContext(ZoneContext)
  const timeZone = zone === 'utc' ? { timeZone: 'UTC' } : {}
  const format = (options: Intl.DateTimeFormatOptions) => {
    const formatter = new Intl.DateTimeFormat('en-GB', { ...options, ...timeZone })
    return (at: string | number) => {
      const date = new Date(at)
      // Formatting an invalid date would throw.
      return Number.isNaN(date.getTime()) ? String(at) : formatter.format(date)
    }
  }
  const day = { day: 'numeric', month: 'short' } as const
  const time = { hour: '2-digit', minute: '2-digit' } as const
  return {
    moment: format({ ...day, ...time, second: '2-digit' }),
    hour: format({ ...day, ...time }),
    day: format({ ...day, year: 'numeric' }),
    zoneName: zone === 'utc' ? 'UTC' : new Intl.DateTimeFormat().resolvedOptions().timeZone,
  }
}

/** A time in the viewer's zone, with the exact one as its title. null = a dash. */
export function Moment({ at }: { readonly at: string | null }) {
  const { moment } = useTimeFormats()
  if (at === null) return <span class="muted">–</span>
  return (
    <time dateTime={at} title={at}>
      {moment(at)}
    </time>
  )
}

const spans = [
  { unit: 'day', ms: 86_400_000 },
  { unit: 'hour', ms: 3_600_000 },
  { unit: 'minute', ms: 60_000 },
] as const

/** `2 minutes ago`, `in 30 days`, or `just now` below a minute. */
export function Ago({ at }: { readonly at: string }) {
  const { moment, zoneName } = useTimeFormats()
  const distance = Date.parse(at) - systemClock.now()
  const span = spans.find(({ ms }) => Math.abs(distance) >= ms)
  const formatter = new Intl.RelativeTimeFormat('en', { numeric: 'always' })
  return (
    <time dateTime={at} title={`${moment(at)} ${zoneName}`}>
      {span ? formatter.format(Math.trunc(distance / span.ms), span.unit) : 'just now'}
    </time>
  )
}

export interface Undoable {
  /** `Project web changed.` */
  readonly text: string
  /** The call that reverts the change. */
  undo(): Promise<unknown>
  /** Reloads what the page shows. */
  onUndone(): void
}

const ToastContext = createContext<(change: Undoable) => void>(() => {})

/** Reports a change and offers to undo it. */
export function useToast(): (change: Undoable) => void {
  return useContext(ToastContext)
}

const toastMs = 10_000

/** Shows the toast for ten seconds, or as long as it has the pointer or the focus. */
export function ToastProvider({ children }: Children) {
  const [shown, setShown] = useState<{ readonly text: string; readonly change?: Undoable } | undefined>(undefined)
  const [isHeld, setHeld] = useState(false)
  const offer = useCallback((change: Undoable) => setShown({ text: change.text, change }), [])
  useEffect(() => {
    if (!shown || isHeld) return
    const timer = setTimeout(() => setShown(undefined), toastMs)
    return () => clearTimeout(timer)
  }, [shown, isHeld])
  const undo = async ({ undo: call, onUndone }: Undoable) => {
    setShown({ text: 'Undoing …' })
    setHeld(false)
    const answer = await call()
    if (answer instanceof ApiError) return setShown({ text: `The change could not be undone: ${answer.message}` })
    setShown({ text: 'Undone.' })
    onUndone()
  }
  const change = shown?.change
  return (
    <ToastContext.Provider value={offer}>
      {children}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: pointer and focus only keep it open */}
      <div
        class="toast"
        onMouseEnter={() => setHeld(true)}
        onMouseLeave={() => setHeld(false)}
        onFocusIn={() => setHeld(true)}
        onFocusOut={() => setHeld(false)}
      >
        {/* Always in the document, so that screen readers announce what appears in it. */}
        <p role="status">{shown?.text}</p>
        {change && (
          <Button look="small" data-undo onClick={() => void undo(change)}>
            Undo
          </Button>
        )}
        {shown && (
          <Button look="quiet small" onClick={() => setShown(undefined)}>
            Close
          </Button>
        )}
      </div>
    </ToastContext.Provider>
  )
}
