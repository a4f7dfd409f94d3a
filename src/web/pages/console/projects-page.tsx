/** @jsxImportSource preact */
// Projects of a workspace: the models each may call, and the limits of projects and workspace; and the page of one project.

import { useState } from 'preact/hooks'
import { allowsModel, createAllowlist, parsePattern } from '../../../tenancy/allowlist.ts'
import { type CatalogEntry, withOwnKeyModels } from '../../catalog/entry.ts'
import { countOf } from '../../catalog/format.ts'
import { type ConsoleData, sectionPath, type WorkspacesData } from '../../page-data.ts'
import { type AnswerOf, callApi, callForAll, type Key, type Project, type Workspace } from '../api.ts'
import { Button, CopyButton, ErrorNotice, Facts } from '../components.tsx'
import { Checkbox, Field, pairLines } from '../form.tsx'
import { useApi, useQuery, useSubmit, useUniqueId } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import {
  type Action,
  Actions,
  Card,
  DetailHead,
  emptyState,
  LongTable,
  QueryView,
  RowMenu,
  Section,
} from './components.tsx'
import { Moment, useMay, useViewer } from './context.tsx'
import { type Row as KeyRow, keyColumns, keyPath, readKeys } from './keys-page.tsx'
import { LimitsDialog, LimitsList } from './limits.tsx'
import { navigate, useConsolePath, useTitle } from './navigation.ts'
import { FormDialog, useOverlay } from './overlay.tsx'
import { RecentRequests, UsageCard } from './usage-card.tsx'
import { projectYaml, readOwnKeyModels, readProjectsOf } from './workspace-data.ts'

interface Row {
  readonly project: Project
  readonly workspace: Workspace
  readonly keys: readonly Key[]
  readonly entries: readonly CatalogEntry[]
}

interface ProjectsData {
  readonly workspaces: readonly Workspace[]
  readonly rows: readonly Row[]
  readonly entries: readonly CatalogEntry[]
  /** Whether the entries include all models that own keys unlock. */
  readonly isComplete: boolean
}

/** Without an id: of all workspaces. */
async function readProjects(id: string | undefined, mayReadCredentials: boolean): Promise<ProjectsData> {
  const [{ workspaces, projects }, allKeys, { data }, { models, isComplete }] = await Promise.all([
    readProjectsOf(id),
    callForAll('listKeys', { query: { workspace_id: id } }),
    callApi('getCatalog', {}),
    mayReadCredentials && id !== undefined ? readOwnKeyModels(id) : { models: [], isComplete: false },
  ])
  const entries = withOwnKeyModels(data, models)
  const rows = projects.flatMap((project) => {
    const workspace = workspaces.find((each) => each.id === project.workspace_id)
    const keys = allKeys.filter(({ project_id }) => project_id === project.id)
    return workspace ? [{ project, workspace, keys, entries }] : []
  })
  return { workspaces, rows, entries, isComplete }
}

/** What the viewer may do with a project. */
function useProjectActions(
  { entries, isComplete }: Pick<ProjectsData, 'entries' | 'isComplete'>,
  onDone: () => void,
  onDeleted = onDone,
) {
  const { open, ask } = useOverlay()
  const may = useMay()
  return ({ project, keys }: Row): readonly Action[] => {
    const { id, name, workspace_id: workspaceId } = project
    const isFixed = project.managed_by === 'file' || project.archived_at !== null
    if (isFixed || !may('updateProject', workspaceId)) return []
    const working = keys.filter(({ status }) => status === 'active').length
    return [
      {
        label: 'Models',
        name: `Models of ${name}`,
        run: () => open(<ProjectDialog {...{ workspaceId, project, entries, isComplete, onDone }} />),
      },
      {
        label: 'Limits',
        name: `Limits of ${name}`,
        run: () => open(<LimitsDialog kind="project" holder={project} onDone={onDone} />),
      },
      {
        label: 'Delete',
        name: `Delete ${name}`,
        look: 'danger',
        run: () =>
          ask({
            title: `Delete ${name}?`,
            intro: `All requests with its ${countOf(working, 'active key')} will be refused. This cannot be undone. Its requests and charges stay in usage and statements.`,
            label: 'Delete project',
            cancelLabel: 'Keep project',
            send: () => callApi('deleteProject', { id }),
            onDone: onDeleted,
          }),
      },
    ]
  }
}

export function ProjectsView({ workspaceId }: WorkspacesData) {
  const may = useMay()
  const query = useQuery(workspaceId ?? 'all', () => readProjects(workspaceId, may('listCredentials', workspaceId)))
  return (
    <QueryView what="projects" query={query}>
      {(data) => <ProjectList {...{ data, workspaceId, onDone: query.reload }} />}
    </QueryView>
  )
}

interface ProjectListProps extends Pick<WorkspacesData, 'workspaceId'> {
  readonly data: ProjectsData
  onDone(): void
}

function ProjectList({ data, workspaceId, onDone }: ProjectListProps) {
  const { workspaces, rows, entries, isComplete } = data
  const may = useMay()
  const { open } = useOverlay()
  const actionsOf = useProjectActions(data, onDone)
  const mayChange = may('updateProject', workspaceId)
  const create = (id: string) =>
    open(<ProjectDialog {...{ workspaceId: id, project: undefined, entries, isComplete, onDone }} />)
  const actions: Column<Row> = {
    label: 'Actions',
    show: (row) =>
      row.project.managed_by === 'file' ? (
        <FileCopy {...row} />
      ) : (
        <RowMenu name={row.project.name} actions={actionsOf(row)} />
      ),
  }
  return (
    <>
      {workspaceId !== undefined &&
        workspaces.map((workspace) => <WorkspaceLimits key={workspace.id} workspace={workspace} onDone={onDone} />)}
      <Section
        title="Projects"
        action={
          mayChange &&
          workspaceId !== undefined && { label: 'New project', look: 'primary', run: () => create(workspaceId) }
        }
      >
        <DataTable
          caption="Projects"
          columns={[
            ...columns.slice(0, 1),
            ...(workspaceId === undefined ? [workspaceColumn] : []),
            ...columns.slice(1),
            ...(mayChange ? [actions] : []),
          ]}
          rows={rows.filter(({ project }) => project.archived_at === null)}
          keyOf={({ project }) => project.id}
          hrefOf={({ project }) => `${sectionPath('projects', project.workspace_id)}/${project.id}`}
          empty={emptyState(
            'No projects yet',
            'Choose “New project” and enter a name. A project may call all models until you restrict it.',
          )}
        />
      </Section>
    </>
  )
}

const workspaceColumn: Column<Row> = { label: 'Workspace', show: ({ workspace }) => workspace.name }

function WorkspaceLimits({ workspace, onDone }: { readonly workspace: Workspace; onDone(): void }) {
  const may = useMay()
  const { isOperator } = useViewer()
  const { open } = useOverlay()
  return (
    <Card
      title={`Limits of workspace ${workspace.name}`}
      action={
        !isOperator || !may('putWorkspaceLimits', workspace.id) ? (
          <span class="hint">Set by the operator.</span>
        ) : workspace.managed_by === 'api' ? (
          {
            label: 'Change',
            run: () => open(<LimitsDialog kind="workspace" holder={workspace} onDone={onDone} />),
          }
        ) : (
          <span class="hint">Managed by a file: change it there.</span>
        )
      }
    >
      <LimitsList holders={[{ who: 'the workspace', limits: workspace.limits, spend: workspace.spend }]} />
      <p class="hint">They apply to all projects and keys together. Days and months are in UTC.</p>
    </Card>
  )
}

/** One project: the models its keys may call, its limits, keys, usage and newest requests. */
export function ProjectView({ subject: id }: ConsoleData) {
  const may = useMay()
  const query = useQuery(id, async () => {
    const { workspace_id: workspaceId } = await callApi('getProject', { id })
    const [data, keys] = await Promise.all([
      readProjects(workspaceId, may('listCredentials', workspaceId)),
      readKeys(workspaceId),
    ])
    return { data, keys: keys.rows.filter(({ apiKey }) => apiKey.project_id === id) }
  })
  return (
    <QueryView what="the project" query={query}>
      {({ data, keys }) => {
        const row = data.rows.find(({ project }) => project.id === id)
        return row && <ProjectDetails row={row} data={data} keys={keys} onDone={query.reload} />
      }}
    </QueryView>
  )
}

interface ProjectDetailsProps {
  readonly row: Row
  readonly data: ProjectsData
  readonly keys: readonly KeyRow[]
  onDone(): void
}

const keyLabels = ['Key', 'Status', 'Last used', 'This month']
const shownKeyColumns = keyColumns.filter(({ label }) => keyLabels.includes(label))

function ProjectDetails({ row, data, keys, onDone }: ProjectDetailsProps) {
  const { project, workspace, entries } = row
  const to = useConsolePath()
  useTitle(project.name)
  const actions = useProjectActions(data, onDone, () => navigate(to('projects')))(row)
  const aliases = Object.entries(project.aliases)
  return (
    <>
      <DetailHead
        trail={[['Projects & limits', to('projects')]]}
        title={project.name}
        action={
          <span class="row">
            {project.managed_by === 'file' ? <FileCopy {...row} /> : <Actions actions={actions} />}
          </span>
        }
      />
      <Facts
        facts={[
          ['Models', modelsText(row)],
          [
            'Allowlist',
            project.models === null ? 'all models' : <code key="allowlist">{project.models.join(', ') || 'none'}</code>,
          ],
          [
            'Aliases',
            aliases.length === 0 ? (
              'none'
            ) : (
              <ul key="aliases" class="plain">
                {aliases.map(([name, model]) => (
                  <li key={name}>
                    <code>
                      {name} → {model}
                    </code>
                  </li>
                ))}
              </ul>
            ),
          ],
          ['Created', <Moment key="created" at={project.created_at} isDay />],
          ...(project.archived_at === null
            ? []
            : ([['Deleted', <Moment key="deleted" at={project.archived_at} isDay />]] as const)),
        ]}
      />
      {project.models !== null && (
        <details>
          <summary>Allowed models in the catalog</summary>
          <ul class="plain model-ids row">
            {allowedEntries(project.models, entries).map(({ id }) => (
              <li key={id}>
                <code>{id}</code>
              </li>
            ))}
          </ul>
        </details>
      )}
      <Card title="Limits">
        <LimitsList holders={limitHolders(project, workspace)} />
        <p class="hint">They apply to all keys of the project together. Days and months are in UTC.</p>
      </Card>
      <ContentCard project={project} onDone={onDone} />
      <Card title="API keys" action={<a href={to('keys')}>All keys</a>}>
        <LongTable
          what="keys"
          caption="Keys of the project"
          columns={shownKeyColumns}
          rows={keys}
          keyOf={({ apiKey }) => apiKey.id}
          hrefOf={({ apiKey }) => keyPath(apiKey)}
          empty={<p class="muted">No keys yet.</p>}
        />
      </Card>
      <UsageCard kind="project" id={project.id} />
      <RecentRequests kind="project" id={project.id} />
    </>
  )
}

/** Where prompts and answers go beside the providers. */
function ContentCard({ project, onDone }: { readonly project: Project; onDone(): void }) {
  const { id, workspace_id: workspaceId, exports_content: isOn } = project
  const may = useMay()
  const { isBusy, error, run } = useSubmit()
  const { offerUndo } = useOverlay()
  const query = useApi('getProjectContent', { id })
  const patch = (exports_content: boolean) => callApi('updateProject', { id, body: { exports_content } })
  const reload = () => {
    query.reload()
    onDone()
  }
  const change = (turnsOn: boolean) =>
    run(
      () => patch(turnsOn),
      () => {
        reload()
        const text = `Content export of ${project.name} is now ${turnsOn ? 'on' : 'off'}.`
        offerUndo({ text, undo: () => patch(!turnsOn), onUndone: reload })
      },
    )
  const isFixed = project.managed_by === 'file' || project.archived_at !== null || !may('updateProject', workspaceId)
  return (
    <Card title="Policies and content export">
      <QueryView what="where content goes" query={query}>
        {({ policies, export: exported, has_collector: hasCollector }) => (
          <>
            <Facts
              facts={[
                [
                  'Policies',
                  policies.length === 0 ? (
                    'none'
                  ) : (
                    <ul key="policies" class="plain">
                      {policies.map((policy) => (
                        <li key={policy.id}>{policyText(policy)}</li>
                      ))}
                    </ul>
                  ),
                ],
                ['Content export', exported ? exportText(exported) : isOn ? 'on, but there is no collector' : 'off'],
              ]}
            />
            {(hasCollector || isOn) && (
              <Checkbox
                label="Send prompts and answers to the operator’s collector"
                isChecked={isOn}
                attributes={{ disabled: isBusy || isFixed }}
                onChange={change}
              />
            )}
            {error && <ErrorNotice error={error} />}
          </>
        )}
      </QueryView>
    </Card>
  )
}

type ProjectContent = AnswerOf<'getProjectContent'>

function policyText({ id, when, mode, on_failure, models }: ProjectContent['policies'][number]): string {
  const judges = when === 'both' ? 'requests and answers' : `${when}s`
  const does = mode === 'watch' ? 'watches' : 'can refuse'
  const of = models === null ? '' : ` of ${models.join(', ')}`
  return `${id}: ${does} ${judges}${of}${mode === 'watch' ? '' : `, fails ${on_failure}`}`
}

function exportText({ to, sample_percent, redact }: NonNullable<ProjectContent['export']>): string {
  const share = sample_percent === 100 ? 'all conversations' : `${sample_percent} % of conversations`
  return `on: ${share}, to ${to}, ${redact.length === 0 ? 'not redacted' : `without ${redact.join(', ')}`}`
}

/** Projects from a file are changed in the file. */
function FileCopy({ workspace, project, keys }: Row) {
  const fileKeys = keys.filter(({ managed_by }) => managed_by === 'file')
  const yaml = projectYaml(workspace, project, fileKeys)
  return <CopyButton text={yaml} what={`YAML of ${project.name}`} label="From file, copy YAML" />
}

/** Members see only the keys that they created. */
function KeyCount({ keys, workspace }: Row) {
  const { grants } = useViewer()
  const active = countOf(keys.filter(({ status }) => status === 'active').length, 'active key')
  const isMember = grants.some(({ workspaceId, role }) => workspaceId === workspace.id && role === 'member')
  return <>{isMember ? `${active} of yours` : active}</>
}

const columns: readonly Column<Row>[] = [
  {
    label: 'Project',
    show: ({ project }) => <span class="row-name">{project.name}</span>,
    note: (row) => <KeyCount {...row} />,
  },
  {
    label: 'Models',
    show: modelsText,
    note: ({ project: { models, aliases } }) => {
      const names = Object.entries(aliases).map((pair) => pair.join('='))
      const lines = [...(models === null ? [] : [models.join(', ') || 'none allowed']), ...names]
      return lines.length > 0 && <code>{lines.join(' · ')}</code>
    },
  },
  {
    label: 'Limits',
    show: ({ project, workspace }) => <LimitsList holders={limitHolders(project, workspace)} />,
  },
]

function modelsText({ project: { models }, entries }: Row): string {
  return models === null ? 'all models' : `${allowedEntries(models, entries).length} of ${entries.length} models`
}

function limitHolders(project: Project, workspace: Workspace) {
  return [
    { who: 'this project', limits: project.limits, spend: project.spend },
    { who: 'the workspace', limits: workspace.limits, spend: workspace.spend },
  ]
}

/** null = all models. */
type Allowlist = readonly string[] | null

/** The models that an allowlist allows, by the gateway's own rule. */
function allowedEntries(models: Allowlist, entries: readonly CatalogEntry[]): readonly CatalogEntry[] {
  if (models === null) return entries
  const lists = [createAllowlist(models)]
  return entries.filter(({ id }) => allowsModel(lists, id))
}

interface ProjectDialogProps extends Pick<ProjectsData, 'entries' | 'isComplete'> {
  readonly workspaceId: string
  /** undefined = a new one. */
  readonly project: Project | undefined
  onDone(): void
}

/** Creates a project, or changes its name, allowlist and aliases, with a preview of the models that its keys will see. */
function ProjectDialog({ workspaceId, project, entries, isComplete, onDone }: ProjectDialogProps) {
  const [models, setModels] = useState<Allowlist>(project?.models ?? null)
  const before = { name: project?.name ?? '', models: project?.models ?? null, aliases: project?.aliases ?? {} }
  const patch = ({ id }: Project, body: typeof before) => callApi('updateProject', { id, body })
  return (
    <FormDialog
      title={project ? `Models of ${project.name}` : 'New project'}
      label={project ? 'Save' : 'Create project'}
      initial={{ name: before.name, aliases: pairLines(before.aliases) }}
      rows={[
        { name: 'name', label: 'Name', kind: 'name', isRequired: true },
        {
          name: 'aliases',
          label: 'Further names of models',
          kind: 'pairs',
          hint: 'Name and model, one per line: gpt=openai/gpt-5.6. Requests of this project can use either.',
        },
      ]}
      content={models}
      send={async ({ name, aliases = {} }, options) => {
        const body = { name, models: models && [...models], aliases }
        return project ? await patch(project, body) : await callApi('createProject', { id: workspaceId, body }, options)
      }}
      onDone={onDone}
      {...(project && { undo: { text: `Project ${project.name} changed.`, undo: () => patch(project, before) } })}
    >
      {() => (
        <>
          <AllowlistPicker entries={entries} models={models} onChange={setModels} />
          <AllowlistPreview entries={entries} models={models} isComplete={isComplete} />
        </>
      )}
    </FormDialog>
  )
}

interface AllowlistPickerProps<Models extends Allowlist = Allowlist> extends Pick<ProjectsData, 'entries'> {
  readonly models: Models
  onChange(models: Models): void
}

function AllowlistPicker({ entries, models, onChange }: AllowlistPickerProps) {
  // Kept while "All models" is selected.
  const [picked, setPicked] = useState(models ?? [])
  const radio = { type: 'radio', name: useUniqueId() }
  const pick = (next: readonly string[]) => {
    setPicked(next)
    onChange(next)
  }
  return (
    <fieldset class="stack tight">
      <legend>Models</legend>
      <Checkbox
        label="All models, including future ones"
        attributes={radio}
        isChecked={models === null}
        onChange={() => onChange(null)}
      />
      <Checkbox label="Only these" attributes={radio} isChecked={models !== null} onChange={() => onChange(picked)} />
      {models !== null && <PatternList entries={entries} models={models} onChange={pick} />}
    </fieldset>
  )
}

/** Whole creators (`prefix/*`) and single models, found by typing. */
function PatternList({ entries, models, onChange }: AllowlistPickerProps<readonly string[]>) {
  const [search, setSearch] = useState('')
  const typed = search.trim()
  const offered = offeredPatterns(entries, models)
  const found = offered.filter((pattern) => pattern.toLowerCase().includes(typed.toLowerCase()))
  const canAdd = parsePattern(typed) !== undefined && !offered.includes(typed)
  const toggle = (pattern: string) =>
    onChange(models.includes(pattern) ? models.filter((each) => each !== pattern) : [...models, pattern])
  const add = () => {
    onChange([...models, typed])
    setSearch('')
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return
    // Enter must not submit the form, nor clear a search that adds nothing.
    event.preventDefault()
    if (canAdd) add()
  }
  return (
    <>
      <Field
        label="Search models and creators"
        value={search}
        attributes={{ type: 'search', onKeyDown }}
        onChange={setSearch}
      />
      {canAdd && (
        <p>
          <Button look="quiet small" onClick={add}>
            Allow <code>{typed}</code>, which is not in the catalog
          </Button>
        </p>
      )}
      <ul class="plain patterns inset">
        {found.map((pattern) => (
          <li key={pattern}>
            <Checkbox
              isChecked={models.includes(pattern)}
              onChange={() => toggle(pattern)}
              label={
                <>
                  <code>{pattern}</code> {pattern.endsWith('/*') && <small>all, including future ones</small>}
                </>
              }
            />
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

interface AllowlistPreviewProps extends Pick<ProjectsData, 'entries' | 'isComplete'> {
  readonly models: Allowlist
}

/** The models exactly as /v1/models will list them for the project's keys. */
function AllowlistPreview({ entries, models, isComplete }: AllowlistPreviewProps) {
  const callable = entries.filter((entry) => entry.callable)
  const allowed = allowedEntries(models, callable)
  return (
    <section class="preview inset stack tight" aria-label="Preview">
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
      <ul class="plain model-ids row" tabIndex={0} aria-label="Models its keys will see">
        {allowed.map(({ id }) => (
          <li key={id}>
            <code>{id}</code>
          </li>
        ))}
      </ul>
    </section>
  )
}
