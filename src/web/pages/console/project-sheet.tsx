/** @jsxImportSource preact */
// Creates a project, or changes its name and allowlist, with a preview of the models that its keys will see.

import { useId, useState } from 'preact/hooks'
import { allowsModel, createAllowlist, parsePattern } from '../../../tenancy/allowlist.ts'
import type { CatalogEntry } from '../../catalog/entry.ts'
import { callApi, type Project } from '../api.ts'
import { Button } from '../components.tsx'
import { useToast } from './context.tsx'
import { Field, FormSheet } from './form.tsx'

/** The models that an allowlist allows, by the gateway's own rule. null = all. */
export function allowedEntries(
  models: readonly string[] | null,
  entries: readonly CatalogEntry[],
): readonly CatalogEntry[] {
  if (models === null) return entries
  const lists = [createAllowlist(models)]
  return entries.filter(({ id }) => allowsModel(lists, id))
}

export interface ProjectSheetProps {
  readonly workspaceId: string
  /** undefined = a new one. */
  readonly project: Project | undefined
  readonly entries: readonly CatalogEntry[]
  /** Whether the entries include all models that own keys unlock. */
  readonly isComplete: boolean
  onClose(): void
  onSaved(): void
  onUndone(): void
}

export function ProjectSheet(props: ProjectSheetProps) {
  const { workspaceId, project, entries, isComplete, onClose, onSaved, onUndone } = props
  const [name, setName] = useState(project?.name ?? '')
  const [models, setModels] = useState<readonly string[] | null>(project?.models ?? null)
  const offerUndo = useToast()
  const body = { name: name.trim(), models: models && [...models] }
  const patch = ({ id }: Project, next: typeof body) => callApi('updateProject', { id, body: next })
  const onDone = () => {
    onSaved()
    if (!project) return
    const before = { name: project.name, models: project.models }
    offerUndo({ text: `Project ${body.name} changed.`, undo: () => patch(project, before), onUndone })
  }
  return (
    <FormSheet
      title={project ? `Models of ${project.name}` : 'New project'}
      label={project ? 'Save' : 'Create project'}
      busyLabel="Saving …"
      content={body}
      onClose={onClose}
      send={async (options) =>
        project ? await patch(project, body) : await callApi('createProject', { id: workspaceId, body }, options)
      }
      onDone={onDone}
    >
      <Field label="Name" value={name} isRequired lengthMax={100} onChange={setName} />
      <AllowlistPicker entries={entries} models={models} onChange={setModels} />
      <AllowlistPreview entries={entries} models={models} isComplete={isComplete} />
    </FormSheet>
  )
}

interface AllowlistPickerProps {
  readonly entries: readonly CatalogEntry[]
  /** null = all models. */
  readonly models: readonly string[] | null
  onChange(models: readonly string[] | null): void
}

function AllowlistPicker({ entries, models, onChange }: AllowlistPickerProps) {
  // Kept while "All models" is selected.
  const [picked, setPicked] = useState(models ?? [])
  const name = useId()
  const pick = (next: readonly string[]) => {
    setPicked(next)
    onChange(next)
  }
  return (
    <fieldset class="picker">
      <legend>Models</legend>
      <label class="tick">
        <input type="radio" name={name} checked={models === null} onChange={() => onChange(null)} />
        <span>All models, including future ones</span>
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

/** Whole creators (`prefix/*`) and single models, found by typing. */
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
            // Enter must not submit the form.
            event.preventDefault()
            add()
          }}
        />
      </label>
      {canAdd && (
        <p>
          <Button look="quiet small" onClick={add}>
            Allow <code>{typed}</code>, which is not in the catalog
          </Button>
        </p>
      )}
      <ul class="patterns">
        {found.map((pattern) => (
          <li key={pattern}>
            <label class="tick">
              <input type="checkbox" checked={models.includes(pattern)} onChange={() => toggle(pattern)} />
              <code>{pattern}</code>
              {pattern.endsWith('/*') && <small>all, including future ones</small>}
            </label>
          </li>
        ))}
        {found.length === 0 && <li class="muted">No matching models.</li>}
      </ul>
    </>
  )
}

/** Creators, then models, then allowed patterns that are no longer in the catalog, so that they can be removed. */
function offeredPatterns(entries: readonly CatalogEntry[], models: readonly string[]): readonly string[] {
  const ids = entries.map(({ id }) => id)
  const creators = ids.map((id) => `${id.slice(0, id.indexOf('/'))}/*`)
  return [...new Set([...creators.sort(), ...ids, ...models])]
}

interface AllowlistPreviewProps {
  readonly entries: readonly CatalogEntry[]
  readonly models: readonly string[] | null
  readonly isComplete: boolean
}

/** The models exactly as /v1/models will list them for the project's keys. */
function AllowlistPreview({ entries, models, isComplete }: AllowlistPreviewProps) {
  const callable = entries.filter((entry) => entry.callable)
  const allowed = allowedEntries(models, callable)
  return (
    <section class="preview" aria-label="Preview">
      <p role="status">
        Its keys will see <strong>{allowed.length}</strong> of {callable.length} models
        {models === null && ', and future ones'}
        {allowed.length === 0 && isComplete && ': every request will be refused'}.
      </p>
      {!isComplete && (
        <p class="hint">
          Of the models that own provider keys unlock, only those that some project may call now are counted.
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must be able to */}
      <ul class="model-ids" tabIndex={0} aria-label="Models its keys will see">
        {allowed.map(({ id }) => (
          <li key={id}>
            <code>{id}</code>
          </li>
        ))}
      </ul>
    </section>
  )
}
