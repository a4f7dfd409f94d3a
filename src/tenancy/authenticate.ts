// From the headers of a request to its caller. On the path of every request: a key seen in the last seconds is answered
// without a promise. Of a key that is refused at most the last four characters are shown, of anything else nothing.

import type { Clock } from '../kernel/clock.ts'
import { isoTime } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { KeyId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { type ApiKey, createVerifier, hasApiKeyForm, lastFour } from './api-key.ts'
import type { Caller } from './caller.ts'
import { findKey, type StoredKey } from './find-key.ts'
import { createKeyCache } from './key-cache.ts'

export interface AuthenticatorOptions {
  readonly database: Database
  readonly pepper: Uint8Array
  readonly clock: Clock
  readonly cacheTtlMs?: number
}

export interface Authenticator {
  authenticate(headers: Headers): Caller | Failure | Promise<Caller | Failure>
  /** After a key, its project or its workspace changed here: the next request asks the database. */
  invalidate(keyId: KeyId): void
}

type Verdict = Caller | Failure

const howToGetOne = 'Create one: console → Keys, or `tollgate keys create`.'
const storeRetryMs = 1000

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { database, pepper, clock, cacheTtlMs = 5000 } = options
  const computeVerifier = createVerifier(pepper)
  const cache = createKeyCache({ load: (verifier) => findKey(database, verifier), clock, ttlMs: cacheTtlMs })

  function check(text: string): Verdict | Promise<Verdict> {
    if (!hasApiKeyForm(text)) return malformed()
    const found = cache.find(computeVerifier(text))
    if (!(found instanceof Promise)) return judge(text, found, clock.now())
    return found.then((stored) => judge(text, stored, clock.now()), storeFailure)
  }

  return {
    authenticate(headers) {
      const bearer = bearerToken(headers)
      const apiKey = headers.get('x-api-key')?.trim() || undefined
      if (bearer === undefined) return apiKey === undefined ? missing() : check(apiKey)
      if (apiKey === undefined || apiKey === bearer) return check(bearer)
      return checkBoth(check(bearer), check(apiKey), hasApiKeyForm(bearer))
    },
    invalidate: (keyId) => cache.invalidate(keyId),
  }
}

/** undefined for other schemes too: a proxy in front may use Basic for itself. */
function bearerToken(headers: Headers): string | undefined {
  const header = headers.get('authorization')
  if (header === null) return undefined
  return /^\s*bearer +(\S.*)$/i.exec(header)?.[1]?.trim()
}

/** Clients with two settings often leave a foreign key in one of them; only two good keys leave a doubt who pays. */
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
  const { caller, revokedAt, expiresAt } = stored
  if (revokedAt !== undefined && revokedAt <= now) return refused(key, `revoked ${day(revokedAt)}`)
  if (expiresAt !== undefined && expiresAt <= now) return refused(key, `expired ${day(expiresAt)}`)
  return caller
}

function missing(): Failure {
  return unauthorized(
    `Tollgate needs an API key: send \`Authorization: Bearer sk-tg-…\` or \`x-api-key: sk-tg-…\`. ${howToGetOne}`,
  )
}

function malformed(): Failure {
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

/** No answer from the store is not a wrong key: a 401 would make clients throw theirs away. */
function storeFailure(thrown: unknown): Failure {
  if (!isStoreUnavailable(thrown)) throw thrown
  return new Failure('OVERLOADED', 'Tollgate cannot reach its database. Retry in a second.', {
    retryAfterMs: storeRetryMs,
  })
}

function day(epochMs: number): string {
  return isoTime(epochMs).slice(0, 10)
}
