/** @jsxImportSource preact */
// A page of the console in its frame: the menu, the choice of workspace and time zone, the command palette and the sign-out
// button.
//
// To add a page: a line in `consoleSections` (page-data.ts), a component here, and a line in `sectionPages`. The
// server only sends the frame; the page loads its data with hooks.ts and shows it with components.tsx. Rules: no inline style
// or script (the policy forbids both), every field has a label, status is text as well as color, amounts and times only
// through components.tsx and context.tsx, nothing wider than 360 pixels.

import type { ComponentType } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { type ConsoleData, consoleSections, type SectionName, sectionPath } from '../../page-data.ts'
import { signOut } from '../api.ts'
import { Button, ShortcutsDialog } from '../components.tsx'
import { useSubmit } from '../hooks.ts'
import { BillingPage } from './billing-page.tsx'
import { ToastProvider, WorkspaceProvider, WorkspaceSwitch, ZoneProvider, ZoneSwitch } from './context.tsx'
import { KeysPage } from './keys-page.tsx'
import { consoleShortcuts, Palette, useConsoleShortcuts } from './palette.tsx'
import { PlaygroundPage } from './playground-page.tsx'
import { ProjectsPage } from './projects-page.tsx'
import { ProvidersPage } from './providers-page.tsx'
import { RequestPage } from './request-page.tsx'
import { RequestsPage } from './requests-page.tsx'
import { SettingsPage } from './settings-page.tsx'
import { UsagePage } from './usage-page.tsx'

const sectionPages: { readonly [Name in SectionName]: ComponentType<ConsoleData> } = {
  overview: UsagePage,
  requests: (data) => (data.subject === '' ? <RequestsPage {...data} /> : <RequestPage {...data} />),
  playground: PlaygroundPage,
  keys: KeysPage,
  projects: ProjectsPage,
  wallet: BillingPage,
  providers: ProvidersPage,
  settings: SettingsPage,
}

export function ConsolePage(data: ConsoleData) {
  const Content = sectionPages[data.section]
  useConsoleShortcuts()
  return (
    <ZoneProvider>
      <WorkspaceProvider>
        <div class="console">
          <aside class="console-side">
            <ConsoleMenu section={data.section} />
            <div class="console-choices">
              <WorkspaceSwitch />
              <ZoneSwitch />
            </div>
            <Palette />
            <SignOut actor={data.actor} />
          </aside>
          <ToastProvider>
            <div class="console-page">
              <Content {...data} />
            </div>
          </ToastProvider>
        </div>
        <ShortcutsDialog shortcuts={consoleShortcuts} />
      </WorkspaceProvider>
    </ZoneProvider>
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
    <div class="console-account">
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
