// A Google service account: its key file, and the signed claim that is exchanged for an access token. Knows no network
// and no clock.

import { createPrivateKey, sign } from 'node:crypto'

export interface ServiceAccount {
  readonly email: string
  readonly keyId: string | undefined
  /** PEM. */
  readonly privateKey: string
  readonly tokenUrl: string
}

export const usualTokenUrl = 'https://oauth2.googleapis.com/token'
const scope = 'https://www.googleapis.com/auth/cloud-platform'
/** The longest that is granted. */
export const claimSeconds = 3600

/** undefined = not the key file of a service account. */
export function parseServiceAccount(text: string): ServiceAccount | undefined {
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof file !== 'object' || file === null) return undefined
  const { client_email: email, private_key: privateKey, private_key_id: keyId, token_uri: url } = file as KeyFile
  if (typeof email !== 'string' || typeof privateKey !== 'string') return undefined
  return {
    email,
    privateKey,
    keyId: typeof keyId === 'string' ? keyId : undefined,
    tokenUrl: typeof url === 'string' ? url : usualTokenUrl,
  }
}

type KeyFile = Readonly<Record<'client_email' | 'private_key' | 'private_key_id' | 'token_uri', unknown>>

/** A JSON Web Token by which the account asks for access (RFC 7523); throws if the key is none. */
export function signClaim(account: ServiceAccount, epochSeconds: number): string {
  const { email, keyId, privateKey, tokenUrl } = account
  const header = { alg: 'RS256', typ: 'JWT', ...(keyId !== undefined && { kid: keyId }) }
  const claim = { iss: email, scope, aud: tokenUrl, iat: epochSeconds, exp: epochSeconds + claimSeconds }
  const text = `${base64(JSON.stringify(header))}.${base64(JSON.stringify(claim))}`
  const signature = sign('sha256', Buffer.from(text), createPrivateKey(privateKey))
  return `${text}.${signature.toString('base64url')}`
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64url')
}
