// Finds out who calls the management API: the management token, a personal token, or a console session. An API key is not
// enough. What was sent is never repeated in an answer. What a caller may do is decided in access.ts.

import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/failure.ts'
import { networkOf } from '../../kernel/ip-range.ts'
import type { ClientRequest } from '../../pipeline/client-request.ts'
import { tokenPrefix } from '../../tenancy/management-tokens.ts'
import { installation, type Principal } from '../../tenancy/principal.ts'
import type { AdminToken } from '../../tenancy/secrets.ts'
import type { HeaderReader } from '../../wire/http-message.ts'

export interface AuthorizeDependencies {
  readonly adminToken: AdminToken
  readonly clock: Clock
  /** The principal of a console session; undefined without one, a Failure if the session may not do this. */
  sessionOf?(request: ClientRequest): Promise<Principal | Failure | undefined>
  /** The principal of a personal management token; undefined = it is wrong, expired or void. */
  tokenOf?(token: string): Promise<Principal | undefined>
  /** A wrong token was sent; for the audit log. */
  onRefused?(request: ClientRequest): void
  /** Wrong tokens are counted by address; unknown addresses are counted together. */
  addressOf(request: ClientRequest): string | undefined
  /** For tests. */
  pause?(milliseconds: number): Promise<void>
}

const byToken = installation('management token')

export function createTokenCheck(deps: Omit<AuthorizeDependencies, 'sessionOf'>) {
  const { adminToken, clock, addressOf, pause = (milliseconds) => Bun.sleep(milliseconds) } = deps
  const brake = createGuessBrake({ clock, pause })
  /** Counted by the name, such as an account or an address. */
  const slowName = async (name: string): Promise<Failure | undefined> => {
    if (!brake.admits(name)) return tooManyGuesses()
    await brake.afterWrong(name)
    return undefined
  }
  /**
   * For secrets that only the database knows: counts as a wrong token. `name`: counted by it, such as an account, and not by the
   * network.
   */
  const slowGuess = (request: ClientRequest, name?: string): Promise<Failure | undefined> =>
    slowName(name ?? networkOf(addressOf(request)))
  /** Why a token is rejected; undefined = it is the management token. */
  const checkToken = async (token: string, request: ClientRequest): Promise<Failure | undefined> => {
    // Before the brake: someone guessing from the operator's address must not lock the operator out.
    if (adminToken.matches(token)) return undefined
    deps.onRefused?.(request)
    return (await slowGuess(request)) ?? refused(token, adminToken)
  }
  return { checkToken, slowGuess, slowName }
}

export function createAuthorize(deps: AuthorizeDependencies) {
  const { adminToken, sessionOf, tokenOf } = deps
  const { checkToken } = createTokenCheck(deps)
  return async (request: ClientRequest): Promise<Principal | Failure> => {
    const bearer = bearerToken(request.headers)
    // Looked up before it counts as a guess, so that a right one always passes.
    const personal = bearer?.startsWith(tokenPrefix) ? await tokenOf?.(bearer) : undefined
    if (personal) return personal
    if (bearer !== undefined) return (await checkToken(bearer, request)) ?? byToken
    const session = await sessionOf?.(request)
    if (session !== undefined) return session
    const apiKey = request.headers.get('x-api-key')
    return apiKey === null ? missing(adminToken) : refused(apiKey, adminToken)
  }
}

/** undefined for other schemes too: a proxy in front may use Basic itself. */
function bearerToken(headers: HeaderReader): string | undefined {
  return /^\s*bearer +(\S.*)$/i.exec(headers.get('authorization') ?? '')?.[1]?.trim()
}

function missing(adminToken: AdminToken): Failure {
  return new Failure(
    'UNAUTHORIZED',
    `The management API needs the management token: send \`Authorization: Bearer TOKEN\`. ${whereItIs(adminToken)}`,
  )
}

function refused(sent: string, adminToken: AdminToken): Failure {
  if (sent.startsWith(tokenPrefix)) {
    const message = 'This personal token is unknown, revoked or expired, or its role was taken away. Create a new one.'
    return new Failure('UNAUTHORIZED', message)
  }
  const what = sent.startsWith('sk-tg-')
    ? 'An API key is valid only for model calls'
    : 'This is not the management token'
  return new Failure('UNAUTHORIZED', `${what}; the management API needs the management token. ${whereItIs(adminToken)}`)
}

function tooManyGuesses(): Failure {
  const message = 'Too many wrong tokens, links or passwords. Retry in a second.'
  return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs: 1000 })
}

/** The file's name and not its path, because anyone can read this. */
function whereItIs({ file }: AdminToken): string {
  return file === undefined
    ? 'It is the value of TOLLGATE_ADMIN_TOKEN.'
    : 'It is in the file `admin-token` of the data folder.'
}

const freeGuesses = 10
const windowMs = 60_000
const pauseMs = 1000
/** Waiting answers per address, over all its connections: each costs a timer and a connection. */
const waitingMax = 32
const addressesMax = 10_000

interface Guesses {
  readonly sinceMs: number
  wrong: number
  waiting: number
}

/**
 * Slows down guessing: after a few wrong tokens in a minute each answer to that address waits a second, and when too
 * many are waiting, further ones are rejected at once. The right token never gets here.
 */
export function createGuessBrake({ clock, pause }: Required<Pick<AuthorizeDependencies, 'clock' | 'pause'>>) {
  const byAddress = new Map<string, Guesses>()

  function guessesOf(address: string): Guesses {
    const known = byAddress.get(address)
    const now = clock.monotonicMs()
    if (known && (known.waiting > 0 || now - known.sinceMs < windowMs)) return known
    const fresh = { sinceMs: now, wrong: 0, waiting: 0 }
    byAddress.delete(address)
    // The first is the oldest, so a flood of addresses cannot use more memory than this.
    const oldest = byAddress.keys().next()
    if (byAddress.size >= addressesMax && !oldest.done) byAddress.delete(oldest.value)
    byAddress.set(address, fresh)
    return fresh
  }

  return {
    /** False: too many wrong tokens of this address are waiting for their answer already. */
    admits: (address: string): boolean => (byAddress.get(address)?.waiting ?? 0) < waitingMax,
    /** Resolves when the wrong token may be answered. */
    async afterWrong(address: string): Promise<void> {
      const guesses = guessesOf(address)
      guesses.wrong++
      if (guesses.wrong <= freeGuesses) return
      guesses.waiting++
      try {
        await pause(pauseMs)
      } finally {
        guesses.waiting--
      }
    },
  }
}
