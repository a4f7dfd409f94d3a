/** @jsxImportSource preact */
// The console: the menu, the choice of workspace and time zone, the command palette, the sign-out button, and a page in its
// frame.
//
// To add a page: a line in `consoleSections` (page-data.ts), a component, and a line in `sections`. The server only sends
// the frame; the page loads its data with hooks.ts and shows it with components.tsx. Rules: no inline style or script (the
// policy forbids both), every field has a label, status is text as well as color, amounts and times only through
// components.tsx and context.tsx, nothing wider than 360 pixels.

import type { ComponentType } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import {
  type ConsoleData,
  consoleSections,
  type SectionName,
  sectionPath,
  type WorkspaceData,
} from '../../page-data.ts'
import { signOut } from '../api.ts'
import { Button, ShortcutsDialog } from '../components.tsx'
import { useSubmit } from '../hooks.ts'
import { BillingView } from './billing-page.tsx'
import { WorkspaceContent, WorkspaceProvider, WorkspaceSwitch, ZoneProvider, ZoneSwitch } from './context.tsx'
import { KeysView } from './keys-page.tsx'
import { OverlayProvider } from './overlay.tsx'
import { consoleShortcuts, Palette, useConsoleShortcuts } from './palette.tsx'
import { PlaygroundView } from './playground-page.tsx'
import { ProjectsView } from './projects-page.tsx'
import { ProvidersView } from './providers-page.tsx'
import { RequestView } from './request-page.tsx'
import { RequestsView } from './requests-page.tsx'
import { SettingsView } from './settings-page.tsx'
import { UsageView } from './usage-page.tsx'

interface Section {
  readonly intro?: string
  readonly View: ComponentType<ConsoleData>
}

/** A page about one workspace. */
const ofWorkspace = (View: ComponentType<WorkspaceData>) => (data: ConsoleData) => (
  <WorkspaceContent>{(workspaceId) => <View {...data} workspaceId={workspaceId} />}</WorkspaceContent>
)

const sections: Readonly<Record<SectionName, Section>> = {
  overview: { View: UsageView },
  requests: { View: RequestsView },
  playground: { View: PlaygroundView },
  keys: {
    intro: 'Programs authenticate with an API key. Each key belongs to a project; the workspace pays.',
    View: ofWorkspace(KeysView),
  },
  projects: {
    intro: 'A project defines which models its keys may call. Changes apply from the next request.',
    View: ofWorkspace(ProjectsView),
  },
  wallet: {
    intro: 'The workspace’s prepaid balance, exact to a billionth of a dollar. Requests are charged as they finish.',
    View: ofWorkspace(BillingView),
  },
  providers: {
    intro: 'Where models are served. A failed attempt automatically moves on to the next route.',
    View: ProvidersView,
  },
  settings: { intro: 'Settings of the whole gateway, and a record of all changes.', View: SettingsView },
}

export function ConsolePage(data: ConsoleData) {
  useConsoleShortcuts()
  return (
    <ZoneProvider>
      <WorkspaceProvider>
        <div class="console">
          <aside class="console-side stack">
            <ConsoleMenu section={data.section} />
            <div class="console-choices stack">
              <WorkspaceSwitch />
              <ZoneSwitch />
            </div>
            <Palette />
            <SignOut actor={data.actor} />
          </aside>
          <OverlayProvider>
            <div class="console-page stack">
              <ConsoleContent {...data} />
            </div>
          </OverlayProvider>
        </div>
        <ShortcutsDialog shortcuts={consoleShortcuts} />
      </WorkspaceProvider>
    </ZoneProvider>
  )
}

/** The page in its frame. Only requests have pages of their own. */
function ConsoleContent(data: ConsoleData) {
  const { intro, View } = sections[data.section]
  const title = consoleSections.find(({ name }) => name === data.section)?.label
  if (data.section === 'requests' && data.subject !== '') {
    return (
      <>
        <p class="breadcrumbs">
          <a href="/console/requests">Requests</a>
        </p>
        <h1>Request</h1>
        <RequestView {...data} />
      </>
    )
  }
  return (
    <>
      <header>
        <h1>{title}</h1>
        <p class="lede">{intro}</p>
      </header>
      <View {...data} />
    </>
  )
}

function ConsoleMenu({ section }: Pick<ConsoleData, 'section'>) {
  const menu = useRef<HTMLElement>(null)
  useEffect(() => {
    // On a phone the menu is one row that scrolls; scrollIntoView would scroll the page as well.
    const current = menu.current?.querySelector<HTMLElement>('[aria-current]')
    if (menu.current && current) {
      menu.current.scrollLeft = current.offsetLeft - (menu.current.clientWidth - current.offsetWidth) / 2
    }
  }, [])
  return (
    <nav aria-label="Console" class="console-menu" ref={menu}>
      {consoleSections.map(({ name, label }) => (
        <a key={name} href={sectionPath(name)} aria-current={name === section ? 'page' : undefined}>
          {label}
        </a>
      ))}
    </nav>
  )
}

function SignOut({ actor }: { readonly actor: string }) {
  const submit = useSubmit()
  return (
    <div class="console-account stack tight">
      <p class="hint">You are signed in ({actor}).</p>
      <Button look="quiet small" onClick={() => submit.run(signOut, () => location.assign('/console'))}>
        Sign out
      </Button>
      <p role="alert" class="problem">
        {submit.error?.message}
      </p>
    </div>
  )
}
