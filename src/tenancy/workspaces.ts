// Workspaces, which pay, and their projects, which group keys and restrict their models. Functions that write run inside
// the caller's transaction and add an audit entry to it.

import { randomBytes } from 'node:crypto'
import { isoTime } from '../kernel/clock.ts'
import { invalidRequest } from '../kernel/failure.ts'
import { createId, isId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { amount, flag, type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { aliasesColumn, checkAliases, checkModels, listColumn } from './allowlist.ts'
import { appendAudit, lockAudit } from './audit.ts'
import { deleteBatches } from './batches.ts'
import { deleteGenerationKeys } from './idempotency.ts'
import { limitsColumn } from './limits.ts'
import {
  type Act,
  afterCursor,
  checkManager,
  checkName,
  type ManagedBy,
  managerOf,
  notFound,
  type Page,
  type PageQuery,
  pageOf,
  rowsWanted,
} from './management.ts'
import { denyApproved, removePeopleOf } from './people.ts'
import { deleteStoredResponses } from './stored-responses.ts'

const workspaceRow = rowFormat({
  id: text<WorkspaceId>(),
  name: text(),
  createdAt: time,
  limits: limitsColumn,
  /** Whether routes on the operator's credentials may be tried after those on its own. */
  sharesRoutes: flag,
  /** undefined = it pays the prices of the catalog. */
  priceList: optional(text()),
  /** The highest balance that a rule of its alerts names; undefined = none. */
  lowBalance: optional(amount),
  managedBy: text<ManagedBy>(),
})

export type Workspace = ItemIn<typeof workspaceRow>

interface NewName {
  readonly kind: 'workspace' | 'project' | 'key'
  readonly name: string
  readonly act: Act
  namesakes(): Promise<readonly unknown[]>
}

/**
 * `config apply` finds objects by their names and creates those that are missing. Of two runs at the same time, the second
 * must not create them again. Other callers may use a name twice.
 */
export async function refuseNamesake(sql: Sql, { kind, name, act, namesakes }: NewName): Promise<void> {
  if (managerOf(act) !== 'file') return
  // Locked before the check, so that the second of two concurrent calls finds what the first has created.
  await lockAudit(sql)
  if ((await namesakes()).length === 0) return
  const advice = 'Another run of `tollgate config apply` may have just created it; once that has ended, run it again.'
  throw invalidRequest(`There is already a ${kind} named ${name}. ${advice}`, 'name')
}

export async function createWorkspace(sql: Sql, { name }: { readonly name: string }, act: Act): Promise<Workspace> {
  checkName(name)
  const namesakes = () => sql`SELECT id FROM workspaces WHERE name = ${name} LIMIT 1`
  await refuseNamesake(sql, { kind: 'workspace', name, namesakes, act })
  const id = await insertWorkspace(sql, { name, createdAt: act.at, managedBy: managerOf(act) })
  await appendAudit(sql, { ...act, action: 'workspace.create', object: id })
  return await getWorkspace(sql, id)
}

/** `only`: those of a person, who belongs to few; undefined = all. */
export async function listWorkspaces(
  sql: Sql,
  page: PageQuery,
  only?: readonly WorkspaceId[],
): Promise<Page<Workspace>> {
  if (only) {
    const after = [...only].filter((id) => id > afterCursor(page)).sort()
    const found = await Promise.all(after.slice(0, page.limit + 1).map((id) => findWorkspace(sql, id)))
    return pageOf(
      found.filter((workspace) => workspace !== undefined),
      page,
    )
  }
  const rows = await sql`SELECT w.*, (SELECT MAX(r.below) FROM alert_rules r WHERE r.kind = 'balance.low'
      AND r.workspace_id = w.id) AS low_balance FROM workspaces w
    WHERE w.id > ${afterCursor(page)} ORDER BY w.id LIMIT ${rowsWanted(page)}`
  return pageOf(workspaceRow.all(rows), page)
}

export async function findWorkspace(sql: Sql, id: string): Promise<Workspace | undefined> {
  if (!isId('ws', id)) return undefined
  return workspaceRow.first(
    await sql`SELECT w.*, (SELECT MAX(r.below) FROM alert_rules r
    WHERE r.kind = 'balance.low' AND r.workspace_id = w.id) AS low_balance FROM workspaces w WHERE w.id = ${id}`,
  )
}

export async function getWorkspace(sql: Sql, id: string): Promise<Workspace> {
  const workspace = await findWorkspace(sql, id)
  if (!workspace) throw notFound('workspace', id)
  return workspace
}

export interface WorkspaceChange {
  readonly name?: string | undefined
  readonly sharesRoutes?: boolean | undefined
  /** Must exist; null = the prices of the catalog. */
  readonly priceList?: string | null | undefined
}

/** Omitted fields stay unchanged. */
export async function updateWorkspace(sql: Sql, id: string, change: WorkspaceChange, act: Act): Promise<Workspace> {
  const known = await getWorkspace(sql, id)
  if (Object.values(change).every((value) => value === undefined)) return known
  const { name = known.name, sharesRoutes = known.sharesRoutes } = change
  const priceList = change.priceList === undefined ? (known.priceList ?? null) : change.priceList
  checkName(name)
  checkManager('workspace', known, act)
  await sql`UPDATE workspaces SET name = ${name}, shares_routes = ${sharesRoutes ? 1n : 0n},
    price_list = ${priceList} WHERE id = ${known.id}`
  const details = {
    ...(change.name === undefined ? {} : { renamed: true }),
    ...(change.sharesRoutes === undefined ? {} : { shares_routes: sharesRoutes }),
    ...(change.priceList === undefined ? {} : { price_list: priceList }),
  }
  await appendAudit(sql, { ...act, action: 'workspace.update', object: known.id, details })
  return { ...known, name, sharesRoutes, priceList: priceList ?? undefined }
}

const projectRow = rowFormat({
  id: text<ProjectId>(),
  workspaceId: text<WorkspaceId>(),
  name: text(),
  /** Ids and `prefix/*` patterns; undefined = every model. */
  models: listColumn,
  /** Further names of models: name → model id. */
  aliases: aliasesColumn,
  createdAt: time,
  limits: limitsColumn,
  managedBy: text<ManagedBy>(),
  /** Whether its prompts and answers are sent to the operator's collector, if the operator has set one. */
  exportsContent: flag,
  /** undefined = in use. */
  archivedAt: optional(time),
})

export type Project = ItemIn<typeof projectRow>

export interface ProjectInput {
  readonly workspaceId: string
  readonly name: string
  readonly models?: readonly string[] | undefined
  readonly aliases?: Readonly<Record<string, string>> | undefined
  readonly exportsContent?: boolean | undefined
}

export async function createProject(sql: Sql, input: ProjectInput, act: Act): Promise<Project> {
  const { name, models, aliases, exportsContent } = input
  checkName(name)
  checkModels(models ?? [])
  checkAliases(aliases)
  const { id: workspaceId } = await getWorkspace(sql, input.workspaceId)
  const namesakes = () => sql`SELECT id FROM projects WHERE workspace_id = ${workspaceId} AND name = ${name}
    AND archived_at IS NULL LIMIT 1`
  await refuseNamesake(sql, { kind: 'project', name, namesakes, act })
  const id = await insertProject(sql, { ...input, workspaceId, createdAt: act.at, managedBy: managerOf(act) })
  const details = {
    workspace: workspaceId,
    models: models ?? null,
    ...(aliases && { aliases }),
    ...(exportsContent && { exports_content: true }),
  }
  await appendAudit(sql, { ...act, action: 'project.create', object: id, details })
  return await getProject(sql, id)
}

export interface ProjectChange {
  readonly name?: string | undefined
  /** The whole new list; null = every model. */
  readonly models?: readonly string[] | null | undefined
  /** The whole new map; null = none. */
  readonly aliases?: Readonly<Record<string, string>> | null | undefined
  readonly exportsContent?: boolean | undefined
}

/** Omitted fields stay unchanged. */
export async function updateProject(sql: Sql, id: string, change: ProjectChange, act: Act): Promise<Project> {
  const { name, models, aliases, exportsContent } = change
  if (name !== undefined) checkName(name)
  checkModels(models ?? [])
  checkAliases(aliases ?? {})
  const project = await getProject(sql, id)
  if (Object.values(change).every((value) => value === undefined)) return project
  checkInUse(project)
  checkManager('project', project, act)
  if (name !== undefined) await sql`UPDATE projects SET name = ${name} WHERE id = ${project.id}`
  if (models !== undefined) {
    await sql`UPDATE projects SET models = ${listColumn.toSql(models ?? undefined)} WHERE id = ${project.id}`
  }
  if (aliases !== undefined) {
    await sql`UPDATE projects SET aliases = ${aliasesColumn.toSql(aliases ?? {})} WHERE id = ${project.id}`
  }
  if (exportsContent !== undefined) {
    await sql`UPDATE projects SET exports_content = ${flag.toSql(exportsContent)} WHERE id = ${project.id}`
  }
  const details = {
    ...(name === undefined ? {} : { renamed: true }),
    ...(models === undefined ? {} : { models }),
    ...(aliases === undefined ? {} : { aliases }),
    ...(exportsContent === undefined ? {} : { exports_content: exportsContent }),
  }
  await appendAudit(sql, { ...act, action: 'project.update', object: project.id, details })
  return await getProject(sql, project.id)
}

export interface DeletedProject {
  readonly id: ProjectId
  readonly outcome: 'deleted' | 'archived'
  /** Keys that worked before. */
  readonly keys: number
}

/**
 * A project that was used is archived, because its requests and charges name it and its keys. The caller invalidates the
 * caches afterwards. An archived project stays unchanged.
 */
export async function deleteProject(sql: Sql, id: string, act: Act): Promise<DeletedProject> {
  const project = await lockProject(sql, id)
  if (project.archivedAt !== undefined) return { id: project.id, outcome: 'archived', keys: 0 }
  checkManager('project', project, act)
  const now = timeToSql(act.at)
  const revoked = await sql<{ expires_at: bigint | null }>`UPDATE api_keys SET revoked_at = ${now}
    WHERE project_id = ${project.id} AND revoked_at IS NULL RETURNING expires_at`
  const keys = revoked.filter(({ expires_at: end }) => end === null || end > now).length
  const outcome = (await wasUsed(sql, project.id)) ? 'archived' : 'deleted'
  if (outcome === 'archived') await sql`UPDATE projects SET archived_at = ${now} WHERE id = ${project.id}`
  else {
    await sql`DELETE FROM rotated_secrets WHERE key_id IN (SELECT id FROM api_keys WHERE project_id = ${project.id})`
    await sql`DELETE FROM group_members WHERE member_id IN (SELECT id FROM api_keys WHERE project_id = ${project.id})`
    await sql`DELETE FROM api_keys WHERE project_id = ${project.id}`
    await sql`DELETE FROM projects WHERE id = ${project.id}`
  }
  const action = outcome === 'archived' ? 'project.archive' : 'project.delete'
  await appendAudit(sql, { ...act, action, object: project.id, details: { workspace: project.workspaceId, keys } })
  return { id: project.id, outcome, keys }
}

/** Requests are removed after their retention; when a key was last used is kept, but written up to a minute later. */
async function wasUsed(sql: Sql, id: ProjectId): Promise<boolean> {
  const [row] = await sql`SELECT 1 AS used FROM api_keys k WHERE k.project_id = ${id}
    AND (EXISTS (SELECT 1 FROM key_uses u WHERE u.key_id = k.id)
      OR EXISTS (SELECT 1 FROM requests r WHERE r.key_id = k.id)) LIMIT 1`
  return row !== undefined
}

/** Of concurrent calls that create a key and delete the project, the second finds what the first has done. */
export async function lockProject(sql: Sql, id: string): Promise<Project> {
  await sql`SELECT id FROM projects WHERE id = ${id} FOR NO KEY UPDATE`
  return await getProject(sql, id)
}

export function checkInUse({ name, archivedAt }: Project): void {
  if (archivedAt === undefined) return
  throw invalidRequest(`Project "${name}" was deleted ${isoTime(archivedAt).slice(0, 10)}. Create a new project.`)
}

/** `archived: 'true'` adds archived projects. */
export async function listProjects(
  sql: Sql,
  workspaceId: WorkspaceId,
  page: PageQuery,
  { archived }: { readonly archived?: 'true' | undefined } = {},
): Promise<Page<Project>> {
  const rows = await sql`SELECT * FROM projects WHERE workspace_id = ${workspaceId}
    AND (archived_at IS NULL OR ${archived === 'true' ? 1n : 0n} = 1)
    AND id > ${afterCursor(page)} ORDER BY id LIMIT ${rowsWanted(page)}`
  return pageOf(projectRow.all(rows), page)
}

export async function getProject(sql: Sql, id: string): Promise<Project> {
  const project = isId('prj', id) ? projectRow.first(await sql`SELECT * FROM projects WHERE id = ${id}`) : undefined
  if (!project) throw notFound('project', id)
  return project
}

// Takes out of a workspace what may belong to a person: names, keys, addresses, provider keys, kept answers. The rows
// stay under their ids, because charges and the audit log name them; the money stays as it is. Requests are elsewhere.

/** Replaces every name. */
export const erasedName = 'erased'

export interface Erased {
  readonly id: WorkspaceId
  /** Revoked keys; those that were already erased do not count. */
  readonly keys: number
  readonly credentials: number
  /** Stored by their callers. */
  readonly responses: number
  /** With their files and results. */
  readonly batches: number
}

/** The caller invalidates the caches afterwards. May be repeated. */
export async function eraseWorkspace(sql: Sql, id: string, act: Act): Promise<Erased> {
  const known = await getWorkspace(sql, id)
  checkManager('workspace', known, act)
  await sql`UPDATE workspaces SET name = ${erasedName}, end_user_salt = NULL WHERE id = ${known.id}`
  await sql`UPDATE projects SET name = ${erasedName} WHERE workspace_id = ${known.id}`
  await denyApproved(sql, { workspaceId: known.id })
  await sql`DELETE FROM rotated_secrets WHERE key_id IN (SELECT id FROM api_keys WHERE workspace_id = ${known.id})`
  await sql`DELETE FROM key_uses WHERE key_id IN (SELECT id FROM api_keys WHERE workspace_id = ${known.id}
    UNION ALL SELECT s.id FROM sign_ins s JOIN api_keys k ON k.id = s.key_id WHERE k.workspace_id = ${known.id})`
  await sql`DELETE FROM sign_ins WHERE key_id IN (SELECT id FROM api_keys WHERE workspace_id = ${known.id})`
  // Never matches a key, because it is not a hash.
  const keys = await sql`UPDATE api_keys SET name = ${erasedName}, last4 = '',
      verifier = CASE WHEN kind = 'person' THEN NULL ELSE 'erased ' || id END,
      sources = NULL, revoked_at = COALESCE(revoked_at, ${timeToSql(act.at)})
    WHERE workspace_id = ${known.id} AND (verifier <> 'erased ' || id OR (kind = 'person' AND name <> ${erasedName}))
    RETURNING id`
  // The saved card; without it nothing is topped up automatically.
  await sql`DELETE FROM auto_topups WHERE workspace_id = ${known.id}`
  const credentials = await sql`DELETE FROM credentials WHERE workspace_id = ${known.id} RETURNING id`
  await deleteGenerationKeys(sql, known.id)
  // With the addresses that they name.
  await sql`DELETE FROM deliveries WHERE email IS NOT NULL
    AND rule_id IN (SELECT id FROM alert_rules WHERE workspace_id = ${known.id})`
  await sql`DELETE FROM alert_rules WHERE workspace_id = ${known.id}`
  await sql`DELETE FROM groups WHERE workspace_id = ${known.id}`
  await removePeopleOf(sql, known.id)
  const responses = await deleteStoredResponses(sql, known.id)
  const batches = await deleteBatches(sql, known.id)
  const counts = { keys: keys.length, credentials: credentials.length, responses, batches }
  await appendAudit(sql, { ...act, action: 'workspace.erase', object: known.id, details: counts })
  return { id: known.id, ...counts }
}

export interface NewWorkspace {
  readonly name: string
  readonly createdAt: number
  readonly managedBy?: ManagedBy
}

const saltBytes = 16

/** Its admins may change and delete them. */
const firstRules = [
  { kind: 'balance.low', below: 1_000_000_000n, percents: null },
  { kind: 'limit.reached', below: null, percents: '[75,90,100]' },
  { kind: 'topup.failed', below: null, percents: null },
] as const

function firstRule(rule: (typeof firstRules)[number], createdAt: number, workspaceId: WorkspaceId) {
  const recipients = { roles: '["admin"]', emails: '[]', webhooks: '[]' }
  return { id: createId('rul'), workspace_id: workspaceId, ...rule, ...recipients, created_at: timeToSql(createdAt) }
}

export async function insertWorkspace(sql: Sql, workspace: NewWorkspace): Promise<WorkspaceId> {
  const id = createId('ws')
  const row = {
    id,
    name: workspace.name,
    created_at: timeToSql(workspace.createdAt),
    managed_by: workspace.managedBy ?? 'api',
    end_user_salt: randomBytes(saltBytes).toString('hex'),
  }
  await sql`INSERT INTO workspaces ${sql([row])}`
  await sql`INSERT INTO alert_rules ${sql(firstRules.map((rule) => firstRule(rule, workspace.createdAt, id)))}`
  return id
}

export interface NewProject extends ProjectInput {
  readonly workspaceId: WorkspaceId
  readonly createdAt: number
  readonly managedBy?: ManagedBy
}

export async function insertProject(sql: Sql, project: NewProject): Promise<ProjectId> {
  const id = createId('prj')
  const row = {
    id,
    workspace_id: project.workspaceId,
    name: project.name,
    models: listColumn.toSql(project.models),
    aliases: aliasesColumn.toSql(project.aliases ?? {}),
    created_at: timeToSql(project.createdAt),
    managed_by: project.managedBy ?? 'api',
    exports_content: flag.toSql(project.exportsContent ?? false),
  }
  await sql`INSERT INTO projects ${sql([row])}`
  return id
}
