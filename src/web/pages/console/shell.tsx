/** @jsxImportSource preact */
// What stands around every page of the console: the menu, the choice of workspace and time zone, the keys, the palette, the
// way out.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { consoleSections, sectionPath } from '../../console-sections.ts'
import type { ConsoleData } from '../../page-data.ts'
import { endSession } from '../browser/session-call.ts'
import { KeyHelp } from '../shell/key-help.tsx'
import { Palette } from './palette/palette.tsx'
import { consoleKeys, useConsoleKeys } from './parts/console-keys.ts'
import { ToastProvider } from './parts/toast.tsx'
import { WorkspaceProvider, WorkspaceSwitch } from './parts/workspaces.tsx'
import { ZoneProvider, ZoneSwitch } from './parts/zone.tsx'

export interface ConsoleShellProps extends ConsoleData {
  readonly children: ComponentChildren
}

export function ConsoleShell({ section, actor, children }: ConsoleShellProps) {
  useConsoleKeys()
  return (
    <ZoneProvider>
      <WorkspaceProvider>
        <div class="console">
          <aside class="console-side">
            <ConsoleMenu section={section} />
            <div class="console-choices">
              <WorkspaceSwitch />
              <ZoneSwitch />
            </div>
            <Palette />
            <Leave actor={actor} />
          </aside>
          <ToastProvider>
            <div class="console-page">{children}</div>
          </ToastProvider>
        </div>
        <KeyHelp keys={consoleKeys} />
      </WorkspaceProvider>
    </ZoneProvider>
  )
}

function ConsoleMenu({ section }: Pick<ConsoleData, 'section'>) {
  const menu = useRef<HTMLElement>(null)
  useEffect(() => {
    // On a phone the menu is one row that is pushed aside; scrollIntoView would push the page as well.
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

function Leave({ actor }: { readonly actor: string }) {
  const [problem, setProblem] = useState('')
  const signOut = async () => {
    const refused = await endSession()
    if (refused === undefined) location.assign('/console')
    else setProblem(refused)
  }
  return (
    <div class="console-leave">
      <p class="hint">You are signed in ({actor}).</p>
      <button type="button" class="button quiet small" onClick={signOut}>
        Sign out
      </button>
      <p role="alert" class="problem">
        {problem}
      </p>
    </div>
  )
}
