// The people and groups that spend limits name. Limits are written with an address, a name or an id; what is stored is the id.

import { type Failure, invalidRequest } from '../kernel/failure.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { isById, type KindById, type SpendLimit } from '../kernel/spend-limit.ts'
import { templateOf } from '../store/insert-rows.ts'
import type { Sql } from '../store/sql.ts'

/** How each kind whose names are ids is found, and what an error says if it is not. */
const kindsById = {
  person: {
    find: findPerson,
    missing:
      'nobody with that address or id has a role in this workspace. Invite the person first: `tollgate people invite`.',
  },
  group: {
    find: findGroup,
    missing: 'this workspace has no such group. Create it first: `tollgate groups create`.',
  },
} as const satisfies Readonly<Record<KindById, object>>

/** With ids. `has`: the limits before; those whom they name may have lost their role since. */
export async function withSubjectIds(
  sql: Sql,
  workspaceId: WorkspaceId,
  limits: readonly SpendLimit[],
  has: readonly SpendLimit[] = [],
): Promise<readonly SpendLimit[]> {
  const found: SpendLimit[] = []
  const labels = await readLabels(sql, namedIn(has))
  for (const limit of limits) {
    const { kind, name } = limit.subject
    if (!isById(kind) || name === undefined) {
      found.push(limit)
      continue
    }
    // By id, or as answers show it.
    const known = has.find(
      ({ subject: { kind: knownKind, name: knownId = '' } }) =>
        knownKind === kind && (knownId === name || labels.get(knownId) === name),
    )
    const id = known?.subject.name ?? (await findSubjectId(sql, workspaceId, kind, name))
    if (id === undefined) throw noSubject(kind, name)
    found.push({ ...limit, subject: { kind, name: id } })
  }
  return found
}

/** The ids of the people and groups that are named. */
export function namedIn(limits: readonly SpendLimit[]): readonly string[] {
  return limits.flatMap(({ subject: { kind, name } }) => (name !== undefined && isById(kind) ? [name] : []))
}

/** The id of a person or group; undefined = the workspace has none of that address, name or id. */
export function findSubjectId(
  sql: Sql,
  workspaceId: WorkspaceId,
  kind: KindById,
  text: string,
): Promise<string | undefined> {
  return kindsById[kind].find(sql, workspaceId, text)
}

/** The id of a person by address or id, if they have a role in the workspace or are an operator. */
export async function findPerson(sql: Sql, workspaceId: WorkspaceId, text: string): Promise<string | undefined> {
  const [person] = await sql<{
    id: string
  }>`SELECT p.id FROM people p WHERE (p.id = ${text} OR p.email = ${text.toLowerCase()})
    AND EXISTS (SELECT 1 FROM members m WHERE m.person_id = p.id
      AND (m.workspace_id = ${workspaceId} OR m.workspace_id IS NULL))`
  return person?.id
}

async function findGroup(sql: Sql, workspaceId: WorkspaceId, text: string): Promise<string | undefined> {
  const [group] = await sql<{ id: string }>`SELECT id FROM groups WHERE workspace_id = ${workspaceId}
    AND (id = ${text} OR name = ${text})`
  return group?.id
}

/** What people call the persons and groups with these ids. One that is missing does not exist any more. */
export async function readLabels(sql: Sql, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const marks = ids.slice(1).fill(', ')
  const text = [
    'SELECT id, email AS label FROM people WHERE id IN (',
    ...marks,
    ') UNION ALL SELECT id, name FROM groups WHERE id IN (',
    ...marks,
    ')',
  ]
  const rows = await sql<{ id: string; label: string }>(templateOf(text), ...ids, ...ids)
  return new Map(rows.map(({ id, label }) => [id, label]))
}

function noSubject(kind: KindById, name: string): Failure {
  const message = `\`spend_limits\` names ${kind}:${name.slice(0, 100)}, but ${kindsById[kind].missing}`
  return invalidRequest(message, 'spend_limits')
}
