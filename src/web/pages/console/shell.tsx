/** @jsxImportSource preact */
// What stands around every page of the console: the menu, the choice of workspace and time zone, the keys, the way out.

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { consoleSections, sectionPath } from '../../console-sections.ts'
import type { ConsoleData } from '../../page-data.ts'
import { endSession } from '../browser/session-call.ts'
import { ConsoleKeyHelp, useConsoleKeys } from './parts/console-keys.tsx'
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
            <nav aria-label="Console" class="console-menu">
              {consoleSections.map(({ name, label }) => (
                <a key={name} href={sectionPath(name)} aria-current={name === section ? 'page' : undefined}>
                  {label}
                </a>
              ))}
            </nav>
            <div class="console-choices">
              <WorkspaceSwitch />
              <ZoneSwitch />
            </div>
            <Leave actor={actor} />
          </aside>
          <div class="console-page">{children}</div>
        </div>
        <ConsoleKeyHelp />
      </WorkspaceProvider>
    </ZoneProvider>
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
