// Signing in with a local account: by password, by an invitation, and by a link to set a new password. Guessing is slowed
// down per network address and per account; refused attempts are recorded in the audit log.

import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { PersonId } from '../kernel/ids.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import type { Database } from '../store/database.ts'
import { type SignedUp, signUp } from '../tenancy/claims.ts'
import type { GuessLimits } from '../tenancy/guess-limits.ts'
import { checkName } from '../tenancy/management.ts'
import {
  acceptInvitation,
  checkEmail,
  checkPassword,
  findLink,
  findPerson,
  type OpenLink,
  type Passwords,
  resetPassword,
  spentLink,
} from '../tenancy/people.ts'
import { findWorkspace } from '../tenancy/workspaces.ts'

/** Why a sign-in was refused, as in the audit log. */
export type Refusal = 'password' | 'link' | 'oidc'

export interface AccountsDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly passwords: Passwords
  /** Whether anyone may create an account. */
  isOpen(): boolean
  /** Gives the workspace of someone who signed up its opening credit. */
  onSignUp(signedUp: SignedUp): Promise<void>
  /** Slows down or refuses further attempts; counted by network, or by the given name. */
  slowGuess(request: ClientRequest, name?: string): Promise<Failure | undefined>
  /** Forgets the cached tokens of a person, here and on other replicas. */
  invalidate(id: PersonId): void
  readonly guesses: Pick<GuessLimits, 'password'>
  networkOf(request: ClientRequest): string
  /** For the audit log. */
  onRefused(refusal: Refusal): void
}

export interface NewAccount {
  readonly email: string
  readonly name: string
  readonly password: string
}

/**
 * What the address of a link has. An account proves itself with its password; one without a password signs in with the
 * identity provider, which accepts its invitations.
 */
export type LinkAccount = 'none' | 'with password' | 'without password'

export interface Accounts {
  /** Whether there is anyone who could sign in with an account. */
  hasAny(): Promise<boolean>
  /** Whether anyone may create an account. */
  isOpen(): boolean
  signUp(request: ClientRequest, account: NewAccount): Promise<PersonId | Failure>
  signIn(request: ClientRequest, account: { email: string; password: string }): Promise<PersonId | Failure>
  /** For the page; undefined = it cannot be used. `as`: what an invitation makes of its person, such as `member of acme`. */
  lookAt(secret: string): Promise<(OpenLink & { readonly account: LinkAccount; readonly as?: string }) | undefined>
  /** Accepts an invitation, or sets the new password. */
  useLink(request: ClientRequest, input: { link: string; name: string; password: string }): Promise<PersonId | Failure>
}

export function createAccounts(deps: AccountsDependencies): Accounts {
  const { database, clock, passwords } = deps

  const wrongPassword = async (request: ClientRequest, email: string): Promise<Failure> => {
    deps.onRefused('password')
    const slowed = (await deps.slowGuess(request)) ?? (await deps.slowGuess(request, `account ${email}`))
    const message = 'The e-mail address or the password is wrong. An admin can send you a reset link.'
    return slowed ?? new Failure('UNAUTHORIZED', message)
  }

  /** undefined = it is right. */
  const refusalOf = async (
    request: ClientRequest,
    email: string,
    sent: string,
    hash: string | undefined,
  ): Promise<Failure | undefined> => {
    const network = deps.networkOf(request)
    const attempt = deps.guesses.password(email, network)
    if (attempt instanceof Failure) {
      deps.onRefused('password')
      return attempt
    }
    let isRight = true
    try {
      isRight = await passwords.verify(sent, hash, network)
    } finally {
      // Also if nothing was compared, because too many are waiting.
      if (isRight) attempt.forgive()
    }
    return isRight ? undefined : await wrongPassword(request, email)
  }

  const accept = async (
    request: ClientRequest,
    link: Extract<OpenLink, { kind: 'invitation' }>,
    name: string,
    password: string,
  ) => {
    const known = await findPerson(database.sql, { email: link.email })
    if (known && !known.hasPassword) return noPassword()
    const refusal = known && (await refusalOf(request, link.email, password, known.passwordHash))
    if (refusal) return refusal
    if (!known) checkPassword(password)
    const passwordHash = known ? undefined : await passwords.hash(password, deps.networkOf(request))
    const at = clock.now()
    const person = known ?? { email: link.email, name, passwordHash }
    return await database.transaction((sql) => acceptInvitation(sql, link, person, at))
  }

  return {
    isOpen: deps.isOpen,
    async hasAny() {
      return (await database.sql`SELECT id FROM people LIMIT 1`).length > 0
    },
    async signUp(request, { email: sent, name, password }) {
      if (!deps.isOpen())
        return new Failure('FORBIDDEN', 'Accounts are by invitation here. Ask an admin of your workspace.')
      // Each costs a hash, a workspace and perhaps money.
      const slowed = await deps.slowGuess(request, `sign-up ${deps.networkOf(request)}`)
      if (slowed) return slowed
      const email = checkEmail(sent)
      checkName(name)
      checkPassword(password)
      const passwordHash = await passwords.hash(password, deps.networkOf(request))
      const at = clock.now()
      const signedUp = await database.transaction(async (sql) => {
        const known = await findPerson(sql, { email })
        return known ? undefined : await signUp(sql, { email, name, passwordHash }, at)
      })
      if (!signedUp)
        return new Failure('INVALID_REQUEST', 'This address has an account already. Sign in with its password.')
      await deps.onSignUp(signedUp)
      return signedUp.personId
    },
    async signIn(request, account) {
      const email = checkEmail(account.email)
      const person = await findPerson(database.sql, { email })
      const refusal = await refusalOf(request, email, account.password, person?.passwordHash)
      return refusal ?? person?.id ?? (await wrongPassword(request, email))
    },
    async lookAt(secret) {
      const link = await findLink(database.sql, secret, clock.now())
      if (!link) return undefined
      const person = await findPerson(database.sql, { email: link.email })
      const account = person === undefined ? 'none' : person.hasPassword ? 'with password' : 'without password'
      if (link.kind === 'reset') return { ...link, account }
      const { role, workspaceId } = link
      const workspace = workspaceId === undefined ? undefined : await findWorkspace(database.sql, workspaceId)
      return { ...link, account, as: workspace ? `${role} of ${workspace.name}` : role }
    },
    async useLink(request, { link: secret, name, password }) {
      const link = await findLink(database.sql, secret, clock.now())
      if (!link) {
        deps.onRefused('link')
        return (await deps.slowGuess(request)) ?? spentLink()
      }
      try {
        if (link.kind === 'invitation') return await accept(request, link, name, password)
        checkPassword(password)
        const hash = await passwords.hash(password, deps.networkOf(request))
        const at = clock.now()
        const personId = await database.transaction((sql) => resetPassword(sql, link, hash, at))
        deps.invalidate(personId)
        return personId
      } catch (thrown) {
        if (thrown instanceof Failure) return thrown
        throw thrown
      }
    },
  }
}

function noPassword(): Failure {
  const message = 'This account has no password. Sign in with the identity provider, which also accepts the invitation,'
  return new Failure('FORBIDDEN', `${message} or ask an admin for a link to set a password.`)
}
