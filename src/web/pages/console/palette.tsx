/** @jsxImportSource preact */
// Keyboard navigation of the console: what its command palette (⌘K or Ctrl K) offers, `g` and a letter for a page, j and k
// between rows, u to undo, and pasting a request id to open it.

import { useEffect, useRef } from 'preact/hooks'
import type { OperationName } from '../../../api/endpoints.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { allWorkspaces, consoleSections, type SectionName, sectionPath, themes } from '../../page-data.ts'
import { handleCommonKey, isTyping, type Shortcuts, useShortcuts } from '../components.tsx'
import { useApi } from '../hooks.ts'
import { PaletteButton, PaletteDialog } from '../palette-dialog.tsx'
import { setTheme } from '../shell.tsx'
import { useMay, useViewer, useWorkspaces, useZone } from './context.tsx'
import { navigate, usePlace } from './navigation.ts'
import { type PaletteEntry, type PaletteSources, paletteEntries } from './palette-entries.ts'

export const consoleShortcuts: Shortcuts = [
  ['⌘K', 'or Ctrl K: go to a page, model, key or request'],
  ...consoleSections.map(({ key, label }) => [`g ${key}`, label] as const),
  ['/', 'search'],
  ['j k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['u', 'undo the last change while the offer is shown'],
  ['?', 'show these shortcuts'],
  ['paste', 'a request id to open it'],
]

/** How long `g` waits for its letter. */
const chordMs = 1_500

export function useConsoleShortcuts(): void {
  const chordUntil = useRef(0)
  useShortcuts((event) => {
    if (isTyping(event)) return false
    const { key } = event
    const isChord = systemClock.monotonicMs() < chordUntil.current
    chordUntil.current = key === 'g' && !isChord ? systemClock.monotonicMs() + chordMs : 0
    if (isChord) {
      const section = consoleSections.find((each) => each.key === key)
      if (section) navigate(sectionPath(section.name, ''))
      return section !== undefined
    }
    if (key !== 'u') return handleCommonKey(key)
    const undo = document.querySelector<HTMLElement>('[data-undo]')
    undo?.click()
    return undo !== null
  })
  useEffect(() => {
    const onPaste = (event: ClipboardEvent) => {
      const id = event.clipboardData?.getData('text').trim() ?? ''
      if (!isTyping(event) && /^req_[0-9A-Z]{26}$/.test(id)) navigate(`/console/requests/${id}`)
    }
    document.addEventListener('paste', onPaste)
    return () => document.removeEventListener('paste', onPaste)
  }, [])
}

export function Palette({ onSignOut }: { onSignOut(): void }) {
  const viewer = useViewer()
  const { scope } = usePlace()
  const { workspaces = [], current } = useWorkspaces()
  const may = useMay()
  const { setZone } = useZone()
  const pressed = (
    label: string,
    needs: OperationName,
    section: SectionName,
    press: string,
  ): readonly PaletteEntry[] =>
    may(needs, current?.id)
      ? [{ kind: 'action', label, note: current?.name ?? '', href: '', run: () => pressOn(section, press) }]
      : []
  const actions: readonly PaletteEntry[] = [
    ...pressed('Create key', 'createKey', 'keys', 'New key'),
    ...pressed('Create project', 'createProject', 'projects', 'New project'),
    ...(may('topUp', current?.id)
      ? [{ kind: 'action' as const, label: 'Add funds', note: current?.name ?? '', href: sectionPath('wallet', scope) }]
      : []),
    ...themes.map(
      (theme): PaletteEntry => ({
        kind: 'action',
        label: `Theme: ${theme}`,
        note: '',
        href: '',
        run: () => setTheme(theme),
      }),
    ),
    { kind: 'action', label: 'Show times in UTC', note: '', href: '', run: () => setZone('utc') },
    { kind: 'action', label: 'Show local times', note: '', href: '', run: () => setZone('local') },
    { kind: 'action', label: 'Sign out', note: viewer.actor, href: '', run: onSignOut },
  ]
  return (
    <PaletteButton>
      {(onClose) => <ConsolePalette {...{ onClose, actions, viewer, scope, workspaces }} />}
    </PaletteButton>
  )
}

/** Goes to a page and presses one of its buttons once it is there. */
function pressOn(section: SectionName, label: string): void {
  navigate(sectionPath(section, ''))
  const press = () => {
    const button = [...document.querySelectorAll('main button')].find(({ textContent }) => textContent === label)
    if (button instanceof HTMLElement) button.click()
    return button !== undefined
  }
  const watch = new MutationObserver(() => press() && watch.disconnect())
  watch.observe(document.body, { childList: true, subtree: true })
  setTimeout(() => watch.disconnect(), 5_000)
  if (press()) watch.disconnect()
}

/** Loads what it can find when it opens. */
function ConsolePalette({
  onClose,
  ...sources
}: { onClose(): void } & Omit<PaletteSources, 'models' | 'keys' | 'projects'>) {
  const models = useApi('getCatalog', {}).value?.data ?? []
  const id = sources.scope === allWorkspaces ? undefined : sources.scope
  const keys = useApi('listKeys', { query: { limit: 200, workspace_id: id } }).value?.data ?? []
  const projects = useApi('listProjects', id === undefined ? undefined : { id }).value?.data ?? []
  return (
    <PaletteDialog
      onClose={onClose}
      entriesOf={(typed) => paletteEntries(typed, { ...sources, models, keys, projects })}
      go={navigate}
    />
  )
}
