// Access tokens of signed-in people: signed, valid for 15 minutes, and no more than a statement of who it is. What the person
// may do is read from the database by `tenancy/authenticate.ts`. The format and the signature are jose's.

import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { isId, type PersonId, type SignInId } from '../kernel/ids.ts'

export const accessTokenSeconds = 15 * 60
/** Clocks of replicas may differ by this much. */
export const clockToleranceMs = 30_000

const algorithm = 'HS256'
const issuer = 'tollgate'
const audience = 'tollgate'
/** Longer than any token that is issued. */
const lengthMax = 4096
/** The last letter of a signature of 32 bytes has two bits that mean nothing: only 0 is accepted, or an altered token were valid. */
const form = /^eyJ[\w-]+\.eyJ[\w-]+\.[\w-]{42}[AEIMQUYcgkosw048]$/

/** Every JWT begins with it: `{"` in base64url. */
export const accessTokenStart = 'eyJ'

/** Whether it is worth checking the signature. */
export function hasAccessTokenForm(text: string): boolean {
  return text.length <= lengthMax && form.test(text)
}

export interface TokenSubject {
  readonly signInId: SignInId
  readonly personId: PersonId
  readonly email: string
  readonly groups: readonly string[]
}

export interface ReadToken {
  readonly signInId: SignInId
  readonly personId: PersonId
  /** When it is refused, by any clock. */
  readonly expiresAt: number
}

export type AccessTokens = ReturnType<typeof createAccessTokens>

/** `previous`: of the master secret that is being replaced; its tokens are valid until they expire. */
export function createAccessTokens(keys: { readonly current: Uint8Array; readonly previous?: Uint8Array | undefined }) {
  const accepted = keys.previous ? [keys.current, keys.previous] : [keys.current]

  return {
    async issue({ signInId, personId, email, groups }: TokenSubject, now: number): Promise<string> {
      const issuedAt = Math.floor(now / 1000)
      return await new SignJWT({ sid: signInId, email, groups: shortened(groups) })
        .setProtectedHeader({ alg: algorithm, typ: 'JWT' })
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(personId)
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + accessTokenSeconds)
        .sign(keys.current)
    },
    /** undefined = it has expired, was changed, or is of another installation. */
    async read(token: string, now: number): Promise<ReadToken | undefined> {
      for (const key of accepted) {
        const claims = await verified(token, key, now)
        if (claims) return subjectOf(claims)
      }
      return undefined
    },
  }
}

async function verified(token: string, key: Uint8Array, now: number): Promise<JWTPayload | undefined> {
  try {
    const { payload } = await jwtVerify(token, key, {
      issuer,
      audience,
      algorithms: [algorithm],
      requiredClaims: ['exp', 'sub', 'sid'],
      clockTolerance: clockToleranceMs / 1000,
      currentDate: new Date(now),
    })
    return payload
  } catch (thrown) {
    if (thrown instanceof errors.JOSEError) return undefined
    throw thrown
  }
}

function subjectOf({ sub = '', sid, exp = 0 }: JWTPayload): ReadToken | undefined {
  if (typeof sid !== 'string' || !isId('sgn', sid) || !isId('per', sub)) return undefined
  return { signInId: sid, personId: sub, expiresAt: exp * 1000 + clockToleranceMs }
}

/** A token is sent with every request, and some people are in hundreds of groups. */
const groupsLengthMax = 1000

function shortened(groups: readonly string[]): readonly string[] {
  let length = 0
  return groups.filter((group) => {
    length += group.length
    return length <= groupsLengthMax
  })
}
