// Devices on which people are signed in, and their refresh tokens. A refresh token has 256 random bits of its sign-in, a
// generation and a code that only this installation can compute. Each use makes the next generation. The one before it is
// answered with the same successor for a minute, because two programs with one token renew it at the same moment; any older
// one was copied, and ends the sign-in. Functions that write run inside the caller's transaction; the caller invalidates the
// key afterwards.

import { createHmac, timingSafeEqual } from 'node:crypto'
import {
  createId,
  isId,
  type KeyId,
  type PersonId,
  type ProjectId,
  type SignInId,
  type WorkspaceId,
} from '../kernel/ids.ts'
import { type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import type { TokenSubject } from './access-tokens.ts'
import { appendAudit } from './audit.ts'
import { personKeyOf } from './keys.ts'
import { type Act, afterCursor, notFound, type Page, type PageQuery, pageOf, rowsWanted } from './management.ts'
import { createLinkSecret, denyApproved, endDevices, hashOfSecret } from './people.ts'

const dayMs = 86_400_000
/** A device that is not used for this long has to sign in again. */
const idleMs = 30 * dayMs
/** Every device has to sign in again after this time. */
const lifetimeMs = 90 * dayMs
const graceMs = 60_000

const prefix = 'tg-rt-'
/** As in an access token, the last letter of the code has two bits that mean nothing. */
const form = /^tg-rt-([\w-]{43})\.(\d{1,9})\.([\w-]{42}[AEIMQUYcgkosw048])$/

interface ReadRefreshToken {
  readonly secret: string
  readonly generation: number
}

export type RefreshTokens = ReturnType<typeof createRefreshTokens>

/** `previous`: of the master secret that is being replaced. */
export function createRefreshTokens(keys: {
  readonly current: Uint8Array
  readonly previous?: Uint8Array | undefined
}) {
  const codeOf = (key: Uint8Array, secret: string, generation: number) =>
    createHmac('sha256', key).update(`${secret}.${generation}`).digest()
  const accepted = keys.previous ? [keys.current, keys.previous] : [keys.current]
  return {
    render: (secret: string, generation: number) =>
      `${prefix}${secret}.${generation}.${codeOf(keys.current, secret, generation).toString('base64url')}`,
    /** undefined = it was not issued here. */
    read(token: string): ReadRefreshToken | undefined {
      const [, secret = '', digits = '', sent = ''] = form.exec(token) ?? []
      const [generation, code] = [Number(digits), Buffer.from(sent, 'base64url')]
      if (code.length !== 32 || String(generation) !== digits) return undefined
      const isOurs = accepted.some((key) => timingSafeEqual(code, codeOf(key, secret, generation)))
      return isOurs ? { secret, generation } : undefined
    },
  }
}

export interface NewSignIn {
  readonly personId: PersonId
  readonly projectId: ProjectId
  /** The program. */
  readonly client: string
  /** What the device calls itself. */
  readonly device: string
}

/** Who a token is issued to, and what the refresh token is made of. */
export interface Renewal {
  readonly subject: TokenSubject
  /** The names of where the person is signed in. */
  readonly place: { readonly workspace: string; readonly project: string }
  readonly keyId: KeyId
  readonly secret: string
  readonly generation: number
}

/** The caller has checked that the person may use the project. */
export async function createSignIn(sql: Sql, input: NewSignIn, at: number): Promise<Renewal> {
  const { personId, projectId, client, device } = input
  await forgetOver(sql, personId, at)
  const keyId = await personKeyOf(sql, { personId, projectId, at })
  const [id, secret] = [createId('sgn'), createLinkSecret()]
  const row = {
    id,
    key_id: keyId,
    person_id: personId,
    client,
    device,
    created_at: timeToSql(at),
    expires_at: timeToSql(at + lifetimeMs),
    refresh_hash: hashOfSecret(secret),
    generation: 1n,
    refreshed_at: timeToSql(at),
    idle_expires_at: timeToSql(at + idleMs),
  }
  await sql`INSERT INTO sign_ins ${sql([row])}`
  return {
    subject: await subjectOf(sql, id, personId),
    place: await placeOf(sql, keyId),
    ...{ keyId, secret, generation: 1 },
  }
}

/** After a day nothing that was issued for them is valid any more. */
async function forgetOver(sql: Sql, personId: PersonId, at: number): Promise<void> {
  const before = timeToSql(at - dayMs)
  await sql`DELETE FROM key_uses WHERE key_id IN (SELECT id FROM sign_ins WHERE person_id = ${personId}
    AND (idle_expires_at < ${before} OR revoked_at < ${before}))`
  await sql`DELETE FROM sign_ins WHERE person_id = ${personId}
    AND (idle_expires_at < ${before} OR revoked_at < ${before})`
}

async function subjectOf(sql: Sql, signInId: SignInId, personId: PersonId): Promise<TokenSubject> {
  const [person] = await sql<{ email: string; idp_groups: string | null }>`SELECT email, idp_groups FROM people
    WHERE id = ${personId}`
  const groups = JSON.parse(person?.idp_groups ?? '[]') as readonly string[]
  return { signInId, personId, email: person?.email ?? '', groups }
}

async function placeOf(sql: Sql, keyId: KeyId): Promise<Renewal['place']> {
  const [row] = await sql<Renewal['place']>`SELECT w.name AS workspace, p.name AS project
    FROM api_keys k JOIN projects p ON p.id = k.project_id JOIN workspaces w ON w.id = k.workspace_id
    WHERE k.id = ${keyId}`
  return { workspace: row?.workspace ?? '', project: row?.project ?? '' }
}

interface SignInRow {
  readonly id: SignInId
  readonly key_id: KeyId
  readonly person_id: PersonId
  readonly client: string
  readonly expires_at: bigint
  readonly revoked_at: bigint | null
  readonly generation: bigint
  readonly refreshed_at: bigint
  readonly idle_expires_at: bigint
}

export type RefusedRenewal = 'unknown' | 'ended' | 'expired' | 'reused'

/** `keyId`: the sign-in was ended by this, so the key's cached tokens have to go. */
export type RenewOutcome = Renewal | { readonly refused: RefusedRenewal; readonly keyId?: KeyId }

/** `at`: by the clock of the database, because the minute of grace is shorter than the clocks of replicas may differ. */
export async function renewSignIn(sql: Sql, token: ReadRefreshToken, at: number): Promise<RenewOutcome> {
  // Locked, so that of two renewals at the same moment the second finds what the first has done.
  const [row] = await sql<SignInRow>`SELECT * FROM sign_ins WHERE refresh_hash = ${hashOfSecret(token.secret)}
    FOR NO KEY UPDATE`
  if (!row) return { refused: 'unknown' }
  const [key] = await sql`SELECT id FROM api_keys WHERE id = ${row.key_id} AND revoked_at IS NULL`
  if (!key || row.revoked_at !== null) return { refused: 'ended' }
  if (timeFromSql(row.idle_expires_at) <= at) return { refused: 'expired' }
  const newest = Number(row.generation)
  if (token.generation > newest) return { refused: 'unknown' }
  const isRepeated = token.generation === newest - 1 && at - timeFromSql(row.refreshed_at) < graceMs
  if (token.generation < newest && !isRepeated) {
    await sql`UPDATE sign_ins SET revoked_at = ${timeToSql(at)} WHERE id = ${row.id}`
    const details = { person: row.person_id, generation: token.generation, newest }
    await appendAudit(sql, { actor: 'unknown', at, action: 'sign_in.reuse', object: row.id, details })
    return { refused: 'reused', keyId: row.key_id }
  }
  const generation = isRepeated ? newest : newest + 1
  if (!isRepeated) {
    const until = Math.min(at + idleMs, timeFromSql(row.expires_at))
    await sql`UPDATE sign_ins SET generation = ${BigInt(generation)}, refreshed_at = ${timeToSql(at)},
      idle_expires_at = ${timeToSql(until)} WHERE id = ${row.id}`
  }
  const subject = await subjectOf(sql, row.id, row.person_id)
  const place = await placeOf(sql, row.key_id)
  return { subject, place, keyId: row.key_id, secret: token.secret, generation }
}

const signInRow = rowFormat({
  id: text<SignInId>(),
  keyId: text<KeyId>(),
  personId: text<PersonId>(),
  email: text(),
  workspaceId: text<WorkspaceId>(),
  projectId: text<ProjectId>(),
  client: text(),
  device: text(),
  createdAt: time,
  /** When the device has to sign in again if it is not used before, and at the latest. */
  idleExpiresAt: time,
  expiresAt: time,
  /** Accurate to a minute or two; undefined = never. */
  lastUsedAt: optional(time),
})

export type SignIn = ItemIn<typeof signInRow>

export interface SignInQuery {
  readonly workspaceId?: WorkspaceId | undefined
  /** Only those of this person. */
  readonly personId?: PersonId | undefined
  readonly page: PageQuery
  readonly now: number
}

/** Those that are not over, oldest first. */
export async function listSignIns(sql: Sql, query: SignInQuery): Promise<Page<SignIn>> {
  const { workspaceId, personId, page, now } = query
  const at = timeToSql(now)
  const rows = await sql`SELECT s.*, o.email, k.workspace_id, k.project_id, u.last_used_at
    FROM sign_ins s JOIN api_keys k ON k.id = s.key_id JOIN people o ON o.id = s.person_id
    LEFT JOIN key_uses u ON u.key_id = s.id
    WHERE s.person_id = COALESCE(${personId ?? null}, s.person_id)
      AND k.workspace_id = COALESCE(${workspaceId ?? null}, k.workspace_id)
      AND s.revoked_at IS NULL AND k.revoked_at IS NULL AND s.idle_expires_at > ${at}
      AND s.id > ${afterCursor(page)} ORDER BY s.id LIMIT ${rowsWanted(page)}`
  return pageOf(signInRow.all(rows), page)
}

/** One that is over already stays unchanged. Returns its key. */
export async function endSignIn(sql: Sql, id: string, act: Act): Promise<KeyId> {
  const [row] = isId('sgn', id) ? await sql<SignInRow>`SELECT * FROM sign_ins WHERE id = ${id}` : []
  if (!row) throw notFound('device', id)
  const ended = await sql`UPDATE sign_ins SET revoked_at = ${timeToSql(act.at)}
    WHERE id = ${id} AND revoked_at IS NULL RETURNING id`
  if (ended.length > 0) {
    const details = { person: row.person_id, client: row.client }
    await appendAudit(sql, { ...act, action: 'sign_in.end', object: id, details })
  }
  return row.key_id
}

/** All of a person, in every workspace, and those that they approved and that were not fetched yet. */
export async function endSignInsOf(sql: Sql, personId: PersonId, act: Act): Promise<number> {
  const ended = await endDevices(sql, personId, act.at)
  await appendAudit(sql, { ...act, action: 'sign_in.end_all', object: personId, details: { ended } })
  return ended
}

/** All of everyone in a workspace, and those that were approved and not fetched yet. */
export async function endSignInsIn(sql: Sql, workspaceId: WorkspaceId, act: Act): Promise<number> {
  await denyApproved(sql, { workspaceId })
  const ended = await sql`UPDATE sign_ins SET revoked_at = ${timeToSql(act.at)}
    WHERE key_id IN (SELECT id FROM api_keys WHERE workspace_id = ${workspaceId})
      AND revoked_at IS NULL AND idle_expires_at > ${timeToSql(act.at)} RETURNING id`
  const details = { ended: ended.length }
  await appendAudit(sql, { ...act, action: 'sign_in.end_all', object: workspaceId, details })
  return ended.length
}

/** `secret`: of a refresh token of any generation. undefined = there is none, or it was ended. */
export async function findSignIn(
  sql: Sql,
  by: { readonly id: SignInId } | { readonly secret: string },
): Promise<{ readonly id: SignInId; readonly personId: PersonId } | undefined> {
  const [row] = await ('id' in by
    ? sql<SignInRow>`SELECT * FROM sign_ins WHERE id = ${by.id} AND revoked_at IS NULL`
    : sql<SignInRow>`SELECT * FROM sign_ins WHERE refresh_hash = ${hashOfSecret(by.secret)} AND revoked_at IS NULL`)
  return row && { id: row.id, personId: row.person_id }
}
