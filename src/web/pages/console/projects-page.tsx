/** @jsxImportSource preact */
// Projects of a workspace: the models each may call, and the limits of projects and workspace.

import { useState } from 'preact/hooks'
import type { CatalogEntry } from '../../catalog/entry.ts'
import { countOf } from '../../catalog/format.ts'
import { withOwnKeyModels } from '../../catalog/usable-models.ts'
import { ApiError, callApi, callForAll, callTogether, type Key, type Project, type Workspace } from '../api.ts'
import { Button, CopyButton } from '../components.tsx'
import { useQuery } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { Card, Empty, QueryView, Section, WorkspacePage } from './components.tsx'
import { LimitsList, LimitsSheet } from './limits.tsx'
import { allowedEntries, ProjectSheet } from './project-sheet.tsx'
import { projectYaml, readOwnKeyModels } from './workspace-data.ts'

const intro = 'A project defines which models its keys may call. Changes apply from the next request.'

export function ProjectsPage() {
  return (
    <WorkspacePage title="Projects & limits" intro={intro}>
      {(workspaceId) => <ProjectsView workspaceId={workspaceId} />}
    </WorkspacePage>
  )
}

interface Row {
  readonly project: Project
  readonly workspace: Workspace
  readonly keys: readonly Key[]
  readonly entries: readonly CatalogEntry[]
}

interface ProjectsData {
  readonly workspace: Workspace
  readonly rows: readonly Row[]
  readonly entries: readonly CatalogEntry[]
  /** Whether the entries include all models that own keys unlock. */
  readonly isComplete: boolean
}

async function readProjects(id: string): Promise<ProjectsData | ApiError> {
  const answers = await callTogether(
    callApi('getWorkspace', { id }),
    callForAll('listProjects', { id }),
    callForAll('listKeys', { query: { workspace_id: id } }),
    callApi('getCatalog', {}),
    readOwnKeyModels(id),
  )
  if (answers instanceof ApiError) return answers
  const [workspace, projects, allKeys, { data }, { models, isComplete }] = answers
  const entries = withOwnKeyModels(data, models)
  const rows = projects.map((project) => {
    const keys = allKeys.filter(({ project_id }) => project_id === project.id)
    return { project, workspace, keys, entries }
  })
  return { workspace, rows, entries, isComplete }
}

type OpenSheet =
  | { readonly sheet: 'new' | 'workspace limits' }
  | { readonly sheet: 'models' | 'limits'; readonly project: Project }

function ProjectsView({ workspaceId }: { readonly workspaceId: string }) {
  const [open, setOpen] = useState<OpenSheet | undefined>(undefined)
  const query = useQuery(workspaceId, () => readProjects(workspaceId))
  const onClose = () => setOpen(undefined)
  const onSaved = () => {
    onClose()
    query.reload()
  }
  const sheetEvents = { onClose, onSaved, onUndone: query.reload }
  const actions = { label: 'Actions', show: (row: Row) => <Actions {...row} onAct={setOpen} /> }
  return (
    <QueryView what="projects" query={query}>
      {({ workspace, rows, entries, isComplete }) => (
        <>
          <Card
            title={`Limits of workspace ${workspace.name}`}
            action={
              workspace.managed_by === 'api' ? (
                <Button look="quiet small" onClick={() => setOpen({ sheet: 'workspace limits' })}>
                  Change
                </Button>
              ) : (
                <span class="hint">Managed by a file: change it there.</span>
              )
            }
          >
            <LimitsList holders={[{ who: 'the workspace', limits: workspace.limits }]} />
            <p class="hint">They apply to all projects and keys together. Days and months are in UTC.</p>
          </Card>
          <Section
            title="Projects"
            action={
              <Button look="small" onClick={() => setOpen({ sheet: 'new' })}>
                New project
              </Button>
            }
          >
            {rows.length === 0 ? (
              <Empty title="No projects yet">
                <p>Choose “New project” and enter a name. A project may call all models until you restrict it.</p>
              </Empty>
            ) : (
              <DataTable
                caption="Projects"
                columns={[...columns, actions]}
                rows={rows}
                keyOf={({ project }) => project.id}
              />
            )}
          </Section>
          {(open?.sheet === 'new' || open?.sheet === 'models') && (
            <ProjectSheet
              workspaceId={workspaceId}
              project={open.sheet === 'models' ? open.project : undefined}
              entries={entries}
              isComplete={isComplete}
              {...sheetEvents}
            />
          )}
          {open?.sheet === 'limits' && <LimitsSheet kind="project" holder={open.project} {...sheetEvents} />}
          {open?.sheet === 'workspace limits' && <LimitsSheet kind="workspace" holder={workspace} {...sheetEvents} />}
        </>
      )}
    </QueryView>
  )
}

const columns: readonly Column<Row>[] = [
  {
    label: 'Project',
    show: ({ project, keys }) => (
      <>
        <span class="row-name">{project.name}</span>
        <small>{countOf(keys.filter(({ status }) => status === 'active').length, 'active key')}</small>
      </>
    ),
  },
  {
    label: 'Models',
    show: ({ project: { models }, entries }) =>
      models === null ? (
        'all models'
      ) : (
        <>
          {allowedEntries(models, entries).length} of {entries.length} models
          <small class="row-note">
            <code>{models.join(', ') || 'none allowed'}</code>
          </small>
        </>
      ),
  },
  {
    label: 'Limits',
    show: ({ project, workspace }) => (
      <LimitsList
        holders={[
          { who: 'this project', limits: project.limits },
          { who: 'the workspace', limits: workspace.limits },
        ]}
      />
    ),
  },
]

function Actions({ workspace, project, keys, onAct }: Row & { onAct(open: OpenSheet): void }) {
  const { name } = project
  if (project.managed_by === 'file') {
    const fileKeys = keys.filter(({ managed_by }) => managed_by === 'file')
    const yaml = projectYaml(workspace, project, fileKeys)
    return <CopyButton text={yaml} what={`YAML of ${name}`} label="From file, copy YAML" />
  }
  return (
    <div class="row-actions">
      {(['Models', 'Limits'] as const).map((label) => (
        <Button
          key={label}
          look="quiet small"
          aria-label={`${label} of ${name}`}
          onClick={() => onAct({ sheet: label === 'Models' ? 'models' : 'limits', project })}
        >
          {label}
        </Button>
      ))}
    </div>
  )
}
