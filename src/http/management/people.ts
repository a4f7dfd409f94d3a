// Handlers of people: who calls, members and their roles, invitations, passwords and personal tokens. The secret of a link
// or token is in the answer of the request that created it and nowhere else.

import { invitationMail, type Mail, resetMail } from '../../alerts/mail.ts'
import { putKinds, readKinds } from '../../alerts/readers.ts'
import { listAnswer } from '../../api/fields.ts'
import { invitationSchema, managementTokenSchema, memberSchema, sessionSchema } from '../../api/people.ts'
import type { AlertKind } from '../../kernel/alert.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { PersonId } from '../../kernel/ids.ts'
import { networkOf } from '../../kernel/ip-range.ts'
import { coversRole, type Role } from '../../kernel/roles.ts'
import type { Sql } from '../../store/sql.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import { type ConsoleSession, endSession, listSessions } from '../../tenancy/console-sessions.ts'
import { notFound } from '../../tenancy/management.ts'
import { createToken, listTokens, revokeToken } from '../../tenancy/management-tokens.ts'
import {
  changeRole,
  checkPassword,
  createInvitation,
  createResetLink,
  findPerson,
  getMember,
  grantsOf,
  invitationDays,
  listInvitations,
  listMembers,
  type Member,
  removeMember,
  revokeInvitation,
  setPassword,
} from '../../tenancy/people.ts'
import type { Principal, Reach } from '../../tenancy/principal.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { answerAs, pageAnswer, pageOf } from './answers.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Handlers } from './route.ts'

export function peopleHandlers(deps: RouteDependencies) {
  return { ...ownHandlers(deps), ...memberHandlers(deps), ...invitationHandlers(deps) }
}

/** About the caller. */
function ownHandlers({ database, invalidate, passwords, signIns, createSignInLink, adminToken }: RouteDependencies) {
  return {
    async getMe({ reach: { principal } }) {
      const { kind, personId, isOperator, grants } = principal
      const person = personId && (await findPerson(database.sql, { id: personId }))
      const workspaces = grants.map(async ({ workspaceId: id, role }) => {
        return { id, name: (await getWorkspace(database.sql, id)).name, role }
      })
      return {
        kind,
        person: person
          ? {
              ...{ id: person.id, email: person.email, name: person.name, has_password: person.hasPassword },
              alert_kinds: listed(await readKinds(database.sql, person.id)),
            }
          : null,
        is_operator: isOperator,
        workspaces: await Promise.all(workspaces),
      }
    },
    updateMe: {
      async write(sql, { body: { alert_kinds: kinds }, reach: { principal } }) {
        if (principal.personId === undefined) {
          throw invalidRequest('The installation has no e-mail address. Sign in as a person, or use a personal token.')
        }
        await putKinds(sql, principal.personId, kinds ?? undefined)
        return { alert_kinds: kinds }
      },
    },
    // Not a `write`: a transaction must not wait for the hash.
    async changePassword({ body: { current, password }, act, reach, address }) {
      const personId = signedIn(reach.principal)
      checkPassword(password)
      const person = await findPerson(database.sql, { id: personId })
      const attempt = signIns.guesses.password(person?.email ?? personId, networkOf(address))
      if (attempt instanceof Failure) throw attempt
      if (!(await passwords.verify(current, person?.passwordHash, personId))) {
        throw new Failure('FORBIDDEN', 'This is not your current password.')
      }
      attempt.forgive()
      const hash = await passwords.hash(password, personId)
      await database.transaction(async (sql) => {
        await setPassword(sql, personId, hash, act.at)
        await appendAudit(sql, { ...act, action: 'person.password', object: personId })
      })
      invalidate(personId)
    },
    endSessions: {
      async write(sql, { act, reach: { principal } }) {
        const { personId } = principal
        const ended = await (personId === undefined
          ? sql`DELETE FROM console_sessions WHERE person_id IS NULL RETURNING hash`
          : sql`DELETE FROM console_sessions WHERE person_id = ${personId} RETURNING hash`)
        await appendAudit(sql, { ...act, action: 'session.end_all', object: personId ?? 'console' })
        return { ended: ended.length }
      },
    },
    async listSessions({ act, reach: { principal } }) {
      const whose = { personId: principal.personId, fingerprint: adminToken.fingerprint }
      const sessions = await listSessions(database.sql, whose, act.at)
      const isCurrent = ({ id }: ConsoleSession) => id === principal.session?.id
      return listAnswer(sessions.map((session) => sessionAnswer({ ...session, isCurrent: isCurrent(session) })))
    },
    endSession: {
      async write(sql, { id, act, reach: { principal } }) {
        const isEnded = await endSession(sql, id, principal.isOperator ? undefined : principal.personId)
        if (!isEnded) throw notFound('session', id)
        await appendAudit(sql, { ...act, action: 'session.end', object: id })
      },
    },
    // Not a `write`: a stored answer would keep the secret.
    async createSignInLink({ act }) {
      const link = await createSignInLink()
      await database.transaction((sql) => appendAudit(sql, { ...act, action: 'session.link', object: 'console' }))
      return link
    },
    createToken: {
      async write(sql, { body: { name, role, workspace_id: workspaceId, expires_in_days: days }, act, reach }) {
        const personId = signedIn(reach.principal)
        if ((role === 'operator') !== (workspaceId == null)) {
          throw invalidRequest('`workspace_id` is required for every role except operator.', 'workspace_id')
        }
        if (workspaceId != null && reach.principal.isOperator) await getWorkspace(sql, workspaceId)
        const input = { personId, name, role, workspaceId: workspaceId ?? undefined, days }
        const { token, secret } = await createToken(sql, input, act)
        return { ...tokenAnswer(token), secret }
      },
    },
    async listTokens({ query, reach: { principal } }) {
      const page = principal.personId && (await listTokens(database.sql, principal.personId, pageOf(query)))
      return pageAnswer(page || { items: [], nextCursor: undefined }, tokenAnswer)
    },
    revokeToken: {
      async write(sql, { id, act, reach: { principal } }) {
        await revokeToken(sql, id, principal.isOperator ? undefined : principal.personId, act)
      },
    },
  } satisfies Partial<Handlers>
}

function listed(kinds: readonly AlertKind[] | undefined): AlertKind[] | null {
  return kinds === undefined ? null : [...kinds]
}

/** A token must not make others that outlive it, and the installation is no person. */
function signedIn({ kind, personId }: Principal): PersonId {
  if (kind === 'person' && personId !== undefined) return personId
  throw invalidRequest('Only a person who signed in to the console can do this.')
}

function memberHandlers({ database, invalidate, linkTo, sendMail }: RouteDependencies) {
  const { mails, afterCommit } = mailAfterCommit(sendMail)
  return {
    async listMembers({ query, reach }) {
      const workspaceId = reach.workspaceId ?? query.workspace_id
      return pageAnswer(await listMembers(database.sql, workspaceId, pageOf(query)), memberAnswer)
    },
    updateMember: {
      async write(sql, { id, body: { role }, act, reach }) {
        return memberAnswer(await changeRole(sql, id, role, act, lastOne(reach, await getMember(sql, id))))
      },
      // Their cached access tokens carry the role.
      async afterCommit({ id }) {
        invalidate((await getMember(database.sql, id)).personId)
        return undefined
      },
    },
    // Not a `write`: which keys ended is known only after the commit.
    async removeMember({ id, act, reach }) {
      const { member, keys } = await database.transaction(async (sql) =>
        removeMember(sql, id, act, lastOne(reach, await getMember(sql, id))),
      )
      for (const key of keys) invalidate(key)
      // Someone who was an operator may still be a viewer of a workspace.
      invalidate(member.personId)
    },
    createResetLink: {
      async write(sql, call) {
        const { id, act, reach } = call
        const member = await getMember(sql, id)
        await checkMayReset(sql, member, reach.principal)
        const { secret, expiresAt } = await createResetLink(sql, member, act)
        mails.set(call, resetMail(member.email, linkTo(secret)))
        return { url: linkTo(secret), is_mailed: false, expires_at: isoTime(expiresAt) }
      },
      afterCommit,
    },
  } satisfies Partial<Handlers>
}

/** An operator can always add another admin, and the management token another operator. */
function lastOne({ principal }: Reach, { role }: Member) {
  return { mayLeave: role === 'operator' ? principal.kind === 'installation' : principal.isOperator }
}

/** A person who can set a password can act as its owner, in every workspace of theirs. */
async function checkMayReset(sql: Sql, { personId }: Member, principal: Principal): Promise<void> {
  if (principal.isOperator) return
  const theirs = await grantsOf(sql, personId)
  const isAdminOf = (workspaceId: string | undefined) =>
    principal.grants.some((grant) => grant.workspaceId === workspaceId && grant.role === 'admin')
  if (theirs.every(({ workspaceId }) => isAdminOf(workspaceId))) return
  throw new Failure('FORBIDDEN', 'This person also has a role elsewhere, so only an operator can reset their password.')
}

/**
 * A link works once its row is committed, so its mail is sent after that. The answer says whether the mail server accepted it,
 * and has the link too.
 */
function mailAfterCommit(sendMail: RouteDependencies['sendMail']) {
  const mails = new WeakMap<object, Mail>()
  return {
    mails,
    /** Not for a repeated request, which sends no mail. */
    async afterCommit(call: object) {
      const mail = mails.get(call)
      return mail && sendMail && { is_mailed: await sendMail(mail) }
    },
  }
}

function invitationHandlers({ database, linkTo, sendMail }: RouteDependencies) {
  const { mails, afterCommit } = mailAfterCommit(sendMail)
  return {
    createInvitation: {
      async write(sql, call) {
        const { act, reach } = call
        const { email, role, workspace_id: named } = call.body
        const workspaceId = reach.workspaceId ?? named ?? undefined
        checkMayInvite(reach, role)
        const workspace = workspaceId && (await getWorkspace(sql, workspaceId))
        const { invitation, secret } = await createInvitation(sql, { email, role, workspaceId }, act)
        const url = linkTo(secret)
        mails.set(call, invitationMail({ ...invitation, days: invitationDays }, workspace?.name, url))
        return { ...invitationAnswer(invitation), url, is_mailed: false }
      },
      afterCommit,
    },
    async listInvitations({ query, act, reach }) {
      const workspaceId = reach.workspaceId ?? query.workspace_id
      return pageAnswer(await listInvitations(database.sql, workspaceId, pageOf(query), act.at), invitationAnswer)
    },
    revokeInvitation: {
      async write(sql, { id, act }) {
        await revokeInvitation(sql, id, act)
      },
    },
  } satisfies Partial<Handlers>
}

function checkMayInvite({ principal, workspaceId }: Reach, role: Role): void {
  const own = principal.isOperator
    ? 'operator'
    : principal.grants.find((each) => each.workspaceId === workspaceId)?.role
  if (own !== undefined && coversRole(own, role)) return
  throw new Failure('FORBIDDEN', `Only operators invite people with the role ${role}.`)
}

const memberAnswer = answerAs(memberSchema)
const invitationAnswer = answerAs(invitationSchema)
const tokenAnswer = answerAs(managementTokenSchema)
const sessionAnswer = answerAs(sessionSchema)
