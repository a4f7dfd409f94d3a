/** @jsxImportSource preact */
// What all pages of the console share: the chosen workspace and the time zone.

import { type ComponentChildren, createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import { systemClock } from '../../../kernel/clock.ts'
import type { Workspace } from '../api.ts'
import { Button } from '../components.tsx'
import { Checkbox, Field } from '../form.tsx'
import { useApi } from '../hooks.ts'
import { emptyState, Loading } from './components.tsx'

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
  const options = workspaces.map(({ id, name }) => ({ value: id, label: name }))
  return (
    <Field
      label="Workspace"
      value={chosen?.id ?? ''}
      options={[{ value: '', label: 'All workspaces' }, ...options]}
      onChange={choose}
    />
  )
}

/** What is about one workspace; a choice where all are selected. */
export function WorkspaceContent({ children }: { children(workspaceId: string): ComponentChildren }) {
  const { workspaces, current, choose } = useWorkspaces()
  if (workspaces === undefined) return <Loading what="workspaces" />
  if (current) {
    return (
      <div class="stack" key={current.id}>
        {children(current.id)}
      </div>
    )
  }
  return emptyState(
    'Choose a workspace',
    <ul class="plain row">
      {workspaces.map(({ id, name }) => (
        <li key={id}>
          <Button look="quiet" onClick={() => choose(id)}>
            {name}
          </Button>
        </li>
      ))}
    </ul>,
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
  const change = (isUtc: boolean) => setZone(isUtc ? 'utc' : 'local')
  return <Checkbox label="Times in UTC" isChecked={zone === 'utc'} onChange={change} />
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

/** A time in the viewer's zone, or only its day with the year. The exact time is its title. */
export function Moment({ at, isDay = false }: { readonly at: string; readonly isDay?: boolean }) {
  const { moment, day } = useTimeFormats()
  return (
    <time dateTime={at} title={at}>
      {isDay ? day(at) : moment(at)}
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
