/** @jsxImportSource preact */
// Limits the model list to what one key can use, or one project for signed-in users. The choice stays in this tab. A key is
// only sent to GET /v1/models.

import type { TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { UsableModel } from '../../catalog/entry.ts'
import { ApiError, callForAll, type ListAnswer, readJson, targetOfCall } from '../api.ts'
import { Button } from '../components.tsx'
import { Field } from '../form.tsx'
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
async function readModels(subject: Subject | undefined): Promise<ListAnswer<UsableModel>> {
  if (subject?.kind === 'project') return await readJson(targetOfCall('listProjectModels', { id: subject.id }).path)
  // Other characters cannot be sent in a header.
  if (!subject || !/^[!-~]+$/.test(subject.secret)) throw new ApiError(0, 'This is not a key.')
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
      <div class="access-filter row" role="status">
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
      <div class="stack">
        <KeyForm access={access} />
        {isSignedIn && <ProjectForm access={access} />}
        {error && (
          <p class="warning" role="alert">
            {error.message}
          </p>
        )}
      </div>
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
    <form class="stack tight" onSubmit={submit}>
      <Field
        label="Your key"
        kind="password"
        value={secret}
        isRequired
        hint="It stays in this tab and is only sent to this gateway’s /v1/models."
        onChange={setSecret}
      />
      <p>
        <button type="submit" class="button" disabled={access.isLoading}>
          Show its models
        </button>
      </p>
    </form>
  )
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
  const options = projects?.map(({ id, name, workspace }) => ({ value: id, label: `${workspace} / ${name}` })) ?? []
  return (
    <Field
      label="Or a project"
      id="access-project"
      value=""
      options={[{ value: '', label: 'choose one' }, ...options]}
      attributes={{ onFocus: () => setWanted(true) }}
      onChange={pick}
    />
  )
}

/** Projects of a workspace that cannot be read are left out. */
async function readProjects() {
  const workspaces = await callForAll('listWorkspaces', {})
  const lists = workspaces.map(async ({ id, name: workspace }) => {
    const projects = await callForAll('listProjects', { id }).catch(() => [])
    return projects.map((project) => ({ id: project.id, name: project.name, workspace }))
  })
  return (await Promise.all(lists)).flat()
}
