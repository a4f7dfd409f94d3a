// Personal management tokens: a person's access to the management API for scripts, with a role, a workspace and an expiry.
// A token never does more than its person may do now: if the person's role no longer covers it, it is void.

import { type Failure, invalidRequest } from '../kernel/failure.ts'
import { createId, isId, type PersonId, type TokenId, type WorkspaceId } from '../kernel/ids.ts'
import { coversRole, type Role } from '../kernel/roles.ts'
import { type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Sql } from '../store/sql.ts'
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

const tokenRow = rowFormat({
  id: text<TokenId>(),
  personId: text<PersonId>(),
  workspaceId: optional(text<WorkspaceId>()),
  role: text<Role>(),
  name: text(),
  last4: text(),
  createdAt: time,
  expiresAt: time,
})

export type ManagementToken = ItemIn<typeof tokenRow>

export const tokenPrefix = 'tg-mt-'
const dayMs = 24 * 3_600_000
const tokensMax = 100

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
  await sql`INSERT INTO management_tokens ${sql([{ ...tokenRow.write(token), hash: hashOfSecret(secret) }])}`
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
  const token = tokenRow.first(await sql`SELECT * FROM management_tokens WHERE hash = ${hashOfSecret(secret)}`)
  if (!token || token.expiresAt <= now) return undefined
  return covers(await grantsOf(sql, token.personId), token) ? token : undefined
}

export async function listTokens(sql: Sql, personId: PersonId, page: PageQuery): Promise<Page<ManagementToken>> {
  const rows = await sql`SELECT * FROM management_tokens WHERE person_id = ${personId}
    AND id > ${afterCursor(page)} ORDER BY id LIMIT ${rowsWanted(page)}`
  return pageOf(tokenRow.all(rows), page)
}

export async function revokeToken(sql: Sql, id: string, personId: PersonId | undefined, act: Act): Promise<void> {
  const token = isId('tok', id)
    ? tokenRow.first(await sql`SELECT * FROM management_tokens WHERE id = ${id}`)
    : undefined
  if (!token || (personId !== undefined && token.personId !== personId)) throw notFound('token', id)
  await sql`DELETE FROM management_tokens WHERE id = ${token.id}`
  await appendAudit(sql, { ...act, action: 'token.revoke', object: token.id })
}
