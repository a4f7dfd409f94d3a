/** @jsxImportSource preact */
// The console: the workspace switcher, the menu, the command palette, the user menu, and a page in its frame.
//
// To add a page: a line in `consoleSections` (page-data.ts), a component, a line in `sections`, and what it reads first in
// first-calls.ts. The page loads its data with hooks.ts and shows it with components.tsx. Links come from `useConsolePath`,
// so that they keep the workspace. Rules: no inline style or script (the
// policy forbids both), every field has a label, status is text as well as color, amounts and times only through
// components.tsx and context.tsx, nothing wider than 360 pixels.

import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { parseUsd } from '../../../kernel/money.ts'
import { amountText } from '../../catalog/format.ts'
import {
  type ConsoleData,
  consoleSections,
  type Frame,
  isListed,
  isVisible,
  type SectionName,
  sectionPath,
  type Theme,
  themes,
  titleOf,
  type WorkspaceData,
  type WorkspacesData,
} from '../../page-data.ts'
import { signOut } from '../api.ts'
import { Banner, Menu, ShortcutsDialog, Skeleton } from '../components.tsx'
import { useSubmit } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { Logo, setTheme } from '../shell.tsx'
import { AccountView } from './account-page.tsx'
import { AlertBell, AlertsView } from './alerts-page.tsx'
import { AuditView } from './audit-page.tsx'
import { BatchesView, BatchView } from './batches-page.tsx'
import { BillingView } from './billing-page.tsx'
import { BillsView } from './bills-page.tsx'
import {
  useViewer,
  useWorkspaces,
  useZone,
  ViewerContext,
  WorkspaceContent,
  WorkspaceMenu,
  WorkspaceProvider,
  ZoneProvider,
} from './context.tsx'
import { KeysView, KeyView } from './keys-page.tsx'
import { ManagedSettingsView } from './managed-settings-page.tsx'
import { MarginView } from './margin-page.tsx'
import { PlaceContext, useConsolePath, useNavigation } from './navigation.ts'
import { Dialog, OverlayProvider, useOverlay } from './overlay.tsx'
import { consoleShortcuts, Palette, useConsoleShortcuts } from './palette.tsx'
import { PeopleView, ViewingAs } from './people-page.tsx'
import { PlaygroundView } from './playground-page.tsx'
import { PriceListView } from './price-list-page.tsx'
import { ProjectsView, ProjectView } from './projects-page.tsx'
import { ProviderView } from './provider-page.tsx'
import { ProvidersView } from './providers-page.tsx'
import { RequestPage } from './request-page.tsx'
import { RequestsView } from './requests-page.tsx'
import { SettingsView } from './settings-page.tsx'
import { PaperView } from './statement-page.tsx'
import { SubjectView } from './subject-limits.tsx'
import { UsageView } from './usage-page.tsx'

interface Section {
  readonly intro?: string
  readonly View: ComponentType<ConsoleData>
}

/** A page about one workspace. */
const ofWorkspace = (View: ComponentType<WorkspaceData>) => (data: ConsoleData) => (
  <WorkspaceContent>{(workspaceId) => <View {...data} workspaceId={workspaceId} />}</WorkspaceContent>
)

/** A page about the chosen workspace, or for operators about all. */
const ofWorkspaces = (View: ComponentType<WorkspacesData>) => (data: ConsoleData) => {
  const { workspaces, current } = useWorkspaces()
  if (workspaces === undefined) return <Skeleton what="workspaces" />
  return (
    <div class="stack" key={current?.id ?? 'all'}>
      <View {...data} workspaceId={current?.id} />
    </div>
  )
}

const sections: Readonly<Record<SectionName, Section>> = {
  usage: { View: UsageView },
  requests: { View: RequestsView },
  batches: {
    intro: 'Files of requests that are answered in the background. Each line is charged when it has its answer.',
    View: ofWorkspaces(BatchesView),
  },
  playground: { View: PlaygroundView },
  keys: {
    intro: 'Programs authenticate with an API key. Each key belongs to a project; the workspace pays.',
    View: ofWorkspaces(KeysView),
  },
  projects: {
    intro: 'A project defines which models its keys may call. Changes apply from the next request.',
    View: ofWorkspaces(ProjectsView),
  },
  wallet: {
    intro: 'Prepaid balance, exact to a billionth of a dollar. Requests are charged as they finish.',
    View: ofWorkspaces(BillingView),
  },
  providers: {
    intro: 'Where models are served. A failed attempt automatically moves on to the next route.',
    View: ProvidersView,
  },
  alerts: { intro: 'Warnings about balances, limits, providers and prices, and what was sent.', View: AlertsView },
  people: { intro: 'Who may use this gateway, and what each person may see and change.', View: PeopleView },
  account: { intro: 'Your roles, password, sessions, devices and personal tokens.', View: AccountView },
  margin: {
    intro: 'What workspaces pay, and what is left of it after the providers’ costs. Only operators see this page.',
    View: ofWorkspaces(MarginView),
  },
  bills: {
    intro: 'What providers billed, what was recorded, and why they differ. Only operators see this page.',
    View: ofWorkspaces(BillsView),
  },
  audit: { intro: 'Who changed what on this gateway. Entries are never changed or removed.', View: AuditView },
  settings: { intro: 'Settings of the whole gateway.', View: SettingsView },
}

export function ConsolePage({ frame, ...data }: ConsoleData & { readonly frame: Frame }) {
  const place = useNavigation(data)
  return (
    <ViewerContext.Provider value={data}>
      <PlaceContext.Provider value={place}>
        <ZoneProvider>
          <WorkspaceProvider>
            <OverlayProvider>
              <Shell data={{ ...data, ...place }} frame={frame} />
            </OverlayProvider>
          </WorkspaceProvider>
        </ZoneProvider>
      </PlaceContext.Provider>
    </ViewerContext.Provider>
  )
}

function Shell({ data, frame }: { readonly data: ConsoleData; readonly frame: Frame }) {
  const signOutNow = useSignOut()
  useConsoleShortcuts()
  const { scope, section, subject } = data
  return (
    <div class="console">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="topbar">
        <a class="brand" href={sectionPath('usage', scope)} aria-label="Tollgate: usage">
          <Logo />
        </a>
        <WorkspaceMenu />
        <Palette onSignOut={signOutNow} />
        <nav aria-label="Pages" class="topbar-links">
          <a href="/">Models</a>
          <a href="/docs">Docs</a>
        </nav>
        {isVisible('alerts', data) && <AlertBell />}
        <UserMenu theme={frame.theme} onSignOut={signOutNow} />
      </header>
      <ConsoleMenu section={section} />
      <main id="main" class="console-page stack" tabIndex={-1} key={`${scope} ${section} ${subject}`}>
        {data.isViewingAs && <ViewingAs />}
        <PayBanner />
        <ConsoleContent {...data} />
      </main>
      <ShortcutsDialog shortcuts={consoleShortcuts} />
    </div>
  )
}

/** Pages about one thing, which have their own heading. */
const subjects: { readonly [Name in SectionName]?: ComponentType<ConsoleData> } = {
  requests: ({ subject, address }) => <RequestPage id={subject} address={address} />,
  batches: BatchView,
  keys: KeyView,
  projects: ProjectView,
  providers: ProviderView,
  people: SubjectView,
  wallet: ofWorkspace(PaperView),
  margin: PriceListView,
  settings: ManagedSettingsView,
}

/** The page in its frame. */
function ConsoleContent(data: ConsoleData) {
  const { intro, View } = sections[data.section]
  const Subject = data.subject === '' ? undefined : subjects[data.section]
  if (Subject) return <Subject {...data} />
  return (
    <>
      <header>
        <h1>{titleOf({ ...data, subject: '' })}</h1>
        <p class="lede">{intro}</p>
      </header>
      <View {...data} />
    </>
  )
}

/** Says that the balance of the chosen workspace is below its alert threshold, or that it can no longer pay. */
function PayBanner() {
  const { current, wallet: value } = useWorkspaces()
  const to = useConsolePath()
  if (current === undefined || value === undefined) return null
  const isEmpty = (parseUsd(value.available) ?? 0n) <= 0n
  if (!isEmpty && (parseUsd(value.balance) ?? 0n) >= (parseUsd(current.low_balance ?? '0') ?? 0n)) return null
  const [state, effect] = isEmpty
    ? ['has no funds available.', 'Requests that cost money are refused with status 402.']
    : [
        `has ${amountText(value.available)} left,`,
        `which is less than ${amountText(current.low_balance ?? '0')}. Requests are refused once it is used up.`,
      ]
  return (
    <Banner action={<a href={to('wallet')}>Billing</a>}>
      <strong>
        {current.name} {state}
      </strong>{' '}
      {effect}
    </Banner>
  )
}

function ConsoleMenu({ section }: Pick<ConsoleData, 'section'>) {
  const menu = useRef<HTMLElement>(null)
  const viewer = useViewer()
  const to = useConsolePath()
  useEffect(() => {
    // On a phone the menu is one row that scrolls; scrollIntoView would scroll the page as well.
    const current = menu.current?.querySelector<HTMLElement>('[aria-current]')
    if (menu.current && current) {
      menu.current.scrollLeft = current.offsetLeft - (menu.current.clientWidth - current.offsetWidth) / 2
    }
  }, [section])
  return (
    <nav aria-label="Console" class="console-menu" ref={menu}>
      {consoleSections
        .filter(({ name }) => isListed(name, viewer))
        .map(({ name, label, icon }) => (
          <a key={name} href={to(name)} title={label} aria-current={name === section ? 'page' : undefined}>
            <Icon name={icon} />
            <span>{label}</span>
          </a>
        ))}
    </nav>
  )
}

function useSignOut(): () => void {
  const { open } = useOverlay()
  const submit = useSubmit()
  useEffect(() => {
    if (submit.error)
      open(<Dialog title="You are still signed in">{<p class="form">{submit.error.message}</p>}</Dialog>)
  }, [submit.error])
  return () => submit.run(signOut, () => location.assign('/console'))
}

/** Who is signed in, the theme, the time zone, and signing out. */
function UserMenu({ theme, onSignOut }: { readonly theme: Theme; onSignOut(): void }) {
  const viewer = useViewer()
  const { zone, setZone } = useZone()
  const [chosen, setChosen] = useState(theme)
  const to = useConsolePath()
  const themeItems = themes.map((name, at) => ({
    label: themeLabels[name],
    icon: name,
    isChosen: name === chosen,
    isFirst: at === 0,
    run: () => {
      setTheme(name)
      setChosen(name)
    },
  }))
  const zoneItems = (['local', 'utc'] as const).map((name, at) => ({
    label: name === 'utc' ? 'Times in UTC' : 'Local times',
    icon: 'clock' as const,
    isChosen: name === zone,
    isFirst: at === 0,
    run: () => setZone(name),
  }))
  const account = isVisible('account', viewer)
    ? [{ label: 'Account', icon: 'account' as const, href: to('account') }]
    : []
  const signOutItem = { label: 'Sign out', icon: 'sign-out' as const, isFirst: true, run: onSignOut }
  return (
    <Menu
      name="Your session"
      look="user-button"
      items={[...account, ...themeItems, ...zoneItems, signOutItem]}
      head={<p class="menu-head">{viewer.actor}</p>}
    >
      <span aria-hidden="true">{viewer.actor.slice(0, 1).toUpperCase()}</span>
      <span class="visually-hidden">Signed in as {viewer.actor}</span>
    </Menu>
  )
}

const themeLabels: Readonly<Record<Theme, string>> = { system: 'System theme', light: 'Light', dark: 'Dark' }
