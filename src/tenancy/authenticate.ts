// From the headers of a request to its caller: by an API key, or by the access token of a person who signed in. On the path of
// every request: a cached key or token costs no promise. Error messages contain at most the last four characters of a key,
// and nothing of any other text.

import { type Clock, isoTime } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { KeyId, PersonId, ProjectId, SignInId, WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { portionsOf } from '../store/insert-rows.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { isStoreUnavailable, storeUnavailable } from '../store/sql-error.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import { type AccessTokens, accessTokenStart, hasAccessTokenForm } from './access-tokens.ts'
import { type ApiKey, apiKeyLength, createVerifier, hasApiKeyForm, lastFour } from './api-key.ts'
import {
  type Caller,
  createFindKey,
  createFindKeyById,
  createFindSignIn,
  createKeyCache,
  createRehash,
  isKeyOf,
  type KeyCache,
  type SignInOfToken,
  type StoredKey,
} from './caller.ts'
import type { Limits } from './limits.ts'

export interface AuthenticatorOptions {
  readonly database: Database
  readonly pepper: Uint8Array
  /** Pepper of the previous master secret, during a rotation: keys stored under it are valid and move when used. */
  readonly previousPepper?: Uint8Array | undefined
  /** Checks access tokens; absent = nobody signs in. */
  readonly accessTokens?: Pick<AccessTokens, 'read'>
  readonly clock: Clock
  readonly cacheTtlMs?: number
  /** The limits of keys that set none themselves; called when a key is looked up. */
  keyLimits?(): Limits
  /** Called for every accepted request, with its key and its sign-in: must be cheap. */
  noteUse?(id: KeyId | SignInId): void
}

export interface Authenticator {
  authenticate(headers: RequestHeaders): Caller | Failure | Promise<Caller | Failure>
  /** Call after a key, project, workspace or role of a person changed: its keys are loaded again at their next request. */
  invalidate(id: KeyId | ProjectId | WorkspaceId | PersonId): void
  /** Call after a change that concerns every key. */
  invalidateAll(): void
  /** For requests that the gateway makes for a key itself, wherever the key may be used from. */
  authenticateKey(id: KeyId): Promise<Caller | Failure>
}

type Verdict = Caller | Failure

const howToGetOne = 'Create one: console → API keys, or `tollgate keys create`.'
const howToSignIn = 'Sign in: run `tollgate login` (in Claude Code, `/login`).'

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { database, pepper, previousPepper, accessTokens, clock, cacheTtlMs = 5000 } = options
  const { keyLimits = () => ({}), noteUse = () => {} } = options
  const computeVerifier = createVerifier(pepper)
  const computePrevious = previousPepper && createVerifier(previousPepper)
  const rehash = createRehash(database, computeVerifier.version)
  const findKey = createFindKey(database, keyLimits, rehash)
  const findSignIn = createFindSignIn(database, keyLimits)
  const findKeyById = createFindKeyById(database, keyLimits)
  const findByToken = async (text: string): Promise<StoredKey | undefined> => {
    const token = await accessTokens?.read(text, clock.now())
    return token && (await findSignIn(token))
  }
  const cache = createKeyCache(clock, cacheTtlMs, (text) =>
    text.startsWith(accessTokenStart)
      ? findByToken(text)
      : findKey(computeVerifier(text as ApiKey), computePrevious?.(text as ApiKey)),
  )

  const byId: KeyCache = createKeyCache(clock, cacheTtlMs, (id) => findKeyById(id as KeyId))

  function judgeNow(text: string, stored: StoredKey | undefined): Verdict {
    const verdict = text.startsWith(accessTokenStart)
      ? judgeToken(stored, clock.now())
      : judge(text as ApiKey, stored, clock.now())
    if (verdict instanceof Failure) return verdict
    noteUse(verdict.keyId)
    if (stored?.signIn) noteUse(stored.signIn.id)
    return verdict
  }

  function check(text: string): Verdict | Promise<Verdict> {
    const isToken = text.startsWith(accessTokenStart)
    if (text.length !== apiKeyLength && !isToken) return malformed(text)
    // Cached texts are known to be valid: the form and the signature are only checked, and the HMAC only computed, before a
    // query.
    const known = cache.peek(text)
    if (known !== undefined) return judgeNow(text, known)
    if (isToken) return hasAccessTokenForm(text) ? lookUp(text) : refusedToken(unknownToken)
    return hasApiKeyForm(text) ? lookUp(text) : malformed(text)
  }

  async function lookUp(text: string): Promise<Verdict> {
    let stored: StoredKey | undefined
    try {
      stored = await cache.find(text)
    } catch (error) {
      return storeFailure(error)
    }
    return judgeNow(text, stored)
  }

  return {
    authenticate(headers) {
      const bearer = bearerToken(headers)
      // The second is Google's.
      const apiKey = (headers.get('x-api-key') ?? headers.get('x-goog-api-key'))?.trim() || undefined
      if (bearer === undefined) return apiKey === undefined ? missing(headers) : check(apiKey)
      if (apiKey === undefined || apiKey === bearer) return check(bearer)
      return checkBoth(check(bearer), check(apiKey), hasApiKeyForm(bearer) || hasAccessTokenForm(bearer))
    },
    invalidate(id) {
      cache.deleteWhere((key) => isKeyOf(key, id))
      byId.deleteWhere((key) => isKeyOf(key, id))
    },
    invalidateAll() {
      cache.deleteWhere(() => true)
      byId.deleteWhere(() => true)
    },
    async authenticateKey(id) {
      try {
        const verdict = judgeById(await byId.find(id), clock.now())
        return verdict instanceof Failure ? verdict : { ...verdict, sources: undefined }
      } catch (error) {
        return storeFailure(error)
      }
    },
  }
}

const plainBearer = 'Bearer '

/** undefined for other schemes too: a proxy in front may use Basic for itself. */
function bearerToken(headers: RequestHeaders): string | undefined {
  const header = headers.get('authorization')
  if (header === null) return undefined
  // The spelling of nearly every client.
  if (
    header.startsWith(plainBearer) &&
    isPlain(header.charCodeAt(plainBearer.length)) &&
    isPlain(header.charCodeAt(header.length - 1))
  ) {
    return header.slice(plainBearer.length)
  }
  return /^\s*bearer +(\S.*)$/i.exec(header)?.[1]?.trim()
}

/** Neither blank nor outside ASCII. */
function isPlain(code: number): boolean {
  return code > 0x20 && code < 0x7f
}

/** Clients with two settings often have a foreign key in one of them; only with two valid keys is it unclear who pays. */
async function checkBoth(
  bearer: Verdict | Promise<Verdict>,
  apiKey: Verdict | Promise<Verdict>,
  bearerWellFormed: boolean,
): Promise<Verdict> {
  const [first, second] = await Promise.all([bearer, apiKey])
  const unanswered = [first, second].find((verdict) => verdict instanceof Failure && verdict.code !== 'UNAUTHORIZED')
  if (unanswered !== undefined) return unanswered
  if (first instanceof Failure) return second instanceof Failure && bearerWellFormed ? first : second
  if (second instanceof Failure) return first
  return unauthorized('Tollgate got two different keys, in Authorization and in x-api-key. Send one of them.')
}

function judge(key: ApiKey, stored: StoredKey | undefined, now: number): Verdict {
  if (stored === undefined) return refused(key, 'there is no such key here')
  const { caller, revokedAt, expiresAt, rotated } = stored
  // Regardless of the time: this clock may be behind that of the replica that revoked the key.
  if (revokedAt !== undefined) return refused(key, `revoked ${day(revokedAt)}`)
  if (rotated !== undefined && rotated.endsAt <= Math.max(now, rotated.at)) {
    return refused(key, `replaced by a new secret ${day(rotated.at)}`)
  }
  if (expiresAt !== undefined && expiresAt <= now) return refused(key, `expired ${day(expiresAt)}`)
  return caller
}

/** Says nothing about why: someone who forged it must not learn how near it came. */
const unknownToken = 'it has expired, was changed, or was not issued by this installation'

function judgeToken(stored: StoredKey | undefined, now: number): Verdict {
  if (stored?.signIn === undefined) return refusedToken(unknownToken)
  const { caller, revokedAt, expiresAt = 0, signIn } = stored
  if (revokedAt !== undefined) return refusedToken(`its sign-in ended ${day(revokedAt)}`)
  if (expiresAt <= now) return refusedToken(unknownToken)
  if (signIn.role === undefined || signIn.role === 'viewer') return withoutRole(signIn, caller)
  return caller
}

function judgeById(stored: StoredKey | undefined, now: number): Verdict {
  if (!stored) return unauthorized('The key that pays for this is no longer there.')
  const { caller, revokedAt, expiresAt, signIn } = stored
  const ended = (why: string) => unauthorized(`The key "${caller.keyName}", which pays for this, ${why}.`)
  if (revokedAt !== undefined) return ended(`was revoked ${day(revokedAt)}`)
  if (expiresAt !== undefined && expiresAt <= now) return ended(`expired ${day(expiresAt)}`)
  if (signIn && (signIn.role === undefined || signIn.role === 'viewer')) return withoutRole(signIn, caller)
  return caller
}

function refusedToken(why: string): Failure {
  return unauthorized(`Tollgate does not accept this access token: ${why}. ${howToSignIn}`)
}

function withoutRole({ email, role }: SignInOfToken, { workspaceName }: Caller): Failure {
  const what = role === undefined ? 'no role' : `the role ${role}, which does not include model calls,`
  return new Failure(
    'FORBIDDEN',
    `The account ${email} has ${what} in the workspace "${workspaceName}". Ask an admin of the workspace for the role member, or sign in to another workspace.`,
  )
}

function missing(headers: RequestHeaders): Failure {
  const given = headers.get('authorization')?.trim() ?? ''
  // One word: a key without the scheme. Basic and others have two.
  if (/^\S+$/.test(given) && !/^bearer$/i.test(given)) {
    return unauthorized(
      'Tollgate found no `Bearer` before the key in `Authorization`: send `Authorization: Bearer sk-tg-…`.',
    )
  }
  return unauthorized(
    `Tollgate needs an API key: send \`Authorization: Bearer sk-tg-…\` or \`x-api-key: sk-tg-…\`. ${howToGetOne} Or sign in as a person: run \`tollgate login\`.`,
  )
}

/** The operator's token: 32 bytes in base64url. Personal ones have a prefix. */
const managementTokenForm = /^(tg-mt-.+|[A-Za-z0-9_-]{43})$/

function malformed(text: string): Failure {
  if (managementTokenForm.test(text)) {
    return unauthorized(
      `Tollgate does not accept this key: it has the form of a management token, which works for \`/api/…\` and the command line only. Models need an API key (sk-tg-…). ${howToGetOne}`,
    )
  }
  return unauthorized(
    `Tollgate does not accept this key: it is not a Tollgate key, or not all of it (sk-tg- and 34 letters and digits). ${howToGetOne}`,
  )
}

function refused(key: ApiKey, why: string): Failure {
  return unauthorized(`Tollgate does not accept this key (…${lastFour(key)}): ${why}. ${howToGetOne}`)
}

function unauthorized(message: string): Failure {
  return new Failure('UNAUTHORIZED', message)
}

/** An unreachable database does not mean that the key is wrong: after a 401 clients may discard it. */
function storeFailure(thrown: unknown): Failure {
  if (!isStoreUnavailable(thrown)) throw thrown
  return storeUnavailable()
}

function day(epochMs: number): string {
  return isoTime(epochMs).slice(0, 10)
}

// ── When keys were last used ──

/** Each key is written at most once in this time. */
export const lastUsedFlushMs = 60_000

interface LastUsedOptions {
  readonly database: Database
  readonly clock: Clock
  onFault(thrown: unknown): void
}

/** When each key and sign-in was last used. Kept in memory and written in the background; a crash loses the last minute. */
export function createLastUsed({ database, clock, onFault }: LastUsedOptions) {
  let noted = new Map<KeyId | SignInId, number>()

  return {
    note: (id: KeyId | SignInId) => void noted.set(id, clock.now()),
    /** Never throws. What could not be written is kept for the next flush. */
    async flush(): Promise<void> {
      const pending = noted
      noted = new Map()
      // Replicas write the same keys; in one order, so that there is no deadlock.
      const uses = [...pending].sort(([a], [b]) => (a < b ? -1 : 1))
      let written = 0
      // In portions: on the embedded engine a transaction delays the commits of settlements.
      for (const portion of portionsOf(uses)) {
        try {
          await database.transaction((sql) => writeUses(sql, portion))
        } catch (thrown) {
          for (const [keyId, at] of uses.slice(written)) if (!noted.has(keyId)) noted.set(keyId, at)
          return onFault(thrown)
        }
        written += portion.length
      }
    },
  }
}

async function writeUses(sql: Sql, uses: readonly (readonly [KeyId | SignInId, number])[]): Promise<void> {
  const rows = uses.map(([keyId, at]) => ({ key_id: keyId, last_used_at: timeToSql(at) }))
  await sql`INSERT INTO key_uses ${sql(rows)} ON CONFLICT (key_id) DO UPDATE
    SET last_used_at = excluded.last_used_at WHERE excluded.last_used_at > key_uses.last_used_at`
}
