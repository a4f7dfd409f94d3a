/** @jsxImportSource preact */
// The projects with what each may call now and which limits hold for it.

import type { CatalogEntry } from '../../../catalog/entry.ts'
import { CopyButton } from '../../shell/copy-button.tsx'
import { projectText } from '../manage/declared-text.ts'
import { LimitsList } from '../manage/limits-list.tsx'
import type { Key, Project, Workspace } from '../manage/things.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Empty } from '../parts/resource-view.tsx'
import { allowedEntries } from './allowed-entries.ts'

export type ProjectAct = 'models' | 'limits'

export interface ProjectsTableProps {
  readonly workspace: Workspace
  readonly projects: readonly Project[]
  /** Of all projects. */
  readonly keys: readonly Key[]
  readonly entries: readonly CatalogEntry[]
  onAct(act: ProjectAct, project: Project): void
}

interface Row extends Omit<ProjectsTableProps, 'projects' | 'onAct'> {
  readonly project: Project
  onAct(act: ProjectAct): void
}

export function ProjectsTable({ projects, onAct, ...shared }: ProjectsTableProps) {
  if (projects.length === 0) {
    return (
      <Empty title="No project yet">
        <p>Press “New project”. A name is enough: it may call every model until you narrow it.</p>
      </Empty>
    )
  }
  const rows = projects.map((project) => ({
    ...shared,
    project,
    keys: shared.keys.filter(({ project_id }) => project_id === project.id),
    onAct: (act: ProjectAct) => onAct(act, project),
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
    label: 'May call',
    show: ({ project: { models }, entries }) => (
      <>
        {models === null ? 'every model' : `${allowedEntries(models, entries).length} of ${entries.length} models`}
        {models !== null && (
          <small class="row-note">
            <code>{models.join(', ') || 'nothing is allowed'}</code>
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
    const text = projectText(
      workspace,
      project,
      keys.filter(({ managed_by }) => managed_by === 'file'),
    )
    return <CopyButton text={text} what={`YAML of ${name}`} label="from a file, copy YAML" />
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
