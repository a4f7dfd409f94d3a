/** @jsxImportSource preact */
// Picks an allowlist: whole creators (`prefix/*`) and single models, found by typing. What is allowed and no longer in
// the catalog stays visible, so that it can be taken out.

import { useId, useState } from 'preact/hooks'
import { parsePattern } from '../../../../tenancy/allowlist.ts'
import type { CatalogEntry } from '../../../catalog/entry.ts'

export interface AllowlistPickerProps {
  readonly entries: readonly CatalogEntry[]
  /** null = every model. */
  readonly models: readonly string[] | null
  onChange(models: readonly string[] | null): void
}

export function AllowlistPicker({ entries, models, onChange }: AllowlistPickerProps) {
  // What was picked survives a look at "every model".
  const [picked, setPicked] = useState(models ?? [])
  const name = useId()
  const pick = (next: readonly string[]) => {
    setPicked(next)
    onChange(next)
  }
  return (
    <fieldset class="picker">
      <legend>Which models</legend>
      <label class="tick">
        <input type="radio" name={name} checked={models === null} onChange={() => onChange(null)} />
        <span>Every model, also those that come later</span>
      </label>
      <label class="tick">
        <input type="radio" name={name} checked={models !== null} onChange={() => onChange(picked)} />
        <span>Only these</span>
      </label>
      {models !== null && <PatternList entries={entries} models={models} onChange={pick} />}
    </fieldset>
  )
}

interface PatternListProps {
  readonly entries: readonly CatalogEntry[]
  readonly models: readonly string[]
  onChange(models: readonly string[]): void
}

function PatternList({ entries, models, onChange }: PatternListProps) {
  const [search, setSearch] = useState('')
  const id = useId()
  const typed = search.trim()
  const offered = offeredPatterns(entries, models)
  const found = offered.filter((pattern) => pattern.toLowerCase().includes(typed.toLowerCase()))
  const canAdd = parsePattern(typed) !== undefined && !offered.includes(typed)
  const toggle = (pattern: string) =>
    onChange(models.includes(pattern) ? models.filter((each) => each !== pattern) : [...models, pattern])
  const add = () => {
    if (canAdd) onChange([...models, typed])
    setSearch('')
  }
  return (
    <>
      <label class="field" for={id}>
        <span>Search models and creators</span>
        <input
          id={id}
          type="search"
          value={search}
          spellcheck={false}
          autocomplete="off"
          onInput={({ currentTarget }) => setSearch(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return
            // The form is not finished by finding something.
            event.preventDefault()
            add()
          }}
        />
      </label>
      {canAdd && (
        <p>
          <button type="button" class="button quiet small" onClick={add}>
            Allow <code>{typed}</code>, which is not in the catalog now
          </button>
        </p>
      )}
      <ul class="patterns">
        {found.map((pattern) => (
          <li key={pattern}>
            <label class="tick">
              <input type="checkbox" checked={models.includes(pattern)} onChange={() => toggle(pattern)} />
              <code>{pattern}</code>
              {pattern.endsWith('/*') && <small>all of them, also later ones</small>}
            </label>
          </li>
        ))}
        {found.length === 0 && <li class="muted">Nothing in the catalog is called that.</li>}
      </ul>
    </>
  )
}

/** Creators first, then models, then what is allowed already and nowhere else. */
function offeredPatterns(entries: readonly CatalogEntry[], models: readonly string[]): readonly string[] {
  const ids = entries.map(({ id }) => id)
  const creators = ids.map((id) => `${id.slice(0, id.indexOf('/'))}/*`)
  return [...new Set([...creators.sort(), ...ids, ...models])]
}
