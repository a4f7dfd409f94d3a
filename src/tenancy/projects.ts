// Projects: they group keys and say which models those may see. What writes runs inside a transaction of the caller's
// and leaves an audit entry in it.

import type { Failure } from '../kernel/failure.ts'
import { isId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { type Sql, timeFromSql } from '../store/sql.ts'
import { checkModels, modelsFromSql, modelsToSql } from './allowlist.ts'
import { type Act, appendAudit } from './audit.ts'
import { checkName } from './check-name.ts'
import { type Limits, limitsFromSql } from './limits.ts'
import { type ManagedBy, managerOf, refuseChange } from './managed.ts'
import { afterCursor, type Page, type PageQuery, pageOf, rowsWanted } from './page.ts'
import { insertProject } from './records.ts'
import { getWorkspace } from './workspaces.ts'

export interface Project {
  readonly id: ProjectId
  readonly workspaceId: WorkspaceId
  readonly name: string
  /** Ids and `prefix/*` patterns; undefined = every model. */
  readonly models: readonly string[] | undefined
  readonly createdAt: number
  readonly limits: Limits
  readonly managedBy: ManagedBy
}

interface ProjectRow {
  readonly id: ProjectId
  readonly workspace_id: WorkspaceId
  readonly name: string
  readonly models: string | null
  readonly created_at: bigint
  readonly limits: string | null
  readonly managed_by: ManagedBy
}

export interface ProjectWish {
  readonly workspaceId: string
  readonly name: string
  readonly models?: readonly string[] | undefined
}

/** `not found`: the workspace. */
export async function createProject(sql: Sql, wish: ProjectWish, act: Act): Promise<Project | 'not found' | Failure> {
  const { name, models } = wish
  const wrong = checkName(name) ?? checkModels(models ?? [])
  if (wrong) return wrong
  const workspace = await getWorkspace(sql, wish.workspaceId)
  if (workspace === 'not found') return workspace
  const managedBy = managerOf(act)
  const id = await insertProject(sql, { workspaceId: workspace.id, name, models, createdAt: act.at, managedBy })
  const details = { workspace: workspace.id, models: models ?? null }
  await appendAudit(sql, { ...act, action: 'project.create', object: id, details })
  return { id, workspaceId: workspace.id, name, models, createdAt: act.at, limits: {}, managedBy }
}

export interface ProjectChange {
  readonly name?: string | undefined
  /** The whole new list; null = every model. */
  readonly models?: readonly string[] | null | undefined
}

/** What is left out stays as it is. */
export async function updateProject(
  sql: Sql,
  id: string,
  { name, models }: ProjectChange,
  act: Act,
): Promise<Project | 'not found' | Failure> {
  const wrong = (name === undefined ? undefined : checkName(name)) ?? checkModels(models ?? [])
  if (wrong) return wrong
  const project = await getProject(sql, id)
  if (project === 'not found' || (name === undefined && models === undefined)) return project
  const refusal = refuseChange('project', project, act)
  if (refusal) return refusal
  if (name !== undefined) await sql`UPDATE projects SET name = ${name} WHERE id = ${project.id}`
  if (models !== undefined) {
    await sql`UPDATE projects SET models = ${modelsToSql(models ?? undefined)} WHERE id = ${project.id}`
  }
  const details = { ...(name === undefined ? {} : { renamed: true }), ...(models === undefined ? {} : { models }) }
  await appendAudit(sql, { ...act, action: 'project.update', object: project.id, details })
  return await getProject(sql, project.id)
}

export async function listProjects(sql: Sql, workspaceId: WorkspaceId, page: PageQuery): Promise<Page<Project>> {
  const rows = await sql<ProjectRow>`SELECT * FROM projects WHERE workspace_id = ${workspaceId}
    AND id > ${afterCursor(page)} ORDER BY id LIMIT ${rowsWanted(page)}`
  return pageOf(rows.map(projectFromRow), page)
}

export async function getProject(sql: Sql, id: string): Promise<Project | 'not found'> {
  if (!isId('prj', id)) return 'not found'
  const [row] = await sql<ProjectRow>`SELECT * FROM projects WHERE id = ${id}`
  return row ? projectFromRow(row) : 'not found'
}

function projectFromRow(row: ProjectRow): Project {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    models: modelsFromSql(row.models),
    createdAt: timeFromSql(row.created_at),
    limits: limitsFromSql(row.limits),
    managedBy: row.managed_by,
  }
}
