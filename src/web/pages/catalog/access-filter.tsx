/** @jsxImportSource preact */
// Limits the model list to what one key can use, or one project for signed-in users. The choice stays in this tab. A key is
// only sent to GET /v1/models.

import type { TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { UsableModel } from '../../catalog/usable-models.ts'
import { ApiError, callForAll, type ListAnswer, readJson, targetOfCall } from '../api.ts'
import { Button } from '../components.tsx'
import { useQuery } from '../hooks.ts'

type Subject =
  | { readonly kind: 'key'; readonly secret: string }
  | { readonly kind: 'project'; readonly id: string; readonly name: string }

export interface Access {
  readonly subject: Subject | undefined
  /** What the subject can use; undefined = the whole catalog is shown. */
  readonly models: readonly UsableModel[] | undefined
  readonly isLoading: boolean
  /** Why the list is not filtered, or not up to date. */
  readonly error: ApiError | undefined
  choose(subject: Subject): void
  clear(): void
}

const storageName = 'tollgate-viewer'

/** Loads the models again when `accessVersion` grows. */
export function useAccess(accessVersion: number): Access {
  const [subject, setSubject] = useState<Subject | undefined>(undefined)
  const { value, error, isLoading, reload } = useQuery(
    subject && JSON.stringify(subject),
    async () => await readModels(subject),
  )
  useEffect(() => {
    const kept = sessionStorage.getItem(storageName)
    if (kept !== null) setSubject(JSON.parse(kept) as Subject)
  }, [])
  useEffect(() => {
    if (accessVersion > 0) reload()
  }, [accessVersion])
  useEffect(() => {
    if (value) sessionStorage.setItem(storageName, JSON.stringify(subject))
    else if (error) sessionStorage.removeItem(storageName)
  }, [value, error])
  return {
    subject,
    models: value?.data,
    isLoading: subject !== undefined && isLoading,
    error,
    choose(next) {
      setSubject(next)
      reload()
    },
    clear() {
      sessionStorage.removeItem(storageName)
      setSubject(undefined)
    },
  }
}

/** Not by callApi, which leaves the page when there is no session. */
async function readModels(subject: Subject | undefined): Promise<ListAnswer<UsableModel> | ApiError> {
  if (subject?.kind === 'project') return await readJson(targetOfCall('listProjectModels', { id: subject.id }).path)
  // Other characters cannot be sent in a header.
  if (!subject || !/^[!-~]+$/.test(subject.secret)) return new ApiError(0, 'This is not a key.', '')
  return await readJson('/v1/models', { authorization: `Bearer ${subject.secret}` })
}

export interface AccessFilterProps {
  readonly access: Access
  readonly isSignedIn: boolean
}

export function AccessFilter({ access, isSignedIn }: AccessFilterProps) {
  const { subject, models, isLoading, error, clear } = access
  if (subject && models) {
    return (
      <div class="access-filter" role="status">
        <p>Showing only models that {subject.kind === 'key' ? 'your key' : `project ${subject.name}`} can use.</p>
        <Button look="quiet small" disabled={isLoading} onClick={() => access.choose(subject)}>
          Refresh
        </Button>
        <Button look="quiet small" onClick={clear}>
          {subject.kind === 'key' ? 'Forget the key' : 'Show all models'}
        </Button>
        {error && <p class="warning">The list may be out of date: {error.message}</p>}
      </div>
    )
  }
  return (
    <details class="access-filter needs-script">
      <summary>What can my key use?</summary>
      <KeyForm access={access} />
      {isSignedIn && <ProjectForm access={access} />}
      {error && (
        <p class="warning" role="alert">
          {error.message}
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

interface ProjectChoice {
  readonly id: string
  readonly name: string
  readonly workspace: string
}

/** Loads the projects when the menu gets the focus. */
function ProjectForm({ access }: Pick<AccessFilterProps, 'access'>) {
  const [isWanted, setWanted] = useState(false)
  const { value: projects, error } = useQuery(isWanted ? 'projects' : undefined, readProjects)
  const pick = (id: string) => {
    const project = projects?.find((each) => each.id === id)
    if (project) access.choose({ kind: 'project', id, name: project.name })
  }
  if (error) return <p class="warning">{error.message}</p>
  return (
    <div class="access-form">
      <label for="access-project">Or a project</label>
      <select
        id="access-project"
        value=""
        onFocus={() => setWanted(true)}
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

/** Projects of a workspace that cannot be read are left out. */
async function readProjects(): Promise<readonly ProjectChoice[] | ApiError> {
  const workspaces = await callForAll('listWorkspaces', {})
  if (workspaces instanceof ApiError) return workspaces
  const lists = await Promise.all(
    workspaces.map(async ({ id, name: workspace }) => {
      const projects = await callForAll('listProjects', { id })
      return projects instanceof ApiError ? [] : projects.map((each) => ({ id: each.id, name: each.name, workspace }))
    }),
  )
  return lists.flat()
}
