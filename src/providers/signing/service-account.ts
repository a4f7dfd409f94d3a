// A Google service account: its key file, and the signed claim that is exchanged for an access token. Knows no network
// and no clock, and nothing it says of a key file repeats any of it.

import { createPrivateKey, sign } from 'node:crypto'

export interface ServiceAccount {
  readonly email: string
  readonly keyId: string | undefined
  /** PEM. */
  readonly privateKey: string
  readonly tokenUrl: string
  /** Whose models are called; undefined = the file does not say. */
  readonly projectId: string | undefined
}

export const usualTokenUrl = 'https://oauth2.googleapis.com/token'
const scope = 'https://www.googleapis.com/auth/cloud-platform'
/** The longest that is granted. */
export const claimSeconds = 3600

/** undefined = not the key file of a service account. */
export function parseServiceAccount(text: string): ServiceAccount | undefined {
  const file = parseKeyFile(text)
  const { client_email: email, private_key: privateKey, private_key_id: keyId, token_uri: url } = file ?? {}
  if (typeof email !== 'string' || typeof privateKey !== 'string') return undefined
  return {
    email,
    privateKey,
    keyId: typeof keyId === 'string' ? keyId : undefined,
    tokenUrl: typeof url === 'string' ? url : usualTokenUrl,
    projectId: typeof file?.project_id === 'string' ? file.project_id : undefined,
  }
}

type KeyFile = Readonly<Record<string, unknown>>

/** undefined = no JSON, or no object. */
function parseKeyFile(text: string): KeyFile | undefined {
  try {
    const file: unknown = JSON.parse(text)
    return typeof file === 'object' && file !== null && !Array.isArray(file) ? { ...file } : undefined
  } catch {
    return undefined
  }
}

/** A key of 4,096 bits makes a file of 4 KB. */
const keyFileLengthMax = 16_384
/** What a workspace's key file must say; nothing else of it is kept, least of all where to ask for tokens. */
const keptMembers = ['type', 'project_id', 'private_key_id', 'private_key', 'client_email'] as const
/** `acme-prod`, and `example.com:acme` of old: it becomes part of an address. */
const projectPattern = /^(?:[a-z0-9.-]{1,100}:)?[a-z][a-z0-9-]{2,62}$/

/** The key file that a workspace brings, as far as it is used, or what is wrong with it, after "must". */
export function readOwnKeyFile(
  text: string,
): { readonly text: string; readonly keyId: string } | { readonly fault: string } {
  const whole = 'the whole JSON key file of a service account'
  if (text.length > keyFileLengthMax) return { fault: `must have at most ${keyFileLengthMax} characters` }
  const file = parseKeyFile(text)
  if (!file) return { fault: `must be ${whole}: its content, not its path, and this is no JSON object` }
  if (file.type !== 'service_account') {
    return { fault: `must be ${whole}: in this one \`type\` is not "service_account"` }
  }
  const kept = keptMembers.map((name) => [name, file[name]] as const)
  const [missing] = kept.find(([, value]) => typeof value !== 'string' || value === '') ?? []
  if (missing !== undefined) return { fault: `must be ${whole}: in this one \`${missing}\` is missing or no text` }
  if (!projectPattern.test(String(file.project_id))) {
    return { fault: 'must name a project: in this key file `project_id` is not the id of one' }
  }
  if (!isRsaKey(String(file.private_key))) {
    return {
      fault: `must hold a private key: in this key file \`private_key\` is no RSA key in PEM form of up to ${keyBitsMax} bits`,
    }
  }
  return { text: JSON.stringify(Object.fromEntries(kept)), keyId: String(file.private_key_id) }
}

/** Google's have 2,048. Signing takes the cube of it, in which nobody else is served: two seconds with 16,000. */
const keyBitsMax = 4096

function isRsaKey(pem: string): boolean {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPrivateKey(pem)
    return (
      asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? Number.POSITIVE_INFINITY) <= keyBitsMax
    )
  } catch {
    return false
  }
}

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
