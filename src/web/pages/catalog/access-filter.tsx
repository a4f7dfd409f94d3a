/** @jsxImportSource preact */
// Limits the model list to what one key can use, or one project for signed-in users. The choice stays in this tab. A key is
// only sent to GET /v1/models.

import type { TargetedSubmitEvent } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { UsableModel } from '../../catalog/usable-models.ts'

type Subject =
  | { readonly kind: 'key'; readonly secret: string }
  | { readonly kind: 'project'; readonly id: string; readonly name: string }

interface AccessState {
  /** Absent = the whole catalog is shown. */
  readonly subject?: Subject
  /** What the subject can use. */
  readonly models?: readonly UsableModel[]
  readonly isLoading: boolean
  /** Why the list is not filtered, or not up to date; empty = no error. */
  readonly error: string
}

export interface Access extends AccessState {
  choose(subject: Subject): void
  clear(): void
}

const storageName = 'tollgate-viewer'
const wholeCatalog: AccessState = { isLoading: false, error: '' }

/** Loads the models again when `accessVersion` grows. */
export function useAccess(accessVersion: number): Access {
  const [state, setState] = useState(wholeCatalog)
  /** The result of a superseded call is dropped. */
  const calls = useRef(0)
  const choose = async (subject: Subject) => {
    const call = ++calls.current
    setState({ ...wholeCatalog, isLoading: true })
    const models = await readModels(subject)
    if (call !== calls.current) return
    if (typeof models === 'string') {
      sessionStorage.removeItem(storageName)
      return setState({ ...wholeCatalog, error: models })
    }
    sessionStorage.setItem(storageName, JSON.stringify(subject))
    setState({ ...wholeCatalog, subject, models })
  }
  /** Keeps what is shown until there is something newer; an error is shown beside it. */
  const refresh = async (subject: Subject) => {
    const call = ++calls.current
    const models = await readModels(subject)
    if (call !== calls.current) return
    setState((before) =>
      typeof models === 'string' ? { ...before, error: models } : { ...wholeCatalog, subject, models },
    )
  }
  useEffect(() => {
    if (accessVersion > 0 && state.subject) void refresh(state.subject)
  }, [accessVersion])
  useEffect(() => {
    const kept = sessionStorage.getItem(storageName)
    if (kept !== null) void choose(JSON.parse(kept) as Subject)
  }, [])
  return {
    ...state,
    choose: (subject) => void choose(subject),
    clear() {
      calls.current++
      sessionStorage.removeItem(storageName)
      setState(wholeCatalog)
    },
  }
}

/** A string is an error message. */
async function readModels(subject: Subject): Promise<readonly UsableModel[] | string> {
  const answer = await (subject.kind === 'key'
    ? readJson<{ data: UsableModel[] }>('/v1/models', { authorization: `Bearer ${subject.secret}` })
    : readJson<{ data: UsableModel[] }>(`/api/projects/${encodeURIComponent(subject.id)}/models`))
  return typeof answer === 'string' ? answer : answer.data
}

/** A string is an error message. */
async function readJson<Answer>(path: string, headers: Record<string, string> = {}): Promise<Answer | string> {
  try {
    const response = await fetch(path, { headers: { accept: 'application/json', ...headers } })
    const answer = (await response.json()) as Answer & { error?: { message?: string } }
    return response.ok ? answer : (answer.error?.message ?? `The gateway responded with status ${response.status}.`)
  } catch (thrown) {
    // A key with a character that a header cannot carry is not a key.
    return thrown instanceof TypeError && headers.authorization !== undefined
      ? 'This is not a key, or the gateway does not respond.'
      : 'The gateway does not respond. Is it running?'
  }
}

export interface AccessFilterProps {
  readonly access: Access
  readonly isSignedIn: boolean
}

export function AccessFilter({ access, isSignedIn }: AccessFilterProps) {
  const { subject, isLoading, error, clear } = access
  if (subject) {
    return (
      <div class="access-filter" role="status">
        <p>Showing only models that {subject.kind === 'key' ? 'your key' : `project ${subject.name}`} can use.</p>
        <button type="button" class="button quiet small" disabled={isLoading} onClick={() => access.choose(subject)}>
          Refresh
        </button>
        <button type="button" class="button quiet small" onClick={clear}>
          {subject.kind === 'key' ? 'Forget the key' : 'Show all models'}
        </button>
        {error !== '' && <p class="warning">The list may be out of date: {error}</p>}
      </div>
    )
  }
  return (
    <details class="access-filter needs-script">
      <summary>What can my key use?</summary>
      <KeyForm access={access} />
      {isSignedIn && <ProjectForm access={access} />}
      {error !== '' && (
        <p class="warning" role="alert">
          {error}
        </p>
      )}
    </details>
  )
}

function KeyForm({ access }: Pick<AccessFilterProps, 'access'>) {
  const [secret, setSecret] = useState('')
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    access.choose({ kind: 'key', secret: secret.trim() })
  }
  return (
    <form class="access-form" onSubmit={submit}>
      <label for="access-key">Your key</label>
      <input
        id="access-key"
        type="password"
        autocomplete="off"
        spellcheck={false}
        required
        value={secret}
        aria-describedby="access-key-hint"
        onInput={({ currentTarget }) => setSecret(currentTarget.value)}
      />
      <button type="submit" class="button" disabled={access.isLoading}>
        Show its models
      </button>
      <p class="hint" id="access-key-hint">
        It stays in this tab and is only sent to this gateway’s /v1/models.
      </p>
    </form>
  )
}

interface Named {
  readonly id: string
  readonly name: string
}

interface ProjectChoice extends Named {
  readonly workspace: string
}

/** Loads the projects when the menu gets the focus. */
function ProjectForm({ access }: Pick<AccessFilterProps, 'access'>) {
  const [projects, setProjects] = useState<readonly ProjectChoice[] | undefined>(undefined)
  const [error, setError] = useState('')
  const load = async () => {
    if (projects !== undefined) return
    setProjects([])
    const found = await readProjects()
    if (typeof found === 'string') setError(found)
    else setProjects(found)
  }
  const pick = (id: string) => {
    const project = projects?.find((each) => each.id === id)
    if (project) access.choose({ kind: 'project', id, name: project.name })
  }
  if (error !== '') return <p class="warning">{error}</p>
  return (
    <div class="access-form">
      <label for="access-project">Or a project</label>
      <select
        id="access-project"
        value=""
        onFocus={() => void load()}
        onChange={({ currentTarget }) => pick(currentTarget.value)}
      >
        <option value="">choose one</option>
        {projects?.map(({ id, name, workspace }) => (
          <option key={id} value={id}>
            {workspace} / {name}
          </option>
        ))}
      </select>
    </div>
  )
}

/** A string is an error message. */
async function readProjects(): Promise<readonly ProjectChoice[] | string> {
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
