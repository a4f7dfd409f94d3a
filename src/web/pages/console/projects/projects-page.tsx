/** @jsxImportSource preact */
// Projects: which models each may call, and within which limits; and the limits of the workspace above them.

import { useState } from 'preact/hooks'
import type { CatalogEntry } from '../../../catalog/entry.ts'
import { withOwnModels } from '../../../catalog/seen-entries.ts'
import { callForAll, together } from '../manage/call-all.ts'
import { LimitsList } from '../manage/limits-list.tsx'
import { LimitsSheet } from '../manage/limits-sheet.tsx'
import { LoadedView } from '../manage/loaded-view.tsx'
import { OfWorkspace } from '../manage/of-workspace.tsx'
import { type OwnModels, readOwnModels } from '../manage/own-models.ts'
import type { Key, Project, Workspace } from '../manage/things.ts'
import { useLoad } from '../manage/use-load.ts'
import { callApi, Refusal } from '../parts/call-api.ts'
import type { ListAnswer } from '../parts/use-resource.ts'
import { ProjectSheet } from './project-sheet.tsx'
import { ProjectsTable } from './projects-table.tsx'

const lede = 'A project says which models its keys may call. Every change acts on the next request.'

export function ProjectsPage() {
  return (
    <OfWorkspace title="Projects & limits" lede={lede}>
      {(workspaceId) => <ProjectsView workspaceId={workspaceId} />}
    </OfWorkspace>
  )
}

type Open =
  | { readonly sheet: 'new' | 'workspace limits' }
  | { readonly sheet: 'models' | 'limits'; readonly project: Project }

function ProjectsView({ workspaceId }: { readonly workspaceId: string }) {
  const [open, setOpen] = useState<Open | undefined>(undefined)
  const loaded = useLoad(workspaceId, () => readProjects(workspaceId))
  const close = () => setOpen(undefined)
  const closeAndLoad = () => {
    close()
    loaded.again()
  }
  return (
    <LoadedView what="the projects" loaded={loaded}>
      {({ workspace, projects, keys, entries, isWhole }) => (
        <>
          <WorkspaceLimits workspace={workspace} onChange={() => setOpen({ sheet: 'workspace limits' })} />
          <header class="console-head">
            <h2>Projects</h2>
            <button type="button" class="button small" onClick={() => setOpen({ sheet: 'new' })}>
              New project
            </button>
          </header>
          <ProjectsTable
            workspace={workspace}
            projects={projects}
            keys={keys}
            entries={entries}
            onAct={(sheet, project) => setOpen({ sheet, project })}
          />
          {(open?.sheet === 'new' || open?.sheet === 'models') && (
            <ProjectSheet
              workspaceId={workspaceId}
              project={open.sheet === 'models' ? open.project : undefined}
              entries={entries}
              isWhole={isWhole}
              onClose={close}
              onSaved={closeAndLoad}
              onUndone={loaded.again}
            />
          )}
          {open?.sheet === 'limits' && (
            <LimitsSheet
              whose={`project ${open.project.name}`}
              path={`/api/projects/${open.project.id}/limits`}
              limits={open.project.limits}
              onClose={close}
              onSaved={closeAndLoad}
              onUndone={loaded.again}
            />
          )}
          {open?.sheet === 'workspace limits' && (
            <LimitsSheet
              whose={`workspace ${workspace.name}`}
              path={`/api/workspaces/${workspaceId}/limits`}
              limits={workspace.limits}
              onClose={close}
              onSaved={closeAndLoad}
              onUndone={loaded.again}
            />
          )}
        </>
      )}
    </LoadedView>
  )
}

interface WorkspaceLimitsProps {
  readonly workspace: Workspace
  onChange(): void
}

function WorkspaceLimits({ workspace, onChange }: WorkspaceLimitsProps) {
  return (
    <section class="card" aria-label="Limits of the workspace">
      <div class="console-head">
        <h2>Limits of the workspace {workspace.name}</h2>
        {workspace.managed_by === 'api' ? (
          <button type="button" class="button quiet small" onClick={onChange}>
            Change
          </button>
        ) : (
          <span class="hint">Managed by a file: change it there.</span>
        )}
      </div>
      <LimitsList holders={[{ who: 'the workspace', limits: workspace.limits }]} />
      <p class="hint">They hold for all its projects and keys together. Days and months are those of UTC.</p>
    </section>
  )
}

type Answers = [Workspace, readonly Project[], readonly Key[], ListAnswer<CatalogEntry>, OwnModels]

async function readProjects(workspaceId: string) {
  const answers = await together<Answers>(
    callApi(`/api/workspaces/${workspaceId}`),
    callForAll(`/api/workspaces/${workspaceId}/projects`),
    callForAll(`/api/keys?workspace_id=${workspaceId}`),
    callApi('/api/catalog'),
    readOwnModels(workspaceId),
  )
  if (answers instanceof Refusal) return answers
  const [workspace, projects, keys, { data }, { models, isWhole }] = answers
  return { workspace, projects, keys, entries: withOwnModels(data, models), isWhole }
}
