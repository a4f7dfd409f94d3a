// Which spend limits of a workspace count one subject: those that name it, those of each of its kind, and of a person also
// those of their groups.

import type { GroupId, WorkspaceId } from '../kernel/ids.ts'
import { isById, type NamedSubject, type SpendLimit, scopeText } from '../kernel/spend-limit.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { findEndUser } from './end-users.ts'
import { personKeyName } from './keys.ts'
import { findSubjectId, readLabels } from './limit-subjects.ts'
import { type LimitScope, limitsFromSql } from './limits.ts'
import { notFound } from './management.ts'

interface NamedGroup {
  readonly id: GroupId
  readonly name: string
}

export interface FoundSubject {
  /** As charges name it: a person or group by id, an end user by hash. */
  readonly subject: NamedSubject
  /** What people call it. */
  readonly label: string
}

/** Throws a Failure if the workspace has no such person or group. End users and tags need not have been seen. */
export async function findSubject(
  sql: Sql,
  workspaceId: WorkspaceId,
  { kind, name }: NamedSubject,
): Promise<FoundSubject> {
  if (!isById(kind)) {
    const recorded = kind === 'user' ? await findEndUser(sql, workspaceId, name) : name
    return { subject: { kind, name: recorded }, label: recorded }
  }
  const id = await findSubjectId(sql, workspaceId, kind, name)
  if (id === undefined) throw notFound(kind, name)
  return { subject: { kind, name: id }, label: (await readLabels(sql, [id])).get(id) ?? id }
}

/** undefined = they have none in this workspace. */
export async function roleIn(sql: Sql, workspaceId: WorkspaceId, personId: string): Promise<string | undefined> {
  const [member] = await sql<{ role: string }>`SELECT role FROM members
    WHERE workspace_id = ${workspaceId} AND person_id = ${personId}`
  return member?.role
}

/** Those that a person is in, also by a key. */
export async function groupsOfPerson(sql: Sql, workspaceId: WorkspaceId, personId: string): Promise<NamedGroup[]> {
  return await sql<NamedGroup>`SELECT id, name FROM groups WHERE workspace_id = ${workspaceId} AND id IN
    (SELECT group_id FROM group_members WHERE member_id = ${personId} OR member_id IN
      (SELECT id FROM api_keys WHERE owner_id = ${personId} AND workspace_id = ${workspaceId} AND revoked_at IS NULL))
    ORDER BY id`
}

export interface SubjectLimit {
  readonly limit: SpendLimit
  readonly startsAt: number | undefined
  /** The counter of the subject in the limit. */
  readonly scope: string
  readonly setIn: { readonly kind: LimitScope['kind']; readonly id: string; readonly name: string }
  /** Whom the limit counts: the subject, or one of the groups of a person. */
  readonly counts: FoundSubject
}

/** By the workspace, its projects and, for those that limits of a key can have, its keys. */
export async function limitsOf(
  sql: Sql,
  workspaceId: WorkspaceId,
  subjects: readonly FoundSubject[],
  now: number,
): Promise<readonly SubjectLimit[]> {
  const ofKeys = subjects.every(({ subject }) => isById(subject.kind)) ? '' : workspaceId
  const holders = await sql<Holder>`
    SELECT 'workspace' AS kind, id, name, NULL AS email, limits FROM workspaces
      WHERE id = ${workspaceId} AND limits IS NOT NULL
    UNION ALL SELECT 'project', id, name, NULL, limits FROM projects
      WHERE workspace_id = ${workspaceId} AND limits IS NOT NULL AND archived_at IS NULL
    UNION ALL SELECT 'key', k.id, k.name, o.email, k.limits FROM api_keys k
      LEFT JOIN people o ON k.kind = 'person' AND o.id = k.name
      WHERE k.workspace_id = ${ofKeys} AND k.limits IS NOT NULL AND (k.revoked_at IS NULL OR k.revoked_at > ${timeToSql(now)})
        AND (k.expires_at IS NULL OR k.expires_at > ${timeToSql(now)})
    ORDER BY kind DESC, id`
  return holders.flatMap((holder) => countedBy(holder, subjects))
}

interface Holder {
  readonly kind: LimitScope['kind']
  readonly id: string
  readonly name: string
  /** Of the person for whom a key stands. */
  readonly email: string | null
  readonly limits: string
}

function countedBy({ kind, id, name, email, limits }: Holder, subjects: readonly FoundSubject[]): SubjectLimit[] {
  const setIn = { kind, id, name: email === null ? name : personKeyName(email) }
  const { spend = [], startsAt } = limitsFromSql(limits)
  return spend.flatMap((limit) => {
    const { subject: wanted, models } = limit
    const counts = subjects.find(({ subject }) => {
      return subject.kind === wanted.kind && (wanted.name ?? subject.name) === subject.name
    })
    if (!counts) return []
    return [{ limit, startsAt, scope: scopeText({ owner: id, ...counts.subject, models }), setIn, counts }]
  })
}
