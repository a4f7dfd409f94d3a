/** @jsxImportSource preact */
// The command palette of all pages: a search field over a list of what can be opened or done.

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { countOf } from '../catalog/format.ts'
import { useModal } from './components.tsx'
import type { PaletteEntry } from './console/palette-entries.ts'
import { Icon } from './icons.tsx'

/** The button that opens the palette, which ⌘K and Ctrl K do too. */
export function PaletteButton({ children }: { children(onClose: () => void): ComponentChildren }) {
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
      {isOpen && children(() => setOpen(false))}
    </>
  )
}

export interface PaletteDialogProps {
  entriesOf(typed: string): readonly PaletteEntry[]
  go(href: string): void
  onClose(): void
}

const listId = 'palette-list'
const optionId = (at: number) => `palette-${at}`

/** A list box driven from its text field, so that the field keeps the focus. */
export function PaletteDialog({ onClose, entriesOf, go }: PaletteDialogProps) {
  const dialog = useModal()
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  const entries = entriesOf(typed)
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
    else go(href)
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
        aria-label="Page, action, model, key or request id"
        aria-expanded="true"
        aria-controls={listId}
        aria-autocomplete="list"
        aria-activedescendant={selected && optionId(entries.indexOf(selected))}
        placeholder="Search pages, actions, models, keys, req_…"
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
            key={`${entry.kind} ${entry.label} ${entry.href}`}
            id={optionId(index)}
            role="option"
            class="between"
            aria-selected={entry === selected}
            data-href={entry.href}
            onClick={() => choose(entry)}
          >
            <span>{entry.label}</span>
            <small>{entry.note === '' ? entry.kind : `${entry.kind} · ${entry.note}`}</small>
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
