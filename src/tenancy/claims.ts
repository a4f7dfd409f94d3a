// From what an identity provider says about someone to a person here: by their subject, by their verified address, by
// invitation, by the roles that the operator mapped to groups, or by sign-up where the operator allows it.

import { Failure } from '../kernel/failure.ts'
import type { KeyId, PersonId, WorkspaceId } from '../kernel/ids.ts'
import { type Role, roles } from '../kernel/roles.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { appendAudit } from './audit.ts'
import { nameFrom } from './management.ts'
import {
  acceptInvitation,
  addMember,
  deleteSignIns,
  endAccess,
  findPerson,
  grantsOf,
  type Invitation,
  insertPerson,
  listInvitationsOf,
  type NewPerson,
  removeMember,
} from './people.ts'
import { createProject, createWorkspace } from './workspaces.ts'

/** Who may create an account without an invitation. */
export type SignUpMode = 'invite' | 'oidc' | 'open'

export interface MappedRole {
  /** A value of the group claim. */
  readonly group: string
  readonly role: Role
  /** undefined with the role operator. */
  readonly workspaceId: WorkspaceId | undefined
}

export interface ClaimRules {
  readonly mode: SignUpMode
  /** Empty = every domain. An address in one of them counts as verified. */
  readonly allowedDomains: readonly string[]
  readonly requiredGroup: string | undefined
  readonly groupClaim: string
  readonly roles: readonly MappedRole[]
}

export type Claims = Readonly<Record<string, unknown>> & { readonly iss: string; readonly sub: string }

interface Identity {
  readonly subject: string
  readonly email: string
  readonly name: string
  /** undefined = the provider does not say. */
  readonly groups: readonly string[] | undefined
}

interface NotAllowed {
  readonly failure: Failure
  /** Why the person's access ends, for the audit log; undefined = the provider's answer is no reason to end it. */
  readonly reason: 'domain' | 'group' | 'unverified address' | undefined
}

function refuse(message: string): Failure {
  return new Failure('FORBIDDEN', message)
}

/** Whether the rules need something that is not in these claims. */
export function isIncomplete(claims: Claims, { requiredGroup, groupClaim, roles }: ClaimRules): boolean {
  const { email } = claims
  const needsGroups = requiredGroup !== undefined || roles.length > 0
  return email === undefined || (needsGroups && claims[groupClaim] === undefined)
}

/** Checks first what is a reason to end someone's access. */
function identityOf(claims: Claims, { allowedDomains, requiredGroup, groupClaim }: ClaimRules): Identity | NotAllowed {
  const { email: sent, email_verified: verified, name } = claims
  const email = typeof sent === 'string' ? sent.trim().toLowerCase() : ''
  const domain = email.split('@')[1] ?? ''
  const isAllowed = allowedDomains.includes(domain)
  if (domain !== '' && allowedDomains.length > 0 && !isAllowed) {
    const message = `Addresses of ${domain} may not sign in here. Use an address of your organisation.`
    return { failure: refuse(message), reason: 'domain' }
  }
  const groups = groupsIn(claims, groupClaim)
  if (requiredGroup !== undefined && !groups?.includes(requiredGroup)) {
    const message = groups
      ? `You are not in the group ${requiredGroup}, which may sign in here. Ask your administrator.`
      : 'The identity provider does not send your groups, because there are too many. Ask your administrator.'
    return { failure: refuse(message), reason: groups && 'group' }
  }
  if (domain === '') {
    const message = 'The identity provider sent no e-mail address. Allow the scope `email` there.'
    return { failure: refuse(message), reason: undefined }
  }
  if (verified !== true && !isAllowed) {
    const message = 'The identity provider has not verified your e-mail address. Verify it there and sign in again.'
    // Some providers never say whether an address is verified.
    return { failure: refuse(message), reason: verified === false ? 'unverified address' : undefined }
  }
  const shown = nameFrom(typeof name === 'string' ? name : '') || nameFrom(email)
  return { subject: subjectOf(claims), email, name: shown, groups }
}

function subjectOf({ iss, sub }: Claims): string {
  return `${iss} ${sub}`
}

/** No claim means no group: many providers leave an empty list out. */
function groupsIn(claims: Claims, groupClaim: string): readonly string[] | undefined {
  const { _claim_names: elsewhere } = claims
  const value = claims[groupClaim]
  // The provider keeps the list elsewhere (OpenID Connect Core, 5.6.2), as Entra ID does with more than 200 groups.
  const isElsewhere = typeof elsewhere === 'object' && elsewhere !== null && Object.hasOwn(elsewhere, groupClaim)
  if (value === undefined && isElsewhere) return undefined
  return [value].flat().filter((group): group is string => typeof group === 'string')
}

export interface SignedUp {
  readonly personId: PersonId
  /** A workspace that was created for a new person, and gets the opening credit. */
  readonly workspaceId?: WorkspaceId
}

export interface SignIn {
  readonly outcome: SignedUp | Failure
  /** Own keys that the person lost; the caller invalidates them. */
  readonly revokedKeys: readonly KeyId[]
  /** Whose roles may have changed; the caller invalidates them too. undefined = no person here. */
  readonly personId: PersonId | undefined
}

export async function signInByClaims(
  database: Database,
  claims: Claims,
  rules: ClaimRules,
  at: number,
): Promise<SignIn> {
  const identity = identityOf(claims, rules)
  try {
    return await database.transaction((sql) =>
      'failure' in identity ? turnAway(sql, claims, identity, at) : enter(sql, identity, rules, at),
    )
  } catch (thrown) {
    if (thrown instanceof Failure) return { outcome: thrown, revokedKeys: [], personId: undefined }
    throw thrown
  }
}

/** Only a known subject loses anything: an address alone may be someone else's. */
async function turnAway(sql: Sql, claims: Claims, { failure, reason }: NotAllowed, at: number): Promise<SignIn> {
  const person = reason && (await findPerson(sql, { subject: subjectOf(claims) }))
  const revokedKeys = person ? await endAccess(sql, person, reason, { actor: 'identity provider', at }) : []
  return { outcome: failure, revokedKeys, personId: person?.id }
}

async function enter(sql: Sql, identity: Identity, rules: ClaimRules, at: number): Promise<SignIn> {
  const mapped = mappedRoles(rules, identity.groups ?? [])
  const invitations = await listInvitationsOf(sql, identity.email, at)
  const bySubject = await findPerson(sql, { subject: identity.subject })
  const linked = bySubject ? undefined : await link(sql, identity, at)
  const known = bySubject ?? linked?.person
  if (!known && mapped.length + invitations.length === 0) {
    if (rules.mode === 'invite') throw refuse('You have no account here. Ask an admin of your workspace to invite you.')
    const outcome = await signUp(sql, identity, at)
    await keepGroups(sql, outcome.personId, identity)
    return { outcome, revokedKeys: [], personId: undefined }
  }
  const personId = known?.id ?? (await insertPerson(sql, identity, at))
  await acceptAll(sql, invitations, personId, at)
  const revokedKeys = [
    ...(linked?.revokedKeys ?? []),
    ...(identity.groups ? await applyMapping(sql, personId, mapped, at) : []),
  ]
  await keepGroups(sql, personId, identity)
  if ((await grantsOf(sql, personId)).length > 0) return { outcome: { personId }, revokedKeys, personId }
  // Returned, not thrown, so that the revoked roles stay revoked.
  const message = 'Your account has no role here any more. Ask an admin of your workspace to invite you.'
  return { outcome: refuse(message), revokedKeys, personId }
}

/** More than a provider sends in a token. */
const groupsMax = 500

/** For managed settings and telemetry. If the provider does not send them, the last ones stay. */
async function keepGroups(sql: Sql, personId: PersonId, { groups }: Identity): Promise<void> {
  if (!groups) return
  await sql`UPDATE people SET idp_groups = ${JSON.stringify(groups.slice(0, groupsMax))} WHERE id = ${personId}`
}

/** One role for each workspace: the highest, if several groups have a role there. */
function mappedRoles(rules: ClaimRules, groups: readonly string[]): readonly MappedRole[] {
  const highestFirst = rules.roles
    .filter(({ group }) => groups.includes(group))
    .toSorted((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role))
  return highestFirst.filter(
    ({ workspaceId }, at) => highestFirst.findIndex((other) => other.workspaceId === workspaceId) === at,
  )
}

async function acceptAll(sql: Sql, invitations: readonly Invitation[], id: PersonId, at: number): Promise<void> {
  const person = await findPerson(sql, { id })
  // The person's address here may differ from the provider's by now; an invitation is for the address it names.
  for (const invitation of invitations)
    if (person?.email === invitation.email) await acceptInvitation(sql, invitation, person, at)
}

/** The first sign-in of someone who has a local account with this address. */
async function link(sql: Sql, { email, subject }: Identity, at: number) {
  const person = await findPerson(sql, { email })
  if (!person) return undefined
  const linked = await sql`UPDATE people SET oidc_subject = ${subject} WHERE id = ${person.id} AND oidc_subject IS NULL
    RETURNING id`
  if (linked.length === 0) {
    throw refuse(
      'This address belongs to another account of the identity provider. Ask an operator to remove the old one.',
    )
  }
  const [invited] = await sql`SELECT id FROM members WHERE person_id = ${person.id} AND source <> 'sign-up' LIMIT 1`
  if (!invited) {
    // Anyone can sign up with any address. Such a person must not share the account with its owner.
    await sql`UPDATE people SET password_hash = NULL WHERE id = ${person.id}`
    await sql`DELETE FROM console_sessions WHERE person_id = ${person.id}`
    await sql`DELETE FROM management_tokens WHERE person_id = ${person.id}`
    await deleteSignIns(sql, person.id)
    const revoked = await sql<{ id: KeyId }>`UPDATE api_keys SET revoked_at = ${timeToSql(at)}
      WHERE owner_id = ${person.id} AND revoked_at IS NULL RETURNING id`
    return { person, revokedKeys: revoked.map(({ id }) => id) }
  }
  return { person, revokedKeys: [] }
}

/** Roles from groups follow the claim: at every sign-in they are added, changed and taken away. Returns revoked keys. */
async function applyMapping(
  sql: Sql,
  personId: PersonId,
  mapped: readonly MappedRole[],
  at: number,
): Promise<readonly KeyId[]> {
  const held = await sql<{ id: string; workspace_id: WorkspaceId | null; role: Role; source: string }>`SELECT id,
    workspace_id, role, source FROM members WHERE person_id = ${personId}`
  const act = { actor: 'identity provider', at }
  for (const { role, workspaceId } of mapped) {
    const before = held.find(({ workspace_id }) => (workspace_id ?? undefined) === workspaceId)
    if (!before) await addMember(sql, personId, { role, workspaceId }, 'claim', at)
    else if (before.source === 'claim') await sql`UPDATE members SET role = ${role} WHERE id = ${before.id}`
    if (before?.role === role || (before && before.source !== 'claim')) continue
    const details = { workspace: workspaceId ?? null, role }
    await appendAudit(sql, { ...act, action: 'member.claim', object: personId, details })
  }
  const revoked: KeyId[] = []
  for (const { id, workspace_id, source } of held) {
    const isMapped = mapped.some(({ workspaceId }) => workspaceId === (workspace_id ?? undefined))
    if (source !== 'claim' || isMapped) continue
    revoked.push(...(await removeMember(sql, id, act, { mayLeave: true })).keys)
  }
  return revoked
}

/** A new person with their own workspace. */
export async function signUp(sql: Sql, person: NewPerson, at: number): Promise<SignedUp> {
  const personId = await insertPerson(sql, person, at)
  const act = { actor: personId, at }
  const { id: workspaceId } = await createWorkspace(sql, { name: person.name }, act)
  await createProject(sql, { workspaceId, name: 'default' }, act)
  await addMember(sql, personId, { role: 'admin', workspaceId }, 'sign-up', at)
  await appendAudit(sql, { ...act, action: 'person.sign_up', object: personId, details: { workspace: workspaceId } })
  return { personId, workspaceId }
}
