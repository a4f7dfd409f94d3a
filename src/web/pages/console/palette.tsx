/** @jsxImportSource preact */
// Keyboard navigation of the console: its command palette (⌘K or Ctrl K), `g` and a letter for a page, j and k
// between rows, u to undo, and pasting a request id to open it.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { OperationName } from '../../../api/endpoints.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { countOf } from '../../catalog/format.ts'
import {
  allWorkspaces,
  consoleSections,
  type DocsData,
  type SectionName,
  sectionPath,
  themes,
} from '../../page-data.ts'
import { readJson } from '../api.ts'
import { handleCommonKey, isTyping, type Shortcuts, useModal, useShortcuts } from '../components.tsx'
import { useApi, useQuery } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { setTheme } from '../shell.tsx'
import { useMay, useViewer, useWorkspaces, useZone } from './context.tsx'
import { navigate, usePlace } from './navigation.ts'
import { type PaletteEntry, type PaletteSources, paletteEntries } from './palette-entries.ts'

export const consoleShortcuts: Shortcuts = [
  ['⌘K', 'or Ctrl K: go to a page, model, key, provider, person, request or guide'],
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

/** The button that opens the command palette, which ⌘K and Ctrl K do too. */
export function Palette({ onSignOut }: { onSignOut(): void }) {
  const viewer = useViewer()
  const { scope } = usePlace()
  const { workspaces = [], current } = useWorkspaces()
  const may = useMay()
  const { setZone } = useZone()
  const action = (label: string, run: () => void, note = ''): PaletteEntry => ({ kind: 'action', label, note, run })
  const toFunds = () => navigate(sectionPath('wallet', scope))
  const ofWorkspace: readonly (readonly [needs: OperationName, label: string, run: () => void])[] = [
    ['createKey', 'Create key', () => pressOn('keys', 'New key')],
    ['createProject', 'Create project', () => pressOn('projects', 'New project')],
    ['topUp', 'Add funds', toFunds],
  ]
  const actions = [
    ...ofWorkspace
      .filter(([needs]) => may(needs, current?.id))
      .map(([, label, run]) => action(label, run, current?.name)),
    ...themes.map((theme) => action(`Theme: ${theme}`, () => setTheme(theme))),
    action('Show times in UTC', () => setZone('utc')),
    action('Show local times', () => setZone('local')),
    action('Sign out', onSignOut, viewer.actor),
  ]
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
      event.preventDefault()
      // Not over a sheet: navigating away would lose its input, or a secret that is shown once.
      if (document.querySelector('dialog[open]') === null) setOpen(true)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  return (
    <>
      <button type="button" class="palette-button needs-script" onClick={() => setOpen(true)}>
        <Icon name="search" />
        <span>Search …</span>
        <kbd>Ctrl K</kbd>
      </button>
      {isOpen && <PaletteDialog {...{ actions, viewer, scope, workspaces }} onClose={() => setOpen(false)} />}
    </>
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

interface PaletteDialogProps extends Pick<PaletteSources, 'viewer' | 'scope' | 'actions' | 'workspaces'> {
  onClose(): void
}

const readDocsGroups = () => readJson<Pick<DocsData, 'groups'>>('/docs/pages.json').then(({ groups }) => groups)

const listId = 'palette-list'
const optionId = (at: number) => `palette-${at}`

/** Loads what it can find when it opens. A list box driven from its text field, so that the field keeps the focus. */
function PaletteDialog({ onClose, ...sources }: PaletteDialogProps) {
  const models = useApi('getCatalog', {}).value?.data ?? []
  const id = sources.scope === allWorkspaces ? undefined : sources.scope
  const keys = useApi('listKeys', { query: { limit: 200, workspace_id: id } }).value?.data ?? []
  const projects = useApi('listProjects', id === undefined ? undefined : { id }).value?.data ?? []
  const may = useMay()
  const members = useApi('listMembers', may('listMembers', id) ? { query: { workspace_id: id } } : undefined)
  // Someone with roles in several workspaces is one person.
  const people = [...new Map(members.value?.data.map((member) => [member.email, member])).values()]
  const groups = useQuery('docs', readDocsGroups).value ?? []
  const docs = groups.flatMap(({ title, links }) => links.map((link) => ({ ...link, group: title })))
  const providers = may('listCredentials', id)
    ? [...new Set(models.flatMap(({ routes }) => routes.map(({ provider }) => provider)))]
    : []
  const dialog = useModal(onClose)
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  const entries = paletteEntries(typed, { ...sources, models, keys, projects, providers, people, docs })
  const selected = entries[Math.min(at, entries.length - 1)]
  const move = (to: number) => {
    const next = Math.max(0, Math.min(entries.length - 1, to))
    setAt(next)
    document.getElementById(optionId(next))?.scrollIntoView({ block: 'nearest' })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length }
    const to = steps[event.key]
    if (event.key === 'Enter' && selected) choose(selected)
    else if (to === undefined || ((event.key === 'Home' || event.key === 'End') && typed !== '')) return
    else move(to)
    event.preventDefault()
  }
  const choose = ({ href, run }: PaletteEntry) => {
    onClose()
    if (run) run()
    else if (href !== undefined) navigate(href)
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc closes it too
    <dialog
      class="palette"
      ref={dialog}
      aria-label="Go to"
      onClick={({ target }) => target === dialog.current && onClose()}
    >
      <input
        type="text"
        role="combobox"
        aria-label="Page, action, model, key, provider, person, guide or request id"
        aria-expanded="true"
        aria-controls={listId}
        aria-autocomplete="list"
        aria-activedescendant={selected && optionId(entries.indexOf(selected))}
        placeholder="Search pages, models, keys, people, docs, req_…"
        autocomplete="off"
        spellcheck={false}
        value={typed}
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value)
          setAt(0)
        }}
        onKeyDown={onKeyDown}
      />
      <div id={listId} role="listbox" aria-label="Results" class="palette-list">
        {entries.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text field handles the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus and names the option
          <div
            key={`${entry.kind} ${entry.label} ${entry.href ?? ''}`}
            id={optionId(index)}
            role="option"
            class="between"
            aria-selected={entry === selected}
            data-href={entry.href}
            onClick={() => choose(entry)}
          >
            <span>{entry.label}</span>
            <small>{entry.note ? `${entry.kind} · ${entry.note}` : entry.kind}</small>
          </div>
        ))}
      </div>
      <p role="status" class="hint">
        {entries.length === 0
          ? 'No results.'
          : `${countOf(entries.length, 'result')}. Arrow keys select, Enter opens, Esc closes.`}
      </p>
    </dialog>
  )
}
