// Who calls the management API: the installation (the management token, or a session opened with it), a person, or a
// person's token. What each may do is in src/api/endpoints.ts.

import type { PersonId, SessionId, WorkspaceId } from '../kernel/ids.ts'
import type { Role, WorkspaceRole } from '../kernel/roles.ts'
import type { Sql } from '../store/sql.ts'
import { findToken } from './management-tokens.ts'
import { type Grant, grantsOf } from './people.ts'

export interface Principal {
  readonly kind: 'installation' | 'person' | 'token'
  /** As in the audit log: `management token`, or the id of the person or token. */
  readonly name: string
  /** Also of a token's person. */
  readonly personId: PersonId | undefined
  readonly isOperator: boolean
  /** Session of the console; undefined = a token. */
  readonly session?: { readonly id: SessionId; readonly openedAt: number }
  /** Empty for operators. */
  readonly grants: readonly WorkspaceGrant[]
  /** An operator who views the console with another role. */
  readonly isNarrowed?: true
}

export interface WorkspaceGrant {
  readonly workspaceId: WorkspaceId
  readonly role: WorkspaceRole
}

/** The objects that a call of the principal may see. Handlers of lists narrow to it. */
export interface Reach {
  readonly principal: Principal
  /** undefined = every workspace, or none is concerned. */
  readonly workspaceId: WorkspaceId | undefined
  /** Only keys of this person, and requests made with them; undefined = all of the workspace. */
  readonly ownerId: PersonId | undefined
}

export function installation(name: string): Principal {
  return Object.freeze({ kind: 'installation', name, personId: undefined, isOperator: true, grants: [] })
}

type Identity = Pick<Principal, 'kind' | 'name' | 'personId'>

function principalOf(identity: Identity, grants: readonly Grant[]): Principal {
  const isOperator = grants.some(({ role }) => role === 'operator')
  const inWorkspaces = grants.flatMap(({ role, workspaceId }) =>
    workspaceId === undefined || role === 'operator' ? [] : [{ workspaceId, role }],
  )
  return { ...identity, isOperator, grants: isOperator ? [] : inWorkspaces }
}

/** The roles are read for every request, so a changed role applies to sessions that are open. */
export async function principalOfPerson(sql: Sql, personId: PersonId): Promise<Principal> {
  return principalOf({ kind: 'person', name: personId, personId }, await grantsOf(sql, personId))
}

/** undefined = the token is wrong, expired or void. */
export async function principalOfToken(sql: Sql, secret: string, now: number): Promise<Principal | undefined> {
  const token = await findToken(sql, secret, now)
  return token && principalOf({ kind: 'token', name: token.id, personId: token.personId }, [token])
}

/** The principal with this role in this workspace, if that is no more than they may do now. */
export function narrowed(principal: Principal, role: Role, workspaceId: WorkspaceId): Principal {
  if (!principal.isOperator || role === 'operator') return principal
  return { ...principal, isOperator: false, grants: [{ workspaceId, role }], isNarrowed: true }
}
