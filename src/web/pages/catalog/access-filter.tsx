/** @jsxImportSource preact */
// Says whose models and prices a page of the catalog shows, and changes it: one of the viewer's projects, a pasted key, or for
// operators and visitors the public catalog.

import { useState } from 'preact/hooks'
import type { CatalogViewer, ViewedProject } from '../../page-data.ts'
import { callForAll } from '../api.ts'
import { Button } from '../components.tsx'
import { CheckedForm, Field } from '../form.tsx'
import { useQuery } from '../hooks.ts'
import { type LiveCatalog, type Subject, subjectOf } from '../live-catalog.ts'

export interface AccessFilterProps {
  readonly catalog: Pick<LiveCatalog<unknown>, 'subject' | 'isLoading' | 'error' | 'choose'>
  readonly viewer: CatalogViewer
}

export function AccessFilter({ catalog, viewer }: AccessFilterProps) {
  const { subject, isLoading, error, choose } = catalog
  if (subject.kind === 'key') {
    return (
      <div class="access-filter row" role="status">
        <p>Showing the models and prices of your key.</p>
        <Button look="quiet small" disabled={isLoading} onClick={() => choose(subject)}>
          Refresh
        </Button>
        <Button look="quiet small" onClick={() => choose(subjectOf(viewer))}>
          Forget the key
        </Button>
        {error && <p class="warning">The list may be out of date: {error.message}</p>}
      </div>
    )
  }
  return (
    <div class="access-filter row">
      {viewer.isSignedIn && <ProjectChoice subject={subject} viewer={viewer} choose={choose} />}
      <details class="needs-script">
        <summary>{viewer.isSignedIn ? 'Use a key' : 'What can my key use?'}</summary>
        <KeyForm catalog={catalog} />
      </details>
      {error && (
        <p class="warning" role="alert">
          {error.message}
        </p>
      )}
    </div>
  )
}

function KeyForm({ catalog: { isLoading, choose } }: Pick<AccessFilterProps, 'catalog'>) {
  const [secret, setSecret] = useState('')
  return (
    <CheckedForm class="stack tight" onSubmit={() => choose({ kind: 'key', secret: secret.trim() })}>
      <Field
        label="Your key"
        kind="password"
        value={secret}
        isRequired
        hint="Shows the models it can call and the prices it pays. It stays in this tab and is only sent to this gateway."
        onChange={setSecret}
      />
      <p>
        <button type="submit" class="button" disabled={isLoading}>
          Show its models
        </button>
      </p>
    </CheckedForm>
  )
}

interface ProjectChoiceProps {
  readonly subject: Exclude<Subject, { kind: 'key' }>
  readonly viewer: CatalogViewer
  choose(subject: Subject): void
}

const nameOf = ({ workspace, name }: ViewedProject) => `${workspace} / ${name}`

/** Operators have no projects of their own: theirs are loaded when the menu gets the focus. */
function ProjectChoice({ subject, viewer, choose }: ProjectChoiceProps) {
  const [isWanted, setWanted] = useState(false)
  const all = useQuery(isWanted && !viewer.projects ? 'projects' : undefined, readProjects)
  const shown = subject.kind === 'project' ? subject.project : undefined
  const projects = viewer.projects ?? all.value ?? (shown ? [shown] : [])
  if (viewer.projects && projects.length < 2) {
    return (
      <p>{shown ? `Prices and models of ${nameOf(shown)}` : 'You have no project yet: these are the public prices.'}</p>
    )
  }
  const options = projects.map((project) => ({ value: project.id, label: nameOf(project) }))
  const pick = (id: string) => {
    const project = projects.find((each) => each.id === id)
    choose(project ? { kind: 'project', project } : { kind: 'public' })
  }
  return (
    <>
      <Field
        label="Prices and models of"
        id="access-project"
        value={shown?.id ?? ''}
        options={viewer.projects ? options : [{ value: '', label: 'the public catalog' }, ...options]}
        attributes={{ onFocus: () => setWanted(true) }}
        onChange={pick}
      />
      {all.error && <p class="warning">{all.error.message}</p>}
    </>
  )
}

/** Projects of a workspace that cannot be read are left out. */
async function readProjects(): Promise<readonly ViewedProject[]> {
  const workspaces = await callForAll('listWorkspaces', {})
  const lists = workspaces.map(async ({ id, name: workspace }) => {
    const projects = await callForAll('listProjects', { id }).catch(() => [])
    return projects.map((project) => ({ id: project.id, name: project.name, workspace }))
  })
  return (await Promise.all(lists)).flat()
}
