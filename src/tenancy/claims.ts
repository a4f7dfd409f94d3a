// From what an identity provider says about someone to a person here: by their subject, by their verified address, by
// invitation, by the roles that the operator mapped to groups, or by sign-up where the operator allows it.

import { Failure } from '../kernel/failure.ts'
import type { PersonId, WorkspaceId } from '../kernel/ids.ts'
import { type Role, roles } from '../kernel/roles.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { appendAudit } from './audit.ts'
import {
  acceptInvitation,
  addMember,
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
  readonly groups: readonly string[]
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

function identityOf(claims: Claims, { allowedDomains, requiredGroup, groupClaim }: ClaimRules): Identity | Failure {
  const { email: sent, email_verified: verified, name } = claims
  const email = typeof sent === 'string' ? sent.trim().toLowerCase() : ''
  const domain = email.split('@')[1] ?? ''
  if (domain === '') return refuse('The identity provider sent no e-mail address. Allow the scope `email` there.')
  if (allowedDomains.length > 0 && !allowedDomains.includes(domain)) {
    return refuse(`Addresses of ${domain} may not sign in here. Use an address of your organisation.`)
  }
  if (verified !== true && !allowedDomains.includes(domain)) {
    return refuse('The identity provider has not verified your e-mail address. Verify it there and sign in again.')
  }
  const value = claims[groupClaim]
  const groups = [value].flat().filter((group): group is string => typeof group === 'string')
  if (requiredGroup !== undefined && !groups.includes(requiredGroup)) {
    return refuse(`You are not in the group ${requiredGroup}, which may sign in here. Ask your administrator.`)
  }
  const shown = typeof name === 'string' && name.trim() !== '' ? name.trim().slice(0, 100) : email
  return { subject: `${claims.iss} ${claims.sub}`, email, name: shown, groups }
}

export interface SignedUp {
  readonly personId: PersonId
  /** A workspace that was created for a new person, and gets the opening credit. */
  readonly workspaceId?: WorkspaceId
}

export async function signInByClaims(
  database: Database,
  claims: Claims,
  rules: ClaimRules,
  at: number,
): Promise<SignedUp | Failure> {
  const identity = identityOf(claims, rules)
  if (identity instanceof Failure) return identity
  try {
    return await database.transaction((sql) => enter(sql, identity, rules, at))
  } catch (thrown) {
    if (thrown instanceof Failure) return thrown
    throw thrown
  }
}

async function enter(sql: Sql, identity: Identity, rules: ClaimRules, at: number): Promise<SignedUp | Failure> {
  const mapped = mappedRoles(rules, identity.groups)
  const invitations = await listInvitationsOf(sql, identity.email, at)
  const known = (await findPerson(sql, { subject: identity.subject })) ?? (await link(sql, identity))
  if (!known && mapped.length + invitations.length === 0) {
    if (rules.mode === 'invite') throw refuse('You have no account here. Ask an admin of your workspace to invite you.')
    return await signUp(sql, identity, at)
  }
  const personId = known?.id ?? (await insertPerson(sql, identity, at))
  await acceptAll(sql, invitations, personId, at)
  await applyMapping(sql, personId, mapped, at)
  if ((await grantsOf(sql, personId)).length > 0) return { personId }
  // Returned, not thrown, so that the revoked roles stay revoked.
  return refuse('Your account has no role here any more. Ask an admin of your workspace to invite you.')
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
async function link(sql: Sql, { email, subject }: Identity) {
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
  }
  return person
}

/** Roles from groups follow the claim: at every sign-in they are added, changed and taken away. */
async function applyMapping(sql: Sql, personId: PersonId, mapped: readonly MappedRole[], at: number): Promise<void> {
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
  for (const { id, workspace_id, source } of held) {
    const isMapped = mapped.some(({ workspaceId }) => workspaceId === (workspace_id ?? undefined))
    if (source === 'claim' && !isMapped) await removeMember(sql, id, act, { mayLeave: true })
  }
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
