// From the headers of a request to its caller. On the path of every request: a key seen in the last seconds is answered
// without a promise. Of a key that is refused at most the last four characters are shown, of anything else nothing.

import { type Clock, isoTime } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { type ApiKey, apiKeyLength, createVerifier, hasApiKeyForm, lastFour } from './api-key.ts'
import { type Caller, createFindKey, createKeyCache, createRehash, type StoredKey } from './caller.ts'
import type { Limits } from './limits.ts'

export interface AuthenticatorOptions {
  readonly database: Database
  readonly pepper: Uint8Array
  /** Of the master secret that is being replaced: keys stored under it are good too, and move over when they are used. */
  readonly previousPepper?: Uint8Array | undefined
  readonly clock: Clock
  readonly cacheTtlMs?: number
  /** What holds for every key that sets nothing else itself; asked when a key is looked up. */
  keyLimits?(): Limits
  /** A key was good. On the path of every request: must cost next to nothing. */
  noteUse?(keyId: KeyId): void
}

export interface Authenticator {
  authenticate(headers: Headers): Caller | Failure | Promise<Caller | Failure>
  /** After a key, a project or a workspace changed here: the next request of each of its keys asks the database. */
  invalidate(id: KeyId | ProjectId | WorkspaceId): void
  /** After something changed that every key is looked up with. */
  invalidateAll(): void
}

type Verdict = Caller | Failure

const howToGetOne = 'Create one: console → Keys, or `tollgate keys create`.'
const storeRetryMs = 1000

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { database, pepper, previousPepper, clock, cacheTtlMs = 5000 } = options
  const { keyLimits = () => ({}), noteUse = () => {} } = options
  const computeVerifier = createVerifier(pepper)
  const computePrevious = previousPepper && createVerifier(previousPepper)
  const rehash = createRehash(database, computeVerifier.version)
  const cache = createKeyCache({ load: createFindKey(database, keyLimits, rehash), clock, ttlMs: cacheTtlMs })

  function judgeNow(key: ApiKey, stored: StoredKey | undefined): Verdict {
    const verdict = judge(key, stored, clock.now())
    if (!(verdict instanceof Failure)) noteUse(verdict.keyId)
    return verdict
  }

  function check(text: string): Verdict | Promise<Verdict> {
    if (text.length !== apiKeyLength) return malformed()
    // What is remembered under it is a key: the form is looked at when the database would have to be asked.
    const verifier = computeVerifier(text as ApiKey)
    const known = cache.peek(verifier)
    if (known !== undefined) return judgeNow(text as ApiKey, known)
    if (!hasApiKeyForm(text)) return malformed()
    const found = cache.find(verifier, computePrevious && (() => computePrevious(text)))
    if (!(found instanceof Promise)) return judgeNow(text, found)
    return found.then((stored) => judgeNow(text, stored), storeFailure)
  }

  return {
    authenticate(headers) {
      const bearer = bearerToken(headers)
      const apiKey = headers.get('x-api-key')?.trim() || undefined
      if (bearer === undefined) return apiKey === undefined ? missing() : check(apiKey)
      if (apiKey === undefined || apiKey === bearer) return check(bearer)
      return checkBoth(check(bearer), check(apiKey), hasApiKeyForm(bearer))
    },
    invalidate: (id) => cache.invalidate(id),
    invalidateAll: () => cache.invalidateAll(),
  }
}

const plainBearer = 'Bearer '

/** undefined for other schemes too: a proxy in front may use Basic for itself. */
function bearerToken(headers: Headers): string | undefined {
  const header = headers.get('authorization')
  if (header === null) return undefined
  // As nearly every client spells it.
  if (header.length === plainBearer.length + apiKeyLength && header.startsWith(plainBearer)) {
    return header.slice(plainBearer.length)
  }
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
  const { caller, revokedAt, expiresAt, rotated } = stored
  // Without a look at the clock: this one may be behind the one of the replica that revoked it.
  if (revokedAt !== undefined) return refused(key, `revoked ${day(revokedAt)}`)
  if (rotated !== undefined && rotated.endsAt <= Math.max(now, rotated.at)) {
    return refused(key, `replaced by a new secret ${day(rotated.at)}`)
  }
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
