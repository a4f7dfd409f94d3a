// Who may use the management API: whoever has the management token, or a session that the console opened with it. An
// API key buys generations and nothing here. Of what was sent nothing is ever shown.

import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/failure.ts'
import type { AdminToken } from '../../tenancy/admin-token.ts'
import { createGuessBrake } from './guess-brake.ts'

/** As written into the audit log. */
export interface Actor {
  readonly name: string
}

export interface AuthorizeDependencies {
  readonly adminToken: AdminToken
  readonly clock: Clock
  /** The actor of a console session, undefined without one, a Failure where the session may not do this. */
  sessionOf?(request: Request): Actor | Failure | undefined | Promise<Actor | Failure | undefined>
  /** Whose wrong tokens are counted together; those from unknown addresses are, too. */
  addressOf(request: Request): string | undefined
  /** For tests. */
  pause?(milliseconds: number): Promise<void>
}

export type Authorize = (request: Request) => Promise<Actor | Failure>

/** Why a token is refused; undefined = it is the management token. */
export type CheckToken = (token: string, request: Request) => Promise<Failure | undefined>

const tokenActor: Actor = Object.freeze({ name: 'management token' })

export interface Door {
  readonly checkToken: CheckToken
  /** For secrets that only the database knows: each is counted as a wrong one, before it is looked up. */
  slowGuess(request: Request): Promise<Failure | undefined>
}

export function createDoor(deps: Omit<AuthorizeDependencies, 'sessionOf'>): Door {
  const { adminToken, clock, addressOf, pause = (milliseconds) => Bun.sleep(milliseconds) } = deps
  const brake = createGuessBrake({ clock, pause })
  const slowGuess = async (request: Request): Promise<Failure | undefined> => {
    const address = addressOf(request) ?? 'unknown'
    if (!brake.admits(address)) return tooManyGuesses()
    await brake.afterWrong(address)
    return undefined
  }
  return {
    // First of all: whoever guesses behind the operator's address must not lock the operator out.
    checkToken: async (token, request) =>
      adminToken.matches(token) ? undefined : ((await slowGuess(request)) ?? refused(token, adminToken)),
    slowGuess,
  }
}

export function createAuthorize(deps: AuthorizeDependencies): Authorize {
  const { adminToken, sessionOf } = deps
  const { checkToken } = createDoor(deps)
  return async (request) => {
    const bearer = bearerToken(request.headers)
    if (bearer !== undefined) return (await checkToken(bearer, request)) ?? tokenActor
    const session = await sessionOf?.(request)
    if (session !== undefined) return session
    const apiKey = request.headers.get('x-api-key')
    return apiKey === null ? missing(adminToken) : refused(apiKey, adminToken)
  }
}

/** undefined for other schemes too: a proxy in front may use Basic for itself. */
function bearerToken(headers: Headers): string | undefined {
  return /^\s*bearer +(\S.*)$/i.exec(headers.get('authorization') ?? '')?.[1]?.trim()
}

function missing(adminToken: AdminToken): Failure {
  return new Failure(
    'UNAUTHORIZED',
    `The management API needs the management token: send \`Authorization: Bearer TOKEN\`. ${whereItIs(adminToken)}`,
  )
}

function refused(sent: string, adminToken: AdminToken): Failure {
  const what = sent.startsWith('sk-tg-') ? 'An API key opens only /v1' : 'This is not the management token'
  return new Failure('UNAUTHORIZED', `${what}; the management API needs the management token. ${whereItIs(adminToken)}`)
}

function tooManyGuesses(): Failure {
  const message = 'Too many wrong management tokens or links came from this address. Retry in a second.'
  return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs: 1000 })
}

/** The file's name and not its path: strangers read this too. */
function whereItIs({ file }: AdminToken): string {
  return file === undefined
    ? 'It is what TOLLGATE_ADMIN_TOKEN is set to.'
    : 'It is in the file `admin-token` of the data folder.'
}
