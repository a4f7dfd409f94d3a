// Signing in devices: OAuth 2.0 with the device authorization grant (RFC 8628), refresh (RFC 6749) and revocation (RFC 7009), at
// the paths that coding agents know. Their errors have the form of these documents. Nobody is authorised here but by the codes
// and tokens themselves; a person approves a device through the management API.

import type { Clock } from '../kernel/clock.ts'
import { Failure, retryHeaders } from '../kernel/failure.ts'
import { createId, type KeyId, type RequestId } from '../kernel/ids.ts'
import { networkOf } from '../kernel/ip-range.ts'
import { Answer, type AnswerHeaders, requestIdHeaders } from '../pipeline/answer.ts'
import { type ClientRequest, queryOf } from '../pipeline/client-request.ts'
import { type Database, storeNow } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { type AccessTokens, accessTokenSeconds, hasAccessTokenForm } from '../tenancy/access-tokens.ts'
import {
  type DeviceGrant,
  grantSeconds,
  intervalSeconds,
  type PollOutcome,
  pollGrant,
  readUserCode,
  shownUserCode,
  startGrant,
  type UserCodes,
} from '../tenancy/device-grants.ts'
import type { GuessLimits } from '../tenancy/guess-limits.ts'
import { nameFrom } from '../tenancy/management.ts'
import {
  endSignIn,
  findSignIn,
  type RefreshTokens,
  type Renewal,
  type RenewOutcome,
  renewSignIn,
} from '../tenancy/sign-ins.ts'
import { BodyFault, readBody } from '../wire/read-body.ts'

/** What is counted. */
export type SignInEvent = 'started' | 'approved' | 'denied' | 'signed_in' | 'renewed' | 'refused' | 'reused' | 'ended'

/** What was wrong, as in the audit log. */
export type WrongCode = 'device code' | 'refresh token' | 'user code'

export interface SignInDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly accessTokens: AccessTokens
  readonly refreshTokens: RefreshTokens
  readonly userCodes: UserCodes
  /** The address under which the client knows the gateway. */
  originOf(request: ClientRequest): string
  addressOf(request: ClientRequest): string | undefined
  /** Forgets the cached tokens of a key, here and on other replicas. */
  invalidate(id: KeyId): void
  /** Slows down or refuses what anyone can send as often as they like, counted by the name. */
  slowName(name: string): Promise<Failure | undefined>
  readonly guesses: GuessLimits
  count(event: SignInEvent): void
  /** For the audit log, which a flood must not fill. */
  onStarted(grant: Pick<DeviceGrant, 'id' | 'client'>): void
  onRefused(what: WrongCode): void
  onDefect(error: unknown, id: RequestId): Failure
}

const paths = {
  metadata: '/.well-known/oauth-authorization-server',
  start: '/oauth/device_authorization',
  token: '/oauth/token',
  revoke: '/oauth/revoke',
  device: '/device',
} as const

const deviceGrantType = 'urn:ietf:params:oauth:grant-type:device_code'
const bodyBytesMax = 16 * 1024

/** `path` is the result of pathOf. undefined = not one of these paths. */
export function createSignInRoutes(deps: SignInDependencies) {
  const operations: Readonly<Record<string, (form: Form, request: ClientRequest, id: RequestId) => Promise<Answered>>> =
    {
      [paths.start]: (form, request) => startDevice(deps, form, request),
      [paths.token]: (form, request) => issueTokens(deps, form, request),
      [paths.revoke]: (form, _, id) => revoke(deps, form, id),
    }
  const post = async (request: ClientRequest, path: string, id: RequestId): Promise<Answered> => {
    if (request.method !== 'POST') {
      return new OAuthError(405, 'invalid_request', 'Use POST.', { allow: 'POST' })
    }
    const form = await readForm(request)
    return form instanceof OAuthError ? form : await (operations[path]?.(form, request, id) ?? undefined)
  }
  const answer = async (work: () => Promise<Answered> | Answered, id: RequestId): Promise<Answer> => {
    try {
      return render(await work(), id)
    } catch (thrown) {
      if (thrown instanceof Failure) return render(overloaded(thrown), id)
      const failure = isStoreUnavailable(thrown) ? undefined : deps.onDefect(thrown, id)
      return render(failure ? new OAuthError(500, 'server_error', failure.message) : unavailable(), id)
    }
  }

  return async (request: ClientRequest, path: string): Promise<Answer | undefined> => {
    const id = createId('req')
    if (path in operations) return await answer(() => post(request, path, id), id)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (path === paths.metadata && isRead) return await answer(() => metadata(deps.originOf(request)), id)
    if (path === paths.device && isRead) return toConsole(request, id)
    return undefined
  }
}

type Answered = object | OAuthError | undefined

/** In the form of RFC 6749, section 5.2. */
class OAuthError {
  constructor(
    readonly status: number,
    readonly error: string,
    readonly description: string,
    readonly headers: AnswerHeaders = {},
  ) {}
}

/** Answers hold tokens, so no cache may keep them. */
function render(answered: Answered, id: RequestId): Answer {
  const headers: AnswerHeaders = {
    ...requestIdHeaders(id),
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'x-content-type-options': 'nosniff',
  }
  if (answered === undefined) return new Answer(200, headers)
  headers['content-type'] = 'application/json'
  if (!(answered instanceof OAuthError)) return new Answer(200, headers, JSON.stringify(answered))
  const { status, error, description } = answered
  const body = JSON.stringify({ error, error_description: description })
  return new Answer(status, { ...headers, ...answered.headers }, body)
}

function metadata(origin: string): object {
  return {
    issuer: origin,
    device_authorization_endpoint: `${origin}${paths.start}`,
    token_endpoint: `${origin}${paths.token}`,
    revocation_endpoint: `${origin}${paths.revoke}`,
    grant_types_supported: [deviceGrantType, 'refresh_token'],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
  }
}

/** The code in the address only fills in the form: nothing is approved by opening it. */
function toConsole(request: ClientRequest, id: RequestId): Answer {
  const code = readUserCode(queryOf(request.url).get('code') ?? '')
  const location = `/console${paths.device}${code === undefined ? '' : `?code=${shownUserCode(code)}`}`
  return new Answer(303, { ...requestIdHeaders(id), location, 'cache-control': 'no-store' })
}

type Form = ReadonlyMap<string, string>

async function readForm(request: ClientRequest): Promise<Form | OAuthError> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) {
    return invalid('Send the parameters as a form, with `Content-Type: application/x-www-form-urlencoded`.')
  }
  const body = await readBody(request, bodyBytesMax)
  if (body instanceof BodyFault) return invalid('The body did not arrive, or has more than 16 KiB.')
  const form = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(new TextDecoder().decode(body))) {
    // RFC 6749, section 3.2.
    if (form.has(name)) return invalid('A parameter is given twice.')
    // Empty parameters count as left out.
    if (value !== '') form.set(name, value)
  }
  return form
}

function invalid(description: string): OAuthError {
  return new OAuthError(400, 'invalid_request', description)
}

function unavailable(): OAuthError {
  const description = 'The database cannot be reached. Retry in a moment.'
  return new OAuthError(503, 'temporarily_unavailable', description, { 'retry-after': '1' })
}

function overloaded(failure: Failure): OAuthError {
  return new OAuthError(failure.status, 'temporarily_unavailable', failure.message, retryHeaders(failure))
}

// ── Start ──

const programForm = /^[\w.-]{1,40}$/

/** `client_id` is the standard's, `surface` Claude Code's; `device_name` is ours. */
async function startDevice(deps: SignInDependencies, form: Form, request: ClientRequest): Promise<Answered> {
  const { database, userCodes } = deps
  const address = deps.addressOf(request)
  const network = networkOf(address)
  const begun = deps.guesses.deviceStart(network)
  const slowed = begun instanceof Failure ? begun : await deps.slowName(`device ${network}`)
  // Claude Code knows this error here too, and says to wait a few minutes; of any other it shows only the status.
  if (slowed) return new OAuthError(slowed.status, 'slow_down', slowed.message, retryHeaders(slowed))
  const program = form.get('client_id') ?? form.get('surface') ?? ''
  const agent = request.headers.get('user-agent') ?? ''
  const client = programForm.test(program) ? program : 'unknown'
  const device = nameFrom(form.get('device_name') ?? '') || nameFrom(agent) || 'unknown'
  const started = await database.transaction(async (sql) =>
    startGrant(sql, { client, device, address }, userCodes, await nowIn(deps, sql)),
  )
  if ('fullForMs' in started) {
    const seconds = Math.max(1, Math.ceil(started.fullForMs / 1000))
    const description = `Too many devices wait for a sign-in. Retry in ${seconds} seconds.`
    return new OAuthError(503, 'temporarily_unavailable', description, { 'retry-after': String(seconds) })
  }
  deps.count('started')
  deps.onStarted({ id: started.id, client })
  const origin = deps.originOf(request)
  const userCode = shownUserCode(started.userCode)
  return {
    device_code: started.deviceCode,
    user_code: userCode,
    verification_uri: `${origin}${paths.device}`,
    verification_uri_complete: `${origin}${paths.device}?code=${userCode}`,
    expires_in: grantSeconds,
    interval: intervalSeconds,
  }
}

async function nowIn({ database: { engine }, clock }: SignInDependencies, sql: Sql): Promise<number> {
  return await storeNow({ engine, sql }, clock)
}

// ── Tokens ──

async function issueTokens(deps: SignInDependencies, form: Form, request: ClientRequest): Promise<Answered> {
  const type = form.get('grant_type')
  if (type === deviceGrantType) return await pollDevice(deps, form, request)
  if (type === 'refresh_token') return await renew(deps, form, request)
  const description = `\`grant_type\` must be refresh_token or ${deviceGrantType}.`
  return type === undefined ? invalid(description) : new OAuthError(400, 'unsupported_grant_type', description)
}

/** Sections 5.2 of RFC 6749 and 3.5 of RFC 8628. */
const pollErrors: Readonly<Record<Exclude<PollOutcome['kind'], 'issued'>, readonly [error: string, text: string]>> = {
  pending: ['authorization_pending', 'The sign-in was not approved yet.'],
  slow_down: ['slow_down', 'Poll less often: wait 5 seconds longer each time.'],
  denied: ['access_denied', 'The sign-in was denied. Start it again.'],
  expired: ['expired_token', 'The sign-in was not approved within 10 minutes. Start it again.'],
  used: ['invalid_grant', 'This device code was used before. Start the sign-in again.'],
  unknown: ['invalid_grant', 'This device code is unknown. Start the sign-in again.'],
}

async function pollDevice(deps: SignInDependencies, form: Form, request: ClientRequest): Promise<Answered> {
  const code = form.get('device_code')
  if (code === undefined) return invalid('`device_code` is required.')
  const { outcome, at } = await deps.database.transaction(async (sql) => {
    const at = await nowIn(deps, sql)
    return { outcome: await pollGrant(sql, code, at), at }
  })
  if (outcome.kind === 'issued') {
    deps.count('signed_in')
    return await tokensOf(deps, outcome.renewal, at)
  }
  const [error, description] = pollErrors[outcome.kind]
  const isRefusal = outcome.kind !== 'pending' && outcome.kind !== 'slow_down'
  if (isRefusal) deps.count('refused')
  if (error === 'invalid_grant') {
    const slowed = await refuse(deps, request, 'device code')
    if (slowed) return slowed
  }
  return new OAuthError(400, error, description)
}

/** One text for every reason: whoever holds a wrong token must not learn why. */
const invalidRefresh = 'This refresh token is not valid any more. Sign in again.'

async function renew(deps: SignInDependencies, form: Form, request: ClientRequest): Promise<Answered> {
  const text = form.get('refresh_token')
  if (text === undefined) return invalid('`refresh_token` is required.')
  const token = deps.refreshTokens.read(text)
  const { outcome, at } = await deps.database.transaction(async (sql) => {
    const at = await nowIn(deps, sql)
    const outcome: RenewOutcome = token ? await renewSignIn(sql, token, at) : { refused: 'unknown' }
    return { outcome, at }
  })
  if (!('refused' in outcome)) {
    deps.count('renewed')
    return await tokensOf(deps, outcome, at)
  }
  deps.count(outcome.refused === 'reused' ? 'reused' : 'refused')
  if (outcome.keyId !== undefined) deps.invalidate(outcome.keyId)
  return (await refuse(deps, request, 'refresh token')) ?? new OAuthError(400, 'invalid_grant', invalidRefresh)
}

/** Records it, and slows down guessing. */
async function refuse(
  deps: SignInDependencies,
  request: ClientRequest,
  what: WrongCode,
): Promise<OAuthError | undefined> {
  deps.onRefused(what)
  const slowed = await deps.slowName(`${what} ${networkOf(deps.addressOf(request))}`)
  return slowed && overloaded(slowed)
}

async function tokensOf(
  { accessTokens, refreshTokens }: SignInDependencies,
  { subject, place, secret, generation }: Renewal,
  at: number,
): Promise<object> {
  return {
    access_token: await accessTokens.issue(subject, at),
    token_type: 'Bearer',
    expires_in: accessTokenSeconds,
    refresh_token: refreshTokens.render(secret, generation),
    email: subject.email,
    // Not of the standard: for people who ask where they are signed in.
    ...{ workspace: place.workspace, project: place.project },
  }
}

// ── Revocation ──

/** Either token ends the whole sign-in. Of a token that is not valid nothing is said, as RFC 7009 wants it. */
async function revoke(deps: SignInDependencies, form: Form, requestId: RequestId): Promise<Answered> {
  const text = form.get('token')
  if (text === undefined) return invalid('`token` is required.')
  const { database, clock, accessTokens, refreshTokens } = deps
  const access = hasAccessTokenForm(text) ? await accessTokens.read(text, clock.now()) : undefined
  const refresh = access ? undefined : refreshTokens.read(text)
  if (!access && !refresh) return undefined
  const keyId = await database.transaction(async (sql) => {
    const signIn = await findSignIn(sql, access ? { id: access.signInId } : { secret: refresh?.secret ?? '' })
    const act = { at: await nowIn(deps, sql), requestId }
    return signIn && (await endSignIn(sql, signIn.id, { ...act, actor: signIn.personId }))
  })
  if (keyId === undefined) return undefined
  deps.count('ended')
  deps.invalidate(keyId)
  return undefined
}
