/** @jsxImportSource preact */
// Keyboard navigation of the console: the command palette (⌘K or Ctrl K), `g` and a letter for a page, j and k between
// rows, u to undo, and pasting a request id to open it.

import { useEffect, useState } from 'preact/hooks'
import { countOf } from '../../catalog/format.ts'
import { consoleSections, sectionPath } from '../../page-data.ts'
import { Button, focusNextRow, focusOn, isTyping, openShortcuts, type Shortcuts, useModal } from '../components.tsx'
import { useApi } from '../hooks.ts'
import { paletteEntries } from './palette-entries.ts'

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
  useEffect(() => {
    let isChord = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return
      const wasChord = isChord
      isChord = false
      clearTimeout(timer)
      if (wasChord) {
        if (goTo(event.key)) event.preventDefault()
      } else if (event.key === 'g') {
        isChord = true
        timer = setTimeout(() => {
          isChord = false
        }, chordMs)
      } else if (handleKey(event.key)) event.preventDefault()
    }
    const onPaste = (event: ClipboardEvent) => {
      const id = event.clipboardData?.getData('text').trim() ?? ''
      if (!isTyping(event) && /^req_[0-9A-Z]{26}$/.test(id)) location.assign(`/console/requests/${id}`)
    }
    document.addEventListener('keydown', onKey)
    document.addEventListener('paste', onPaste)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('keydown', onKey)
      document.removeEventListener('paste', onPaste)
    }
  }, [])
}

function goTo(key: string): boolean {
  const section = consoleSections.find((each) => each.key === key)
  if (section) location.assign(sectionPath(section.name))
  return section !== undefined
}

/** Whether the key is a shortcut. */
function handleKey(key: string): boolean {
  if (key === '/') return focusOn(document.querySelector<HTMLElement>('[data-search]'))
  if (key === 'j' || key === 'ArrowDown') return focusNextRow('.data-table .row-link', 'tr', 1)
  if (key === 'k' || key === 'ArrowUp') return focusNextRow('.data-table .row-link', 'tr', -1)
  if (key === 'u') {
    const undo = document.querySelector<HTMLElement>('[data-undo]')
    undo?.click()
    return undo !== null
  }
  return key === '?' && openShortcuts()
}

export function Palette() {
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
      <Button look="quiet small palette-button" onClick={() => setOpen(true)}>
        Go to … <kbd>Ctrl K</kbd>
      </Button>
      {isOpen && <PaletteDialog onClose={() => setOpen(false)} />}
    </>
  )
}

const listId = 'palette-list'
const optionId = (at: number) => `palette-${at}`

/** A list box driven from its text field, so that the field keeps the focus. */
function PaletteDialog({ onClose }: { onClose(): void }) {
  const dialog = useModal()
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  const models = useApi('getCatalog', {}).value?.data ?? []
  const keys = useApi('listKeys', { query: { limit: 200 } }).value?.data ?? []
  const entries = paletteEntries(typed, { models, keys })
  const selected = entries[Math.min(at, entries.length - 1)]
  const move = (to: number) => {
    const next = Math.max(0, Math.min(entries.length - 1, to))
    setAt(next)
    document.getElementById(optionId(next))?.scrollIntoView({ block: 'nearest' })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length }
    const to = steps[event.key]
    if (event.key === 'Enter' && selected) location.assign(selected.href)
    else if (to === undefined || ((event.key === 'Home' || event.key === 'End') && typed !== '')) return
    else move(to)
    event.preventDefault()
  }
  const cancel = (event: Event) => {
    event.preventDefault()
    onClose()
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc closes it too
    <dialog
      class="palette"
      ref={dialog}
      aria-label="Go to"
      onCancel={cancel}
      onClick={({ target }) => target === dialog.current && onClose()}
    >
      <input
        type="text"
        role="combobox"
        aria-label="Page, model, key or request id"
        aria-expanded="true"
        aria-controls={listId}
        aria-autocomplete="list"
        aria-activedescendant={selected && optionId(entries.indexOf(selected))}
        placeholder="Page, model, key or req_…"
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
            key={`${entry.kind} ${entry.href}`}
            id={optionId(index)}
            role="option"
            aria-selected={entry === selected}
            data-href={entry.href}
            onClick={() => location.assign(entry.href)}
          >
            <span class="wrap">{entry.label}</span>
            <small>{entry.note === '' ? entry.kind : `${entry.kind}, ${entry.note}`}</small>
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
