/** @jsxImportSource preact */
// Narrows the list to what one key can use, or one project for whoever is signed in to the console.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { type Narrowing, readJson } from '../browser/use-narrowing.ts'

export interface NarrowingFormProps {
  readonly narrowing: Narrowing
  readonly isSignedIn: boolean
}

export function NarrowingForm({ narrowing, isSignedIn }: NarrowingFormProps) {
  const { viewer, isAsking, refusal, clear } = narrowing
  if (viewer) {
    return (
      <div class="viewer" role="status">
        <p>Narrowed to what {viewer.kind === 'key' ? 'your key' : `the project ${viewer.name}`} can use.</p>
        <button type="button" class="button quiet small" disabled={isAsking} onClick={() => narrowing.ask(viewer)}>
          Ask again
        </button>
        <button type="button" class="button quiet small" onClick={clear}>
          {viewer.kind === 'key' ? 'Forget the key' : 'Show the whole catalog'}
        </button>
        {refusal !== '' && <p class="warning">This is what it could use before: {refusal}</p>}
      </div>
    )
  }
  return (
    <details class="viewer needs-script">
      <summary>What can my key use?</summary>
      <KeyForm narrowing={narrowing} />
      {isSignedIn && <ProjectForm narrowing={narrowing} />}
      {refusal !== '' && (
        <p class="warning" role="alert">
          {refusal}
        </p>
      )}
    </details>
  )
}

function KeyForm({ narrowing }: Pick<NarrowingFormProps, 'narrowing'>) {
  const [secret, setSecret] = useState('')
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    narrowing.ask({ kind: 'key', secret: secret.trim() })
  }
  return (
    <form class="viewer-form" onSubmit={submit}>
      <label for="viewer-key">Your key</label>
      <input
        id="viewer-key"
        type="password"
        autocomplete="off"
        spellcheck={false}
        required
        value={secret}
        aria-describedby="viewer-key-hint"
        onInput={({ currentTarget }) => setSecret(currentTarget.value)}
      />
      <button type="submit" class="button" disabled={narrowing.isAsking}>
        Show what it can use
      </button>
      <p class="hint" id="viewer-key-hint">
        It stays in this tab, and is sent to this gateway’s /v1/models only.
      </p>
    </form>
  )
}

interface Named {
  readonly id: string
  readonly name: string
}

interface Choice extends Named {
  readonly workspace: string
}

/** Asked for when somebody wants to choose. */
function ProjectForm({ narrowing }: Pick<NarrowingFormProps, 'narrowing'>) {
  const [choices, setChoices] = useState<readonly Choice[] | string | undefined>(undefined)
  const load = async () => setChoices((known) => known ?? []) ?? setChoices(await readProjects())
  const pick = (id: string) => {
    const choice = Array.isArray(choices) ? choices.find((each: Choice) => each.id === id) : undefined
    if (choice) narrowing.ask({ kind: 'project', id, name: choice.name })
  }
  if (typeof choices === 'string') return <p class="warning">{choices}</p>
  return (
    <div class="viewer-form">
      <label for="viewer-project">Or a project</label>
      <select
        id="viewer-project"
        value=""
        onFocus={() => choices === undefined && void load()}
        onChange={({ currentTarget }) => pick(currentTarget.value)}
      >
        <option value="">choose one</option>
        {choices?.map(({ id, name, workspace }) => (
          <option key={id} value={id}>
            {workspace} / {name}
          </option>
        ))}
      </select>
    </div>
  )
}

/** A text says why not. */
async function readProjects(): Promise<readonly Choice[] | string> {
  const workspaces = await readJson<{ data: Named[] }>('/api/workspaces?limit=200')
  if (typeof workspaces === 'string') return workspaces
  const lists = await Promise.all(
    workspaces.data.map(async ({ id, name }) => {
      const projects = await readJson<{ data: Named[] }>(`/api/workspaces/${id}/projects?limit=200`)
      return typeof projects === 'string' ? [] : projects.data.map((each) => ({ ...each, workspace: name }))
    }),
  )
  return lists.flat()
}
