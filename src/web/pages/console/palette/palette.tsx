/** @jsxImportSource preact */
// ⌘K or Ctrl K: jump to a page, a model, a key or a request by typing a part of its name. A list box that is driven from
// its field, so that the focus never leaves what is typed.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { CatalogItem, KeyItem } from '../parts/api-answers.ts'
import { type ListAnswer, useResource } from '../parts/use-resource.ts'
import { type PaletteEntry, paletteEntries } from './palette-entries.ts'

export function Palette() {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
      event.preventDefault()
      // Not over a sheet: leaving it would lose what was typed, or a secret that is shown once.
      if (document.querySelector('dialog[open]') === null) setOpen(true)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  return (
    <>
      <button type="button" class="button quiet small jump" onClick={() => setOpen(true)}>
        Jump to … <kbd>Ctrl K</kbd>
      </button>
      {isOpen && <PaletteDialog onClose={() => setOpen(false)} />}
    </>
  )
}

const listId = 'palette-list'
const optionId = (at: number) => `palette-${at}`

function PaletteDialog({ onClose }: { onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  const models = useResource<ListAnswer<CatalogItem>>('/api/catalog').value?.data ?? []
  const keys = useResource<ListAnswer<KeyItem>>('/api/keys?limit=200').value?.data ?? []
  const entries = paletteEntries(typed, { models, keys })
  const chosen = entries[Math.min(at, entries.length - 1)]
  useEffect(() => {
    const before = document.activeElement
    const opened = dialog.current
    opened?.showModal()
    return () => {
      opened?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  const move = (to: number) => {
    const next = Math.max(0, Math.min(entries.length - 1, to))
    setAt(next)
    document.getElementById(optionId(next))?.scrollIntoView({ block: 'nearest' })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length }
    const to = steps[event.key]
    if (event.key === 'Enter' && chosen) location.assign(chosen.href)
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
      aria-label="Jump to"
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
        aria-activedescendant={chosen && optionId(entries.indexOf(chosen))}
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
      <div id={listId} role="listbox" aria-label="Places" class="palette-list">
        {entries.map((entry, index) => (
          <PaletteOption
            key={`${entry.kind} ${entry.href}`}
            id={optionId(index)}
            entry={entry}
            isChosen={entry === chosen}
          />
        ))}
      </div>
      <p role="status" class="hint">
        {entries.length === 0
          ? 'Nothing is called that.'
          : `${entries.length === 1 ? '1 place' : `${entries.length} places`}. Arrows choose, Enter opens, Esc closes.`}
      </p>
    </dialog>
  )
}

interface PaletteOptionProps {
  readonly id: string
  readonly entry: PaletteEntry
  readonly isChosen: boolean
}

function PaletteOption({ id, entry: { kind, label, note, href }, isChosen }: PaletteOptionProps) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the field before the list has the keys
    // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus and names the option
    <div id={id} role="option" aria-selected={isChosen} data-href={href} onClick={() => location.assign(href)}>
      <span class="wrap">{label}</span>
      <small>
        {kind}
        {note !== '' && `, ${note}`}
      </small>
    </div>
  )
}
