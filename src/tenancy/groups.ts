// Groups: named sets of people and keys of a workspace, which spend limits can name. They grant nothing. A name is unique in its
// workspace, so that files and commands can use it instead of the id.

import { invalidRequest } from '../kernel/failure.ts'
import { createId, type GroupId, isId, type PersonId, type WorkspaceId } from '../kernel/ids.ts'
import { type ItemIn, rowFormat, text, time } from '../store/columns.ts'
import { templateOf } from '../store/insert-rows.ts'
import type { Sql } from '../store/sql.ts'
import { appendAudit, lockAudit } from './audit.ts'
import { findPerson } from './limit-subjects.ts'
import { limitsFromSql } from './limits.ts'
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

const groupRow = rowFormat({
  id: text<GroupId>(),
  workspaceId: text<WorkspaceId>(),
  name: text(),
  createdAt: time,
  managedBy: text<ManagedBy>(),
})

export interface GroupMember {
  /** Of a person or a key. */
  readonly id: string
  /** The address of the person, the name of the key. */
  readonly name: string
}

export interface Group extends ItemIn<typeof groupRow> {
  readonly members: readonly GroupMember[]
}

const membersMax = 1000
const groupsMax = 500

export interface GroupInput {
  readonly name: string
  /** People by address or id, and keys by id. */
  readonly members: readonly string[]
}

export async function createGroup(sql: Sql, workspaceId: WorkspaceId, input: GroupInput, act: Act): Promise<Group> {
  const { name } = input
  // Locked before the checks, so that the second of two concurrent calls finds what the first has created.
  await lockAudit(sql)
  await checkGroupName(sql, workspaceId, name)
  const [count] = await sql<{
    groups: bigint
  }>`SELECT COUNT(*) AS groups FROM groups WHERE workspace_id = ${workspaceId}`
  if (Number(count?.groups) >= groupsMax) throw invalidRequest(`A workspace has at most ${groupsMax} groups.`)
  const members = await findMembers(sql, workspaceId, input.members)
  const id = createId('grp')
  const row = { id, workspaceId, name, createdAt: act.at, managedBy: managerOf(act) }
  await sql`INSERT INTO groups ${sql([groupRow.write(row)])}`
  await putMembers(sql, id, members)
  await appendAudit(sql, { ...act, action: 'group.create', object: id, details: { workspace: workspaceId, members } })
  return await getGroup(sql, id)
}

export async function listGroups(sql: Sql, workspaceId: WorkspaceId, page: PageQuery): Promise<Page<Group>> {
  const rows = await sql`SELECT * FROM groups WHERE workspace_id = ${workspaceId} AND id > ${afterCursor(page)}
    ORDER BY id LIMIT ${rowsWanted(page)}`
  const { items, nextCursor } = pageOf(groupRow.all(rows), page)
  return { items: await withMembers(sql, items), nextCursor }
}

/** Of the person or one of their keys, in every workspace. */
export async function groupIdsOf(sql: Sql, personId: PersonId): Promise<readonly GroupId[]> {
  const rows = await sql<{ group_id: GroupId }>`SELECT group_id FROM group_members WHERE member_id = ${personId}
    OR member_id IN (SELECT id FROM api_keys WHERE owner_id = ${personId})`
  return rows.map(({ group_id: id }) => id)
}

/** Of each key that is in a group, by itself or by its owner. `workspaceId`: absent = of all workspaces. */
export async function groupsOfKeys(sql: Sql, workspaceId?: WorkspaceId): Promise<ReadonlyMap<string, GroupId[]>> {
  const rows = await sql<{ id: string; group_id: GroupId }>`
    SELECT k.id, g.id AS group_id FROM groups g JOIN group_members m ON m.group_id = g.id
      JOIN api_keys k ON k.id = m.member_id AND k.workspace_id = g.workspace_id
      WHERE CAST(${workspaceId ?? null} AS TEXT) IS NULL OR g.workspace_id = ${workspaceId ?? null}
    UNION SELECT k.id, g.id FROM groups g JOIN group_members m ON m.group_id = g.id
      JOIN api_keys k ON k.owner_id = m.member_id AND k.workspace_id = g.workspace_id
      WHERE CAST(${workspaceId ?? null} AS TEXT) IS NULL OR g.workspace_id = ${workspaceId ?? null}`
  const groups = new Map<string, GroupId[]>()
  for (const { id, group_id: group } of rows) groups.getOrInsertComputed(id, () => []).push(group)
  return groups
}

export async function getGroup(sql: Sql, id: string): Promise<Group> {
  const found = isId('grp', id) ? groupRow.all(await sql`SELECT * FROM groups WHERE id = ${id}`) : []
  const [group] = await withMembers(sql, found)
  if (!group) throw notFound('group', id)
  return group
}

/** Omitted fields stay unchanged; `members` is the whole new list. */
export async function updateGroup(sql: Sql, id: string, change: Partial<GroupInput>, act: Act): Promise<Group> {
  await lockAudit(sql)
  const group = await getGroup(sql, id)
  checkManager('group', group, act)
  const { name } = change
  if (name !== undefined && name !== group.name) {
    await checkGroupName(sql, group.workspaceId, name)
    await sql`UPDATE groups SET name = ${name} WHERE id = ${group.id}`
  }
  const members = change.members && (await findMembers(sql, group.workspaceId, change.members, group.members))
  if (members) {
    await sql`DELETE FROM group_members WHERE group_id = ${group.id}`
    await putMembers(sql, group.id, members)
  }
  const details = { ...(name !== undefined && { renamed: true }), ...(members && { members }) }
  await appendAudit(sql, { ...act, action: 'group.update', object: group.id, details })
  return await getGroup(sql, group.id)
}

/** Refused while a limit names it: the limit would silently count nothing. */
export async function deleteGroup(sql: Sql, id: string, act: Act): Promise<Group> {
  await lockAudit(sql)
  const group = await getGroup(sql, id)
  checkManager('group', group, act)
  const holders = await sql<{ id: string; name: string; limits: string }>`
    SELECT id, name, limits FROM workspaces WHERE id = ${group.workspaceId} AND limits IS NOT NULL
    UNION ALL SELECT id, name, limits FROM projects WHERE workspace_id = ${group.workspaceId} AND limits IS NOT NULL
      AND archived_at IS NULL
    UNION ALL SELECT id, name, limits FROM api_keys WHERE workspace_id = ${group.workspaceId} AND limits IS NOT NULL
      AND revoked_at IS NULL`
  const holder = holders.find(({ limits }) => limitsFromSql(limits).spend?.some(({ subject }) => subject.name === id))
  if (holder) {
    throw invalidRequest(
      `Group "${group.name}" has a spend limit in the limits of ${holder.id}. Remove that limit first: \`tollgate limits show ${holder.id}\`.`,
    )
  }
  await sql`DELETE FROM groups WHERE id = ${group.id}`
  await appendAudit(sql, {
    ...act,
    action: 'group.delete',
    object: group.id,
    details: { workspace: group.workspaceId },
  })
  return group
}

async function checkGroupName(sql: Sql, workspaceId: WorkspaceId, name: string): Promise<void> {
  checkName(name)
  if (isId('grp', name)) throw invalidRequest('`name` must not be the id of a group.', 'name')
  const [namesake] = await sql`SELECT id FROM groups WHERE workspace_id = ${workspaceId} AND name = ${name}`
  if (namesake) throw invalidRequest(`There is already a group named "${name}" in this workspace.`, 'name')
}

/** Ids of the members, each once. Those that it `has` already may have lost their role since. */
async function findMembers(
  sql: Sql,
  workspaceId: WorkspaceId,
  given: readonly string[],
  has: readonly GroupMember[] = [],
): Promise<readonly string[]> {
  if (given.length > membersMax) throw invalidRequest(`A group has at most ${membersMax} members.`, 'members')
  const ids = new Set<string>()
  for (const [at, text] of given.entries()) {
    const known = has.find(({ id, name }) => id === text || name === text)
    const id =
      known?.id ??
      (isId('key', text) ? await findKey(sql, workspaceId, text) : await findPerson(sql, workspaceId, text))
    if (id === undefined) {
      const why = isId('key', text)
        ? 'is no key of this workspace.'
        : 'has no role in this workspace. Name people by their address, once they have accepted their invitation.'
      throw invalidRequest(`\`members[${at}]\`: ${text.slice(0, 100)} ${why}`, `members[${at}]`)
    }
    ids.add(id)
  }
  return [...ids].sort()
}

async function findKey(sql: Sql, workspaceId: WorkspaceId, id: string): Promise<string | undefined> {
  const [key] = await sql<{ id: string }>`SELECT id FROM api_keys WHERE id = ${id} AND workspace_id = ${workspaceId}
    AND revoked_at IS NULL`
  return key?.id
}

async function putMembers(sql: Sql, groupId: GroupId, members: readonly string[]): Promise<void> {
  if (members.length === 0) return
  await sql`INSERT INTO group_members ${sql(members.map((id) => ({ group_id: groupId, member_id: id })))}`
}

async function withMembers(sql: Sql, groups: readonly ItemIn<typeof groupRow>[]): Promise<readonly Group[]> {
  if (groups.length === 0) return []
  const ids = groups.map(({ id }) => id)
  const marks = [...ids.slice(1).fill(', ' as GroupId), '']
  const rows = await sql<{ group_id: string; id: string; name: string | null }>(
    templateOf([
      `SELECT m.group_id, m.member_id AS id, COALESCE(p.email, o.email, k.name) AS name FROM group_members m
        LEFT JOIN people p ON p.id = m.member_id LEFT JOIN api_keys k ON k.id = m.member_id
        LEFT JOIN people o ON o.id = k.owner_id AND k.kind = 'person' WHERE m.group_id IN (`,
      ...marks.slice(0, -1),
      ') ORDER BY m.group_id, m.member_id',
    ]),
    ...ids,
  )
  const members = Map.groupBy(rows, ({ group_id }) => group_id)
  return groups.map((group) => ({
    ...group,
    members: (members.get(group.id) ?? []).map(({ id, name }) => ({ id, name: name ?? id })),
  }))
}
