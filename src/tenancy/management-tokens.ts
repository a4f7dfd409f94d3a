// Personal management tokens: a person's access to the management API for scripts, with a role, a workspace and an expiry.
// A token never does more than its person may do now: if the person's role no longer covers it, it is void.

import { type Failure, invalidRequest } from '../kernel/failure.ts'
import { createId, isId, type PersonId, type TokenId, type WorkspaceId } from '../kernel/ids.ts'
import { coversRole, type Role } from '../kernel/roles.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import { appendAudit } from './audit.ts'
import {
  type Act,
  afterCursor,
  checkName,
  notFound,
  type Page,
  type PageQuery,
  pageOf,
  rowsWanted,
} from './management.ts'
import { createLinkSecret, type Grant, grantsOf, hashOfSecret } from './people.ts'

export interface ManagementToken extends Grant {
  readonly id: TokenId
  readonly personId: PersonId
  readonly name: string
  readonly last4: string
  readonly createdAt: number
  readonly expiresAt: number
}

export const tokenPrefix = 'tg-mt-'
const dayMs = 24 * 3_600_000
const tokensMax = 100

interface TokenRow {
  readonly id: TokenId
  readonly person_id: PersonId
  readonly workspace_id: WorkspaceId | null
  readonly role: Role
  readonly name: string
  readonly last4: string
  readonly created_at: bigint
  readonly expires_at: bigint
}

function tokenFromRow(row: TokenRow): ManagementToken {
  return {
    id: row.id,
    personId: row.person_id,
    workspaceId: row.workspace_id ?? undefined,
    role: row.role,
    name: row.name,
    last4: row.last4,
    createdAt: timeFromSql(row.created_at),
    expiresAt: timeFromSql(row.expires_at),
  }
}

export interface TokenInput extends Grant {
  readonly personId: PersonId
  readonly name: string
  readonly days: number
}

/** The secret is returned once. */
export async function createToken(
  sql: Sql,
  input: TokenInput,
  act: Act,
): Promise<{ readonly token: ManagementToken; readonly secret: string }> {
  checkName(input.name)
  const { personId, role, workspaceId } = input
  // The grants are read here and not taken from the session, which may be older than the last change of a role.
  if (!covers(await grantsOf(sql, personId), input)) throw tooMuch(role)
  const [row] = await sql<{
    count: bigint
  }>`SELECT COUNT(*) AS count FROM management_tokens WHERE person_id = ${personId}`
  if ((row?.count ?? 0n) >= BigInt(tokensMax)) {
    throw invalidRequest(`A person has at most ${tokensMax} tokens. Revoke those that are no longer used.`)
  }
  const secret = `${tokenPrefix}${createLinkSecret()}`
  const token: ManagementToken = {
    id: createId('tok'),
    personId,
    workspaceId,
    role,
    name: input.name,
    last4: secret.slice(-4),
    createdAt: act.at,
    expiresAt: act.at + input.days * dayMs,
  }
  const stored = {
    id: token.id,
    hash: hashOfSecret(secret),
    person_id: personId,
    workspace_id: workspaceId ?? null,
    role,
    name: input.name,
    last4: token.last4,
    created_at: timeToSql(token.createdAt),
    expires_at: timeToSql(token.expiresAt),
  }
  await sql`INSERT INTO management_tokens ${sql([stored])}`
  const details = { workspace: workspaceId ?? null, role, expires_at: token.expiresAt }
  await appendAudit(sql, { ...act, action: 'token.create', object: token.id, details })
  return { token, secret }
}

/** Whether one of the grants includes the wanted one. Operators may make tokens for any workspace. */
function covers(grants: readonly Grant[], wanted: Grant): boolean {
  return grants.some(
    ({ role, workspaceId }) =>
      role === 'operator' || (workspaceId === wanted.workspaceId && coversRole(role, wanted.role)),
  )
}

function tooMuch(role: Role): Failure {
  return invalidRequest(
    `Your own role does not include the role ${role} there. Choose a role that it includes.`,
    'role',
  )
}

/** undefined = no such token, or it has expired, or its person may no longer do what it may do. */
export async function findToken(sql: Sql, secret: string, now: number): Promise<ManagementToken | undefined> {
  const [row] = await sql<TokenRow>`SELECT * FROM management_tokens WHERE hash = ${hashOfSecret(secret)}`
  const token = row && tokenFromRow(row)
  if (!token || token.expiresAt <= now) return undefined
  return covers(await grantsOf(sql, token.personId), token) ? token : undefined
}

export async function listTokens(sql: Sql, personId: PersonId, page: PageQuery): Promise<Page<ManagementToken>> {
  const rows = await sql<TokenRow>`SELECT * FROM management_tokens WHERE person_id = ${personId}
    AND id > ${afterCursor(page)} ORDER BY id LIMIT ${rowsWanted(page)}`
  return pageOf(rows.map(tokenFromRow), page)
}

export async function revokeToken(sql: Sql, id: string, personId: PersonId | undefined, act: Act): Promise<void> {
  const [row] = isId('tok', id) ? await sql<TokenRow>`SELECT * FROM management_tokens WHERE id = ${id}` : []
  if (!row || (personId !== undefined && row.person_id !== personId)) throw notFound('token', id)
  await sql`DELETE FROM management_tokens WHERE id = ${row.id}`
  await appendAudit(sql, { ...act, action: 'token.revoke', object: row.id })
}
