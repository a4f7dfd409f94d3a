/** @jsxImportSource preact */
// What all pages of the console share: who looks at them, the chosen workspace and the time zone.

import { type ComponentChildren, createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import type { OperationName } from '../../../api/endpoints.ts'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { spanText, usdText } from '../../catalog/format.ts'
import { allWorkspaces, may, sectionPath, type Viewer, workspaceCookie } from '../../page-data.ts'
import type { AnswerOf, Workspace } from '../api.ts'
import { Amount, Button, Menu, Skeleton } from '../components.tsx'
import { Field } from '../form.tsx'
import { useApi, useTimeout } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { emptyState } from './components.tsx'
import { navigate, usePlace } from './navigation.ts'

interface Children {
  readonly children: ComponentChildren
}

const nobody: Viewer = {
  actor: '',
  isPerson: false,
  isOperator: false,
  isViewingAs: false,
  grants: [],
  hasBatches: false,
}

export const ViewerContext = createContext<Viewer>(nobody)

export function useViewer(): Viewer {
  return useContext(ViewerContext)
}

/** Whether the viewer may call an operation in the workspace, or in any of theirs. The gateway decides in the end. */
export function useMay(): (name: OperationName, workspaceId?: string) => boolean {
  const viewer = useViewer()
  return (name, workspaceId) => may(viewer, name, workspaceId)
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
  /** null = all workspaces; the id of an unknown one. */
  nameOf(id: string | null): string
  choose(id: string): void
  /** Of the current workspace; undefined = not loaded yet, or not for the viewer. */
  readonly wallet: AnswerOf<'getWallet'> | undefined
  reloadWallet(): void
}

const WorkspaceContext = createContext<Workspaces>({
  workspaces: undefined,
  chosen: undefined,
  current: undefined,
  isDecided: false,
  nameOf: String,
  choose() {},
  wallet: undefined,
  reloadWallet() {},
})

const yearSeconds = 31_536_000
const walletPollMs = 60_000

export function WorkspaceProvider({ children }: Children) {
  const { value, error } = useApi('listWorkspaces', { query: { limit: 200 } })
  const { scope, section } = usePlace()
  useEffect(() => {
    // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing on plain http, where gateways often are
    document.cookie = `${workspaceCookie}=${scope}; path=/console; max-age=${yearSeconds}; samesite=lax`
  }, [scope])
  const choose = (next: string) => navigate(sectionPath(section, next === '' ? allWorkspaces : next))
  const workspaces = value?.data
  const chosen = workspaces?.find((workspace) => workspace.id === scope)
  const current = chosen ?? (workspaces?.length === 1 ? workspaces[0] : undefined)
  const may = useMay()
  const payer = current && may('getWallet', current.id) ? current.id : undefined
  const {
    value: wallet,
    reload: reloadWallet,
    isLoading,
  } = useApi('getWallet', payer === undefined ? undefined : { id: payer })
  // Requests are charged all the time.
  useTimeout(reloadWallet, payer === undefined || isLoading ? undefined : walletPollMs)
  // After an error the page's own calls most likely fail too, and say why.
  const isDecided = value !== undefined || error !== undefined
  const nameOf = (id: string | null) =>
    id === null ? 'all workspaces' : (workspaces?.find((workspace) => workspace.id === id)?.name ?? id)
  return (
    <WorkspaceContext.Provider value={{ workspaces, chosen, current, isDecided, nameOf, choose, wallet, reloadWallet }}>
      {children}
    </WorkspaceContext.Provider>
  )
}

export function useWorkspaces(): Workspaces {
  return useContext(WorkspaceContext)
}

/** The workspace and what it can spend, and a menu of the others. */
export function WorkspaceMenu() {
  const { workspaces = [], chosen, choose, wallet } = useWorkspaces()
  const { isOperator } = useViewer()
  const items = workspaces.map(({ id, name }) => ({
    label: name,
    isChosen: id === chosen?.id,
    run: () => choose(id),
  }))
  const all = { label: 'All workspaces', isChosen: !chosen, run: () => choose('') }
  return (
    <Menu
      name="Workspaces"
      look="workspace-button"
      isStart
      items={isOperator ? [all, ...items] : items}
      search={workspaces.length > 8 ? { label: 'Find a workspace', placeholder: 'Find a workspace' } : undefined}
    >
      <span class="visually-hidden">Workspace:</span>
      <span class="workspace-monogram" aria-hidden="true">
        {(chosen?.name ?? 'All').slice(0, 1).toUpperCase()}
      </span>
      <span class="workspace-name">{chosen?.name ?? 'All workspaces'}</span>
      {wallet && (
        <Amount usd={wallet.available} look="workspace-balance" title={`Available: ${usdText(wallet.available)}`} />
      )}
      <Icon name="switch" size={14} />
    </Menu>
  )
}

/** What is about one workspace; a choice where all are selected. */
export function WorkspaceContent({ children }: { children(workspaceId: string): ComponentChildren }) {
  const { workspaces, current, choose } = useWorkspaces()
  if (workspaces === undefined) return <Skeleton what="workspaces" />
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

export type Zone = 'local' | 'utc'

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

export function useZone() {
  return useContext(ZoneContext)
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

interface TimeFieldProps {
  readonly label: string
  /** undefined = none is given. */
  readonly at: number | undefined
  onChange(iso: string): void
  /** Absent = it cannot be emptied. */
  onClear?(): void
}

/** A time in the viewer's zone, without seconds. */
export function TimeField({ label, at, onChange, onClear }: TimeFieldProps) {
  const isUtc = useContext(ZoneContext).zone === 'utc'
  const offsetMs = isUtc || at === undefined ? 0 : new Date(at).getTimezoneOffset() * 60_000
  const change = ({ currentTarget: { value } }: { readonly currentTarget: HTMLInputElement }) => {
    if (value !== '') onChange(new Date(isUtc ? `${value}Z` : value).toISOString())
    else onClear?.()
  }
  return (
    <Field
      label={label}
      isWide
      value={at === undefined ? '' : isoTime(at - offsetMs).slice(0, 16)}
      attributes={{ type: 'datetime-local', onChange: change }}
      onChange={() => {}}
    />
  )
}

/** `2 min ago`, `in 30 days`, `in 7 months`, or `just now` below a minute. */
export function Ago({ at }: { readonly at: string }) {
  const { moment, zoneName } = useTimeFormats()
  const distance = Date.parse(at) - systemClock.now()
  const span = spanText(Math.abs(distance))
  return (
    <time dateTime={at} title={`${moment(at)} ${zoneName}`}>
      {Math.abs(distance) < 60_000 ? 'just now' : distance < 0 ? `${span} ago` : `in ${span}`}
    </time>
  )
}
