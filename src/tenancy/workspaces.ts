// Workspaces: who pays. What writes runs inside a transaction of the caller's and leaves an audit entry in it.

import type { Failure } from '../kernel/failure.ts'
import { isId, type WorkspaceId } from '../kernel/ids.ts'
import { type Sql, timeFromSql } from '../store/sql.ts'
import { type Act, appendAudit } from './audit.ts'
import { checkName } from './check-name.ts'
import { type Limits, limitsFromSql } from './limits.ts'
import { type ManagedBy, managerOf, refuseChange } from './managed.ts'
import { afterCursor, type Page, type PageQuery, pageOf, rowsWanted } from './page.ts'
import { insertWorkspace } from './records.ts'

export interface Workspace {
  readonly id: WorkspaceId
  readonly name: string
  readonly createdAt: number
  readonly limits: Limits
  /** Whether routes on the operator's credentials may follow those on its own. */
  readonly sharesRoutes: boolean
  readonly managedBy: ManagedBy
}

interface WorkspaceRow {
  readonly id: WorkspaceId
  readonly name: string
  readonly created_at: bigint
  readonly limits: string | null
  readonly shares_routes: bigint
  readonly managed_by: ManagedBy
}

export async function createWorkspace(
  sql: Sql,
  { name }: { readonly name: string },
  act: Act,
): Promise<Workspace | Failure> {
  const wrong = checkName(name)
  if (wrong) return wrong
  const managedBy = managerOf(act)
  const id = await insertWorkspace(sql, { name, createdAt: act.at, managedBy })
  await appendAudit(sql, { ...act, action: 'workspace.create', object: id })
  return { id, name, createdAt: act.at, limits: {}, sharesRoutes: false, managedBy }
}

export async function listWorkspaces(sql: Sql, page: PageQuery): Promise<Page<Workspace>> {
  const rows = await sql<WorkspaceRow>`SELECT * FROM workspaces WHERE id > ${afterCursor(page)}
    ORDER BY id LIMIT ${rowsWanted(page)}`
  return pageOf(rows.map(workspaceFromRow), page)
}

export async function getWorkspace(sql: Sql, id: string): Promise<Workspace | 'not found'> {
  if (!isId('ws', id)) return 'not found'
  const [row] = await sql<WorkspaceRow>`SELECT * FROM workspaces WHERE id = ${id}`
  return row ? workspaceFromRow(row) : 'not found'
}

export interface WorkspaceChange {
  readonly name?: string | undefined
  readonly sharesRoutes?: boolean | undefined
}

/** What is left out stays as it is. */
export async function updateWorkspace(
  sql: Sql,
  id: string,
  change: WorkspaceChange,
  act: Act,
): Promise<Workspace | 'not found' | Failure> {
  const known = await getWorkspace(sql, id)
  if (known === 'not found' || (change.name === undefined && change.sharesRoutes === undefined)) return known
  const { name = known.name, sharesRoutes = known.sharesRoutes } = change
  const wrong = checkName(name) ?? refuseChange('workspace', known, act)
  if (wrong) return wrong
  await sql`UPDATE workspaces SET name = ${name}, shares_routes = ${sharesRoutes ? 1n : 0n} WHERE id = ${known.id}`
  const details = {
    ...(change.name === undefined ? {} : { renamed: true }),
    ...(change.sharesRoutes === undefined ? {} : { shares_routes: sharesRoutes }),
  }
  await appendAudit(sql, { ...act, action: 'workspace.update', object: known.id, details })
  return { ...known, name, sharesRoutes }
}

function workspaceFromRow(row: WorkspaceRow): Workspace {
  return {
    id: row.id,
    name: row.name,
    createdAt: timeFromSql(row.created_at),
    limits: limitsFromSql(row.limits),
    sharesRoutes: row.shares_routes === 1n,
    managedBy: row.managed_by,
  }
}
