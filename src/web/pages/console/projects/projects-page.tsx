/** @jsxImportSource preact */
// Projects of a workspace: the models each may call, and the limits of projects and workspace.

import { useState } from 'preact/hooks'
import type { CatalogEntry } from '../../../catalog/entry.ts'
import { withOwnKeyModels } from '../../../catalog/usable-models.ts'
import { CopyButton } from '../../components.tsx'
import { ApiError, callApi, callForAll, callTogether } from '../api-client.ts'
import type { Key, ListAnswer, Project, Workspace } from '../api-types.ts'
import { type Column, DataTable, Empty, QueryView, WorkspacePage } from '../components.tsx'
import { useQuery } from '../hooks.ts'
import { LimitsList, LimitsSheet } from '../limits.tsx'
import { type OwnKeyModels, projectYaml, readOwnKeyModels } from '../workspace-data.ts'
import { allowedEntries, ProjectSheet } from './project-sheet.tsx'

const intro = 'A project defines which models its keys may call. Changes apply from the next request.'

export function ProjectsPage() {
  return (
    <WorkspacePage title="Projects & limits" intro={intro}>
      {(workspaceId) => <ProjectsView workspaceId={workspaceId} />}
    </WorkspacePage>
  )
}

interface ProjectsData {
  readonly workspace: Workspace
  readonly projects: readonly Project[]
  /** Of all projects. */
  readonly keys: readonly Key[]
  readonly entries: readonly CatalogEntry[]
  /** Whether the entries include all models that own keys unlock. */
  readonly isComplete: boolean
}

async function readProjects(workspaceId: string): Promise<ProjectsData | ApiError> {
  const answers = await callTogether<
    [Workspace, readonly Project[], readonly Key[], ListAnswer<CatalogEntry>, OwnKeyModels]
  >(
    callApi(`/api/workspaces/${workspaceId}`),
    callForAll(`/api/workspaces/${workspaceId}/projects`),
    callForAll(`/api/keys?workspace_id=${workspaceId}`),
    callApi('/api/catalog'),
    readOwnKeyModels(workspaceId),
  )
  if (answers instanceof ApiError) return answers
  const [workspace, projects, keys, { data }, { models, isComplete }] = answers
  return { workspace, projects, keys, entries: withOwnKeyModels(data, models), isComplete }
}

type OpenSheet =
  | { readonly sheet: 'new' | 'workspace limits' }
  | { readonly sheet: ProjectAction; readonly project: Project }

type ProjectAction = 'models' | 'limits'

function ProjectsView({ workspaceId }: { readonly workspaceId: string }) {
  const [open, setOpen] = useState<OpenSheet | undefined>(undefined)
  const query = useQuery(workspaceId, { load: () => readProjects(workspaceId) })
  const close = () => setOpen(undefined)
  const sheetEvents = {
    onClose: close,
    onSaved() {
      close()
      query.reload()
    },
    onUndone: query.reload,
  }
  return (
    <QueryView what="projects" query={query}>
      {(data) => (
        <>
          <WorkspaceLimits workspace={data.workspace} onChange={() => setOpen({ sheet: 'workspace limits' })} />
          <header class="console-head">
            <h2>Projects</h2>
            <button type="button" class="button small" onClick={() => setOpen({ sheet: 'new' })}>
              New project
            </button>
          </header>
          <ProjectsTable data={data} onAct={(sheet, project) => setOpen({ sheet, project })} />
          {(open?.sheet === 'new' || open?.sheet === 'models') && (
            <ProjectSheet
              workspaceId={workspaceId}
              project={open.sheet === 'models' ? open.project : undefined}
              entries={data.entries}
              isComplete={data.isComplete}
              {...sheetEvents}
            />
          )}
          {open?.sheet === 'limits' && (
            <LimitsSheet
              of={`project ${open.project.name}`}
              path={`/api/projects/${open.project.id}/limits`}
              limits={open.project.limits}
              {...sheetEvents}
            />
          )}
          {open?.sheet === 'workspace limits' && (
            <LimitsSheet
              of={`workspace ${data.workspace.name}`}
              path={`/api/workspaces/${workspaceId}/limits`}
              limits={data.workspace.limits}
              {...sheetEvents}
            />
          )}
        </>
      )}
    </QueryView>
  )
}

function WorkspaceLimits({ workspace, onChange }: { readonly workspace: Workspace; onChange(): void }) {
  return (
    <section class="card" aria-label="Workspace limits">
      <div class="console-head">
        <h2>Limits of workspace {workspace.name}</h2>
        {workspace.managed_by === 'api' ? (
          <button type="button" class="button quiet small" onClick={onChange}>
            Change
          </button>
        ) : (
          <span class="hint">Managed by a file: change it there.</span>
        )}
      </div>
      <LimitsList holders={[{ who: 'the workspace', limits: workspace.limits }]} />
      <p class="hint">They apply to all projects and keys together. Days and months are in UTC.</p>
    </section>
  )
}

interface Row extends ProjectsData {
  readonly project: Project
  onAct(action: ProjectAction): void
}

interface ProjectsTableProps {
  readonly data: ProjectsData
  onAct(action: ProjectAction, project: Project): void
}

function ProjectsTable({ data, onAct }: ProjectsTableProps) {
  if (data.projects.length === 0) {
    return (
      <Empty title="No projects yet">
        <p>Choose “New project” and enter a name. A project may call all models until you restrict it.</p>
      </Empty>
    )
  }
  const rows = data.projects.map((project) => ({
    ...data,
    project,
    keys: data.keys.filter(({ project_id }) => project_id === project.id),
    onAct: (action: ProjectAction) => onAct(action, project),
  }))
  return <DataTable caption="Projects" columns={columns} rows={rows} keyOf={({ project }) => project.id} />
}

const columns: readonly Column<Row>[] = [
  {
    label: 'Project',
    show: ({ project, keys }) => {
      const active = keys.filter(({ status }) => status === 'active').length
      return (
        <>
          <span class="row-name">{project.name}</span>
          <small>{active === 1 ? '1 active key' : `${active} active keys`}</small>
        </>
      )
    },
  },
  {
    label: 'Models',
    show: ({ project: { models }, entries }) => (
      <>
        {models === null ? 'all models' : `${allowedEntries(models, entries).length} of ${entries.length} models`}
        {models !== null && (
          <small class="row-note">
            <code>{models.join(', ') || 'none allowed'}</code>
          </small>
        )}
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
  { label: 'Actions', show: (row) => <Actions {...row} /> },
]

function Actions({ workspace, project, keys, onAct }: Row) {
  const { name } = project
  if (project.managed_by === 'file') {
    const fileKeys = keys.filter(({ managed_by }) => managed_by === 'file')
    return (
      <CopyButton
        text={projectYaml(workspace, project, fileKeys)}
        what={`YAML of ${name}`}
        label="From file, copy YAML"
      />
    )
  }
  return (
    <div class="row-actions">
      <button type="button" class="button quiet small" aria-label={`Models of ${name}`} onClick={() => onAct('models')}>
        Models
      </button>
      <button type="button" class="button quiet small" aria-label={`Limits of ${name}`} onClick={() => onAct('limits')}>
        Limits
      </button>
    </div>
  )
}
