// The one place that decides whether a principal may make a call, before its handler runs, by the table in
// src/api/endpoints.ts. A workspace that is not the principal's is answered like one that does not exist.

import { needsRecentSignIn, operatorFields, scopeOf } from '../../api/endpoints.ts'
import type { IdKind } from '../../api/operation.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { PersonId, WorkspaceId } from '../../kernel/ids.ts'
import type { Sql } from '../../store/sql.ts'
import { notFound } from '../../tenancy/management.ts'
import type { Principal, Reach } from '../../tenancy/principal.ts'
import type { Match } from './route.ts'

/** Throws a Failure if the call is not allowed. */
export async function reachOf(
  sql: Sql,
  principal: Principal,
  { route, id }: Match,
  given: { readonly query: unknown; readonly body: unknown },
): Promise<Reach> {
  const everything: Reach = { principal, workspaceId: undefined, ownerId: undefined }
  if (principal.isOperator) return everything
  const { name, kind } = route
  // First, and without a look at the id: a role that may never call this gets the same answer for every id.
  const usable = principal.grants.filter(({ role }) => scopeOf(name, role) !== undefined)
  if (usable.length === 0) throw forbidden(principal)
  if (usable.some(({ role }) => scopeOf(name, role) === 'self')) return everything

  const object = kind === undefined ? undefined : await placeOf(sql, kind, id)
  // Operators and their invitations have no workspace; others must not see them.
  if (kind !== undefined && object?.workspaceId === undefined) throw notFound(kind, id)
  const wanted = object?.workspaceId ?? namedWorkspace(given) ?? onlyWorkspace(usable)
  const grant = principal.grants.find(({ workspaceId }) => workspaceId === wanted)
  if (!grant) throw notFound(kind ?? 'workspace', kind === undefined ? wanted : id)
  const scope = scopeOf(name, grant.role)
  if (scope === undefined) throw forbidden(principal)
  const reserved = operatorFields[name]?.find((field) => Object.hasOwn(given.body ?? {}, field))
  if (reserved !== undefined)
    throw new Failure('FORBIDDEN', `Only operators may set \`${reserved}\`.`, { param: reserved })
  const ownerId = scope === 'own' ? (principal.personId ?? noPerson) : undefined
  const isForeign = object?.ownerId !== undefined && object.ownerId !== ownerId
  if (ownerId !== undefined && kind !== undefined && isForeign) throw notFound(kind, id)
  return { principal, workspaceId: grant.workspaceId, ownerId }
}

const recentMs = 15 * 60_000

/** Throws a Failure if a console session was opened too long ago for the call. */
export function checkSignInTime({ session }: Principal, { route }: Match, now: number): void {
  if (!session || !needsRecentSignIn.has(route.name) || now - session.openedAt < recentMs) return
  const message = 'This needs a sign-in within the last 15 minutes. Sign in again and repeat it.'
  // The console offers a new sign-in.
  throw new Failure('FORBIDDEN', message, { metadata: { reason: 'sign_in_too_old' } })
}

/** Owner filter for the installation when it views the console as a member: it has no keys. */
const noPerson: PersonId = 'per_'

interface Place {
  readonly workspaceId: WorkspaceId | undefined
  /** The owner of keys and requests; null = not a person's. */
  readonly ownerId?: PersonId | null
}

async function placeOf(sql: Sql, kind: IdKind, id: string): Promise<Place | undefined> {
  if (kind === 'workspace') return { workspaceId: id as WorkspaceId }
  const [row] = await findPlace(sql, kind, id)
  if (!row) return undefined
  const { workspace_id, owner_id } = row
  return { workspaceId: workspace_id ?? undefined, ...(owner_id !== undefined && { ownerId: owner_id }) }
}

interface PlaceRow {
  readonly workspace_id: WorkspaceId | null
  readonly owner_id?: PersonId | null
}

const tables: Readonly<Partial<Record<IdKind, string>>> = {
  project: 'projects',
  group: 'groups',
  member: 'members',
  webhook: 'webhooks',
  rule: 'alert_rules',
  payment: 'payments',
  invitation: 'invitations',
}

async function findPlace(sql: Sql, kind: IdKind, id: string): Promise<PlaceRow[]> {
  const table = tables[kind]
  if (table !== undefined) return await sql`SELECT workspace_id FROM ${sql(table)} WHERE id = ${id}`
  switch (kind) {
    case 'key':
      return await sql`SELECT workspace_id, owner_id FROM api_keys WHERE id = ${id}`
    case 'device':
      return await sql`SELECT k.workspace_id, s.person_id AS owner_id FROM sign_ins s JOIN api_keys k ON k.id = s.key_id
        WHERE s.id = ${id}`
    case 'request':
      return await sql`SELECT r.workspace_id, k.owner_id FROM requests r LEFT JOIN api_keys k ON k.id = r.key_id
        WHERE r.id = ${id}`
    case 'batch':
      return await sql`SELECT b.workspace_id, k.owner_id FROM batches b LEFT JOIN api_keys k ON k.id = b.key_id
        WHERE b.id = ${id}`
    case 'delivery':
      // By e-mail: to a member of the alert's workspace, or to an address in one of its rules. Others must not see the deliveries to operators.
      return await sql`SELECT COALESCE(w.workspace_id, r.workspace_id, m.workspace_id) AS workspace_id FROM deliveries d
          JOIN alerts a ON a.id = d.alert_id LEFT JOIN webhooks w ON w.id = d.webhook_id
          LEFT JOIN alert_rules r ON r.id = d.rule_id
          LEFT JOIN members m ON m.person_id = d.person_id AND m.workspace_id = a.workspace_id WHERE d.id = ${id}`
    default:
      return []
  }
}

function namedWorkspace({ query, body }: { readonly query: unknown; readonly body: unknown }): WorkspaceId | undefined {
  for (const values of [query, body]) {
    const named = (values as { readonly workspace_id?: WorkspaceId | null } | undefined)?.workspace_id
    if (named != null) return named
  }
  return undefined
}

function onlyWorkspace(grants: Principal['grants']): WorkspaceId {
  const [first, second] = grants
  if (first && !second) return first.workspaceId
  throw invalidRequest('`workspace_id` is required: you belong to more than one workspace.', 'workspace_id')
}

function forbidden({ grants, kind }: Principal): Failure {
  const held = [...new Set(grants.map(({ role }) => role))].join(' and ')
  const who = kind === 'token' ? 'This token' : 'Your account'
  const what = held === '' ? `${who} has no role here` : `${who} has the role ${held}, which does not include this`
  return new Failure('FORBIDDEN', `${what}. Ask an admin of the workspace or the operator.`)
}
