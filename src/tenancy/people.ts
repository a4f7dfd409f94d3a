// People, their roles in workspaces, the links that invite them or let them set a new password, and their passwords.
// Functions that write run inside the caller's transaction and add an audit entry to it. The audit log names people by id,
// so that removing a person removes their name and address everywhere.

import { createHash, randomBytes } from 'node:crypto'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import {
  createId,
  type InvitationId,
  isId,
  type KeyId,
  type MemberId,
  type PersonId,
  type WorkspaceId,
} from '../kernel/ids.ts'
import type { Role } from '../kernel/roles.ts'
import { type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import { templateOf } from '../store/insert-rows.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { appendAudit, lockAudit } from './audit.ts'
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

export interface Person {
  readonly id: PersonId
  readonly email: string
  readonly name: string
  readonly hasPassword: boolean
}

/** A role of a person, and where it applies. `workspaceId` is undefined for the role operator. */
export interface Grant {
  readonly role: Role
  readonly workspaceId: WorkspaceId | undefined
}

const memberRow = rowFormat({
  id: text<MemberId>(),
  personId: text<PersonId>(),
  workspaceId: optional(text<WorkspaceId>()),
  role: text<Role>(),
  source: text<MemberSource>(),
  createdAt: time,
  email: text(),
  name: text(),
})

export type Member = ItemIn<typeof memberRow>

export type MemberSource = 'invitation' | 'sign-up' | 'claim'

const invitationRow = rowFormat({
  id: text<InvitationId>(),
  email: text(),
  role: text<Role>(),
  workspaceId: optional(text<WorkspaceId>()),
  createdAt: time,
  expiresAt: time,
})

export type Invitation = ItemIn<typeof invitationRow>

export const invitationDays = 7
const invitationMs = invitationDays * 24 * 3_600_000
const resetMs = 24 * 3_600_000
const linkBytes = 32

/** The secret of a link or token. 256 random bits, so its hash needs no salt and cannot be reversed. */
export function createLinkSecret(): string {
  return randomBytes(linkBytes).toString('base64url')
}

export function hashOfSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/** One @ with something before it and a domain after it; whether mail arrives there is not checked. */
const addressForm = /^[^\s@<>"(),:;\\[\]]{1,64}@[^\s@<>"(),:;\\[\]_]{1,190}$/

export function checkEmail(text: string, field = 'email'): string {
  const email = text.trim().toLowerCase()
  if (!addressForm.test(email))
    throw invalidRequest(`\`${field}\` must be an e-mail address such as ada@example.com.`, field)
  return email
}

interface PersonRow {
  readonly id: PersonId
  readonly email: string
  readonly name: string
  readonly password_hash: string | null
}

export async function findPerson(
  sql: Sql,
  by: { readonly id: string } | { readonly email: string } | { readonly subject: string },
): Promise<(Person & { readonly passwordHash: string | undefined }) | undefined> {
  const [row] = await ('id' in by
    ? sql<PersonRow>`SELECT id, email, name, password_hash FROM people WHERE id = ${by.id}`
    : 'email' in by
      ? sql<PersonRow>`SELECT id, email, name, password_hash FROM people WHERE email = ${by.email}`
      : sql<PersonRow>`SELECT id, email, name, password_hash FROM people WHERE oidc_subject = ${by.subject}`)
  if (!row) return undefined
  const { id, email, name, password_hash: hash } = row
  return { id, email, name, hasPassword: hash !== null, passwordHash: hash ?? undefined }
}

/** The addresses of people, by their ids and by the ids of their tokens. Other actors have none. */
export async function emailsOfActors(sql: Sql, actors: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(actors)]
  if (ids.length === 0) return new Map()
  const list = ids.map(() => '?').join(', ')
  const text = `SELECT id AS actor, email FROM people WHERE id IN (${list}) UNION ALL
    SELECT t.id AS actor, p.email FROM management_tokens t JOIN people p ON p.id = t.person_id WHERE t.id IN (${list})`
  const rows = await sql<{ actor: string; email: string }>(templateOf(text.split('?')), ...ids, ...ids)
  return new Map(rows.map(({ actor, email }) => [actor, email]))
}

export async function grantsOf(sql: Sql, personId: PersonId): Promise<readonly Grant[]> {
  const rows = await sql<{ role: Role; workspace_id: WorkspaceId | null }>`SELECT role, workspace_id FROM members
    WHERE person_id = ${personId} ORDER BY id`
  return rows.map(({ role, workspace_id }) => ({ role, workspaceId: workspace_id ?? undefined }))
}

/** Members of one workspace, or of all, with the operators. */
export async function listMembers(
  sql: Sql,
  workspaceId: WorkspaceId | undefined,
  page: PageQuery,
): Promise<Page<Member>> {
  const [after, count] = [afterCursor(page), rowsWanted(page)]
  const rows = await (workspaceId === undefined
    ? sql`SELECT m.*, p.email, p.name FROM members m JOIN people p ON p.id = m.person_id
        WHERE m.id > ${after} ORDER BY m.id LIMIT ${count}`
    : sql`SELECT m.*, p.email, p.name FROM members m JOIN people p ON p.id = m.person_id
        WHERE m.workspace_id = ${workspaceId} AND m.id > ${after} ORDER BY m.id LIMIT ${count}`)
  return pageOf(memberRow.all(rows), page)
}

export async function getMember(sql: Sql, id: string): Promise<Member> {
  const rows = isId('mem', id)
    ? await sql`SELECT m.*, p.email, p.name FROM members m JOIN people p ON p.id = m.person_id WHERE m.id = ${id}`
    : []
  const member = memberRow.first(rows)
  if (!member) throw notFound('member', id)
  return member
}

/** Whether the last admin of a workspace, or the last operator, may leave. */
export interface LastOne {
  readonly mayLeave: boolean
}

export async function changeRole(sql: Sql, id: string, role: Role, act: Act, last: LastOne): Promise<Member> {
  const member = await getMember(sql, id)
  if ((member.role === 'operator') !== (role === 'operator')) {
    throw invalidRequest(
      'An operator has no other role, and operators are invited as such. Remove the member and invite again.',
      'role',
    )
  }
  if (member.role === role) return member
  // Written before it is counted: of two admins who demote each other, the second waits and then finds itself the last.
  await lockMembers(sql, member.workspaceId)
  await sql`UPDATE members SET role = ${role}, source = 'invitation' WHERE id = ${member.id}`
  if (member.role === 'admin' && !last.mayLeave) await checkNotLast(sql, member)
  const details = { person: member.personId, workspace: member.workspaceId ?? null, from: member.role, to: role }
  await appendAudit(sql, { ...act, action: 'member.update', object: member.id, details })
  return { ...member, role, source: 'invitation' }
}

export interface RemovedMember {
  readonly member: Member
  /** The person's own keys that were revoked. */
  readonly keys: readonly KeyId[]
}

/**
 * Ends the membership with everything that depends on it: the person's tokens and own keys in the workspace, and with the
 * last membership the sessions and the person. Sessions and tokens are looked up for every request, so they end on all
 * replicas with the commit; the caller invalidates the workspace's cached keys.
 */
export async function removeMember(sql: Sql, id: string, act: Act, last: LastOne): Promise<RemovedMember> {
  const member = await getMember(sql, id)
  const { personId, workspaceId } = member
  await lockMembers(sql, workspaceId)
  await denyApproved(sql, { personId, workspaceId })
  const removed = await sql`DELETE FROM members WHERE id = ${member.id} RETURNING id`
  if (removed.length === 0) throw notFound('member', id)
  if ((member.role === 'admin' || member.role === 'operator') && !last.mayLeave) await checkNotLast(sql, member)
  await sql`DELETE FROM management_tokens WHERE person_id = ${personId}
    AND COALESCE(workspace_id, '') = ${workspaceId ?? ''}`
  // An invitation that waits for the same address would let the person back in.
  await sql`DELETE FROM invitations WHERE email = ${member.email}
    AND (COALESCE(workspace_id, '') = ${workspaceId ?? ''} OR role IS NULL)`
  const keys = await (workspaceId === undefined
    ? sql<{
        id: KeyId
      }>`UPDATE api_keys SET revoked_at = ${timeToSql(act.at)} WHERE owner_id = ${personId} AND revoked_at IS NULL
        AND workspace_id NOT IN (SELECT workspace_id FROM members WHERE person_id = ${personId}) RETURNING id`
    : sql<{
        id: KeyId
      }>`UPDATE api_keys SET revoked_at = ${timeToSql(act.at)} WHERE owner_id = ${personId} AND revoked_at IS NULL
        AND workspace_id = ${workspaceId} RETURNING id`)
  await sql`DELETE FROM group_members WHERE member_id = ${personId} AND group_id IN (SELECT id FROM groups
    WHERE workspace_id = ${workspaceId ?? ''})`
  const [other] = await sql`SELECT id FROM members WHERE person_id = ${personId} LIMIT 1`
  if (!other) await deletePerson(sql, personId)
  const details = { person: personId, workspace: workspaceId ?? null, role: member.role, keys: keys.length }
  await appendAudit(sql, { ...act, action: 'member.remove', object: member.id, details })
  return { member, keys: keys.map((key) => key.id) }
}

/**
 * For someone who may no longer sign in with the identity provider: ends their sessions, devices and roles from groups, and
 * all their tokens and own keys. Other roles stay, for when the person may sign in again. Someone who has a password can
 * still sign in with it, so what depends on their other roles stays too. Returns the keys that were revoked.
 */
export async function endAccess(
  sql: Sql,
  { id, hasPassword }: Person,
  reason: string,
  act: Act,
): Promise<readonly KeyId[]> {
  const sessions = await sql`DELETE FROM console_sessions WHERE person_id = ${id} RETURNING id`
  const devices = await endDevices(sql, id, act.at)
  const tokens = hasPassword ? [] : await sql`DELETE FROM management_tokens WHERE person_id = ${id} RETURNING id`
  const all = hasPassword
    ? []
    : await sql<{ id: KeyId }>`UPDATE api_keys SET revoked_at = ${timeToSql(act.at)}
        WHERE owner_id = ${id} AND revoked_at IS NULL RETURNING id`
  const keys = all.map((key) => key.id)
  const roles = await sql<{ id: MemberId }>`SELECT id FROM members WHERE person_id = ${id} AND source = 'claim'`
  for (const role of roles) keys.push(...(await removeMember(sql, role.id, act, { mayLeave: true })).keys)
  const ended = { sessions: sessions.length, devices, tokens: tokens.length, keys: keys.length, roles: roles.length }
  if (Object.values(ended).some((count) => count > 0)) {
    await appendAudit(sql, { ...act, action: 'person.end_access', object: id, details: { reason, ...ended } })
  }
  return keys
}

/** For the erasure of a workspace: its members, and the people who belong to no other. */
export async function removePeopleOf(sql: Sql, workspaceId: WorkspaceId): Promise<void> {
  await sql`DELETE FROM invitations WHERE workspace_id = ${workspaceId}`
  await sql`DELETE FROM management_tokens WHERE workspace_id = ${workspaceId}`
  const removed = await sql<{ person_id: PersonId }>`DELETE FROM members WHERE workspace_id = ${workspaceId}
    RETURNING person_id`
  for (const { person_id: id } of removed) {
    const [other] = await sql`SELECT id FROM members WHERE person_id = ${id} LIMIT 1`
    if (!other) await deletePerson(sql, id)
  }
}

/**
 * Devices that were approved and have not fetched their tokens yet get none. Called before what they depend on ends: of a
 * poll at the same moment this waits for the sign-in, which the caller then ends.
 */
export async function denyApproved(
  sql: Sql,
  { personId, workspaceId, projectId }: Partial<Record<'personId' | 'workspaceId' | 'projectId', string | undefined>>,
): Promise<void> {
  await sql`UPDATE device_grants SET state = 'denied', person_id = NULL, project_id = NULL
    WHERE state = 'approved' AND person_id = COALESCE(${personId ?? null}, person_id) AND project_id IN
      (SELECT id FROM projects WHERE id = COALESCE(${projectId ?? null}, id)
        AND workspace_id = COALESCE(${workspaceId ?? null}, workspace_id))`
}

/** Signs the person out on all devices, in every workspace. The caller invalidates the person. Returns how many it were. */
export async function endDevices(sql: Sql, personId: PersonId, at: number): Promise<number> {
  await denyApproved(sql, { personId })
  const ended = await sql`UPDATE sign_ins SET revoked_at = ${timeToSql(at)}
    WHERE person_id = ${personId} AND revoked_at IS NULL AND idle_expires_at > ${timeToSql(at)} RETURNING id`
  return ended.length
}

/** Their keys are ended by the caller. */
export async function deleteSignIns(sql: Sql, id: PersonId): Promise<void> {
  await denyApproved(sql, { personId: id })
  await sql`DELETE FROM key_uses WHERE key_id IN (SELECT id FROM sign_ins WHERE person_id = ${id})`
  await sql`DELETE FROM sign_ins WHERE person_id = ${id}`
}

async function deletePerson(sql: Sql, id: PersonId): Promise<void> {
  await sql`DELETE FROM console_sessions WHERE person_id = ${id}`
  await sql`DELETE FROM management_tokens WHERE person_id = ${id}`
  await sql`DELETE FROM deliveries WHERE person_id = ${id}`
  await sql`DELETE FROM alert_readers WHERE reader = ${id}`
  await deleteSignIns(sql, id)
  await sql`DELETE FROM group_members WHERE member_id = ${id}`
  await sql`DELETE FROM people WHERE id = ${id}`
}

/** Changes of the members of one workspace wait for each other, on every replica; so do those of operators. */
async function lockMembers(sql: Sql, workspaceId: WorkspaceId | undefined): Promise<void> {
  if (workspaceId !== undefined) await sql`SELECT id FROM workspaces WHERE id = ${workspaceId} FOR NO KEY UPDATE`
  else await lockAudit(sql)
}

async function checkNotLast(sql: Sql, { workspaceId, role }: Member): Promise<void> {
  const [other] = await sql`SELECT id FROM members WHERE COALESCE(workspace_id, '') = ${workspaceId ?? ''}
    AND role = ${role} LIMIT 1`
  if (other) return
  throw role === 'operator'
    ? invalidRequest('This is the last operator. Invite another one first, or use the management token.')
    : invalidRequest('This is the last admin of the workspace. Make someone else admin first, or ask an operator.')
}

export interface InvitationInput {
  readonly email: string
  readonly role: Role
  readonly workspaceId: WorkspaceId | undefined
}

/** Replaces an earlier invitation of the same address to the same workspace. The secret is returned once. */
export async function createInvitation(
  sql: Sql,
  input: InvitationInput,
  act: Act,
): Promise<{ readonly invitation: Invitation; readonly secret: string }> {
  const email = checkEmail(input.email)
  const { role, workspaceId } = input
  if ((role === 'operator') !== (workspaceId === undefined)) {
    throw role === 'operator'
      ? invalidRequest('Operators belong to no workspace: leave out `workspace_id`.', 'workspace_id')
      : invalidRequest(`\`workspace_id\` is required for the role ${role}.`, 'workspace_id')
  }
  const [known] = await sql`SELECT m.id FROM members m JOIN people p ON p.id = m.person_id
    WHERE p.email = ${email} AND COALESCE(m.workspace_id, '') = ${workspaceId ?? ''}`
  if (known) throw invalidRequest('This person is a member already. Change their role instead.', 'email')
  await sql`DELETE FROM invitations WHERE email = ${email} AND role IS NOT NULL
    AND COALESCE(workspace_id, '') = ${workspaceId ?? ''}`
  const secret = createLinkSecret()
  const times = { createdAt: act.at, expiresAt: act.at + invitationMs }
  const invitation: Invitation = { id: createId('inv'), email, role, workspaceId, ...times }
  await sql`INSERT INTO invitations ${sql([{ ...invitationRow.write(invitation), hash: hashOfSecret(secret) }])}`
  const details = { workspace: workspaceId ?? null, role }
  await appendAudit(sql, { ...act, action: 'invitation.create', object: invitation.id, details })
  return { invitation, secret }
}

/** Invitations that can still be accepted. */
export async function listInvitations(
  sql: Sql,
  workspaceId: WorkspaceId | undefined,
  page: PageQuery,
  now: number,
): Promise<Page<Invitation>> {
  const [after, count, at] = [afterCursor(page), rowsWanted(page), timeToSql(now)]
  const rows = await (workspaceId === undefined
    ? sql`SELECT * FROM invitations WHERE role IS NOT NULL AND expires_at > ${at} AND id > ${after}
        ORDER BY id LIMIT ${count}`
    : sql`SELECT * FROM invitations WHERE workspace_id = ${workspaceId} AND role IS NOT NULL
        AND expires_at > ${at} AND id > ${after} ORDER BY id LIMIT ${count}`)
  return pageOf(invitationRow.all(rows), page)
}

export async function listInvitationsOf(sql: Sql, email: string, now: number): Promise<readonly Invitation[]> {
  const rows = await sql`SELECT * FROM invitations WHERE email = ${email} AND role IS NOT NULL
    AND expires_at > ${timeToSql(now)} ORDER BY id`
  return invitationRow.all(rows)
}

export async function revokeInvitation(sql: Sql, id: string, act: Act): Promise<void> {
  const removed = await sql`DELETE FROM invitations WHERE id = ${id} AND role IS NOT NULL RETURNING id`
  if (removed.length === 0) throw notFound('invitation', id)
  await appendAudit(sql, { ...act, action: 'invitation.revoke', object: id })
}

/** A link with which the person sets a new password, for a day. Earlier ones end. */
export async function createResetLink(
  sql: Sql,
  member: Member,
  act: Act,
): Promise<{ readonly secret: string; readonly expiresAt: number }> {
  await sql`DELETE FROM invitations WHERE email = ${member.email} AND role IS NULL`
  const secret = createLinkSecret()
  const expiresAt = act.at + resetMs
  const row = {
    id: createId('inv'),
    hash: hashOfSecret(secret),
    email: member.email,
    workspace_id: null,
    role: null,
    created_at: timeToSql(act.at),
    expires_at: timeToSql(expiresAt),
  }
  await sql`INSERT INTO invitations ${sql([row])}`
  await appendAudit(sql, { ...act, action: 'person.reset_link', object: member.personId })
  return { secret, expiresAt }
}

export type OpenLink =
  | (Invitation & { readonly kind: 'invitation' })
  | { readonly kind: 'reset'; readonly id: InvitationId; readonly email: string }

/** Looks at a link without using it; undefined if it does not exist or has expired. */
export async function findLink(sql: Sql, secret: string, now: number): Promise<OpenLink | undefined> {
  const [row] = await sql<{ role: Role | null; id: InvitationId; email: string }>`SELECT * FROM invitations
    WHERE hash = ${hashOfSecret(secret)} AND expires_at > ${timeToSql(now)}`
  if (!row) return undefined
  if (row.role === null) return { kind: 'reset', id: row.id, email: row.email }
  return { kind: 'invitation', ...invitationRow.read(row) }
}

/** Removes the link in the transaction that uses it, so that of two simultaneous uses one succeeds. */
async function takeLink(sql: Sql, id: InvitationId): Promise<void> {
  const taken = await sql`DELETE FROM invitations WHERE id = ${id} RETURNING id`
  if (taken.length === 0) throw spentLink()
}

export function spentLink(): Failure {
  return new Failure(
    'UNAUTHORIZED',
    'This link was already used, was withdrawn or has expired. Ask an admin of the workspace for a new one.',
  )
}

export interface NewPerson {
  readonly email: string
  readonly name: string
  readonly passwordHash?: string | undefined
  readonly subject?: string | undefined
}

export async function insertPerson(sql: Sql, person: NewPerson, at: number): Promise<PersonId> {
  checkName(person.name)
  const id = createId('per')
  const row = {
    id,
    email: person.email,
    name: person.name,
    password_hash: person.passwordHash ?? null,
    oidc_subject: person.subject ?? null,
    created_at: timeToSql(at),
  }
  await sql`INSERT INTO people ${sql([row])}`
  return id
}

/** Gives the person, who may be new, the role of the invitation. Only the invited address can accept it. */
export async function acceptInvitation(
  sql: Sql,
  invitation: Invitation,
  person: Person | NewPerson,
  at: number,
): Promise<PersonId> {
  if (person.email !== invitation.email) {
    throw new Failure('FORBIDDEN', `This invitation is for ${invitation.email}. Sign in with that address.`)
  }
  await takeLink(sql, invitation.id)
  const personId = 'id' in person ? person.id : await insertPerson(sql, person, at)
  const { role, workspaceId } = invitation
  await addMember(sql, personId, { role, workspaceId }, 'invitation', at)
  const details = { person: personId, workspace: workspaceId ?? null, role }
  await appendAudit(sql, { actor: personId, at, action: 'invitation.accept', object: invitation.id, details })
  return personId
}

export async function addMember(
  sql: Sql,
  personId: PersonId,
  { role, workspaceId }: Grant,
  source: MemberSource,
  at: number,
): Promise<void> {
  const row = {
    id: createId('mem'),
    person_id: personId,
    workspace_id: workspaceId ?? null,
    role,
    source,
    created_at: timeToSql(at),
  }
  await sql`INSERT INTO members ${sql([row])} ON CONFLICT DO NOTHING`
}

/**
 * Ends all sessions of the person, and signs them out on all devices: someone who knows the old password may have one. The
 * caller invalidates the person.
 */
export async function setPassword(sql: Sql, personId: PersonId, passwordHash: string, at: number): Promise<void> {
  await sql`UPDATE people SET password_hash = ${passwordHash} WHERE id = ${personId}`
  await sql`DELETE FROM console_sessions WHERE person_id = ${personId}`
  await endDevices(sql, personId, at)
}

export async function resetPassword(
  sql: Sql,
  link: { readonly id: InvitationId; readonly email: string },
  passwordHash: string,
  at: number,
): Promise<PersonId> {
  await takeLink(sql, link.id)
  const person = await findPerson(sql, { email: link.email })
  if (!person) throw spentLink()
  await setPassword(sql, person.id, passwordHash, at)
  await appendAudit(sql, {
    actor: person.id,
    at,
    action: 'person.password',
    object: person.id,
    details: { by: 'link' },
  })
  return person.id
}

// Passwords.

const passwordLengthMin = 10
const passwordLengthMax = 200

export function checkPassword(password: string): void {
  if (password.length < passwordLengthMin) {
    throw invalidRequest(`A password has at least ${passwordLengthMin} characters.`, 'password')
  }
  if (password.length > passwordLengthMax) {
    throw invalidRequest(`A password has at most ${passwordLengthMax} characters.`, 'password')
  }
}

/** OWASP's parameters for Argon2id: 19 MiB, two passes. */
const argon2 = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const

export type Passwords = ReturnType<typeof createPasswords>

/** Each check takes 19 MiB and some 50 ms of a core; more at a time would starve the requests. */
const checksMax = 2
const waitingMax = 256
/** Of one network or person, so that none of them can keep everyone else from signing in. */
const ownMax = 8

export function createPasswords() {
  let running = 0
  const waiting: (() => void)[] = []
  const begunBy = new Map<string, number>()
  let decoy: Promise<string> | undefined
  const inTurn = async <T>(by: string, work: () => Promise<T>): Promise<T> => {
    const own = begunBy.get(by) ?? 0
    if (own >= ownMax || (running >= checksMax && waiting.length >= waitingMax)) {
      throw new Failure('LIMIT_EXCEEDED', 'Too many people are signing in. Retry in a second.', { retryAfterMs: 1000 })
    }
    begunBy.set(by, own + 1)
    if (running >= checksMax) await new Promise<void>((resolve) => waiting.push(resolve))
    running++
    try {
      return await work()
    } finally {
      running--
      const left = (begunBy.get(by) ?? 1) - 1
      if (left === 0) begunBy.delete(by)
      else begunBy.set(by, left)
      waiting.shift()?.()
    }
  }
  return {
    /** `by`: the network or person whose turn it takes. */
    hash: (password: string, by: string) => inTurn(by, () => Bun.password.hash(password, argon2)),
    /** Takes as long without a stored hash, so that response times do not reveal which addresses have an account. */
    async verify(password: string, hash: string | undefined, by: string): Promise<boolean> {
      decoy ??= Bun.password.hash(createLinkSecret(), argon2)
      const compared = hash ?? (await decoy)
      const isRight = await inTurn(by, () => Bun.password.verify(password.slice(0, passwordLengthMax + 1), compared))
      return isRight && hash !== undefined
    },
  }
}
