// Access tokens of Google service accounts: the key file, the signed claim, and its exchange. A token is requested once, shared
// by all calls and renewed before it ends. If no token can be had, the call fails before anything is sent, so that another
// route is tried. Errors distinguish a bad credential from an unavailable issuer, so that one bad key does not count
// against everyone, and never repeat any part of a key file.

import { createHash, createPrivateKey, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { parseRecord, recordOf } from '../dialects/canonical/json.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import { readResponseBody } from '../wire/read-body.ts'

export interface ServiceAccount {
  readonly email: string
  readonly keyId: string | undefined
  /** PEM. */
  readonly privateKey: string
  readonly tokenUrl: string
  /** The project whose models are called; undefined = not in the file. */
  readonly projectId: string | undefined
}

export const usualTokenUrl = 'https://oauth2.googleapis.com/token'
const scope = 'https://www.googleapis.com/auth/cloud-platform'
/** The longest that is granted. */
export const claimSeconds = 3600

/** undefined = not the key file of a service account. */
export function parseServiceAccount(text: string): ServiceAccount | undefined {
  const file = parseRecord(text)
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

/** A key of 4,096 bits makes a file of 4 KB. */
const keyFileLengthMax = 16_384
/** The members that a workspace's key file must have. Nothing else is kept, in particular not the token URL. */
const keptMembers = ['type', 'project_id', 'private_key_id', 'private_key', 'client_email'] as const
/** `acme-prod`, or the older `example.com:acme`. It becomes part of an address. */
const projectPattern = /^(?:[a-z0-9.-]{1,100}:)?[a-z][a-z0-9-]{2,62}$/

/** The used part of a workspace's key file, or what is wrong with it, to follow "must". */
export function readOwnKeyFile(
  text: string,
): { readonly text: string; readonly keyId: string } | { readonly fault: string } {
  const whole = 'the whole JSON key file of a service account'
  if (text.length > keyFileLengthMax) return { fault: `must have at most ${keyFileLengthMax} characters` }
  const file = parseRecord(text)
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

/** Google's keys have 2,048. Signing time grows with the cube and blocks the event loop: two seconds with 16,000 bits. */
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

/** The JSON Web Token with which the account requests access (RFC 7523); throws if the key is invalid. */
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

// The exchange of claims for tokens.

export interface AccessTokensInput {
  readonly clock: Clock
  /** Only the operator's may be a file path, and only its token URL is used, for every workspace. */
  readonly operator: Secret | undefined
}

interface Held {
  readonly token: string
  readonly renewAtMs: number
}

/** Renew this long before expiry, so that no token expires in flight. */
const marginMs = 5 * 60 * 1000
const answerBytesMax = 64 * 1024
const exchangeMs = 10_000
/** The issuer was too busy and did not check the claim. */
const hurriedStatuses: ReadonlySet<number> = new Set([408, 429])

/** Tokens of a kilobyte or two: 20 MB. */
const heldMax = 10_000

export class AccessTokens {
  // By content, not by object: a workspace's credential is decrypted again every few seconds.
  readonly #held = new Map<string, Held>()
  readonly #running = new Map<string, Promise<Held>>()
  readonly #names = new WeakMap<Secret, string>()

  constructor(private readonly input: AccessTokensInput) {}

  async tokenFor(credential: Secret): Promise<string> {
    const name = this.#nameOf(credential)
    const held = this.#held.get(name)
    if (held && this.input.clock.now() < held.renewAtMs) return held.token
    // Concurrent calls share one exchange, so none of them may abort it.
    const running = this.#running.get(name) ?? this.#renew(name, credential)
    this.#running.set(name, running)
    return (await running).token
  }

  /** Drops only the refused token: of many refused calls, the last must not drop what the first has renewed. */
  drop(credential: Secret, isRefused: (token: string) => boolean): void {
    const name = this.#nameOf(credential)
    const held = this.#held.get(name)
    if (held && isRefused(held.token)) this.#held.delete(name)
  }

  /** The operator's credential and a workspace's differ even with equal text, because their token URLs may differ. */
  #nameOf(credential: Secret): string {
    const known = this.#names.get(credential)
    if (known !== undefined) return known
    const digest = createHash('sha256').update(credential.reveal()).digest('base64')
    const name = `${credential === this.input.operator ? 'operator' : 'own'} ${digest}`
    this.#names.set(credential, name)
    return name
  }

  async #renew(name: string, credential: Secret): Promise<Held> {
    try {
      const held = await this.#exchange(await this.#accountOf(credential))
      this.#hold(name, held)
      return held
    } finally {
      this.#running.delete(name)
    }
  }

  /** Removes expired tokens and, above the limit, the one renewed longest ago. */
  #hold(name: string, held: Held): void {
    const now = this.input.clock.now()
    this.#held.delete(name)
    this.#held.set(name, held)
    for (const [oldest, { renewAtMs }] of this.#held) {
      if (oldest === name || (this.#held.size <= heldMax && now < renewAtMs)) break
      this.#held.delete(oldest)
    }
  }

  async #accountOf(credential: Secret): Promise<ServiceAccount> {
    if (credential === this.input.operator) return await this.#operatorsAccount(credential)
    return { ...accountIn(credential.reveal()), tokenUrl: await this.#issuer() }
  }

  async #operatorsAccount(credential: Secret): Promise<ServiceAccount> {
    const text = credential.reveal()
    return accountIn(text.startsWith('{') ? text : await readKeyFile(text))
  }

  /** The token URL in a workspace's file is ignored: it could name any server in the operator's network. */
  async #issuer(): Promise<string> {
    const { operator } = this.input
    if (!operator) return usualTokenUrl
    return await this.#operatorsAccount(operator).then(
      ({ tokenUrl }) => tokenUrl,
      // If the operator's file is invalid, the operator's calls fail; workspaces' calls do not need it.
      () => usualTokenUrl,
    )
  }

  async #exchange(account: ServiceAccount): Promise<Held> {
    const now = this.input.clock.now()
    let assertion: string
    try {
      assertion = signClaim(account, Math.floor(now / 1000))
    } catch {
      throw noToken('the private key of the service account cannot be used')
    }
    const { access_token: token, expires_in: seconds } = await askForToken(account.tokenUrl, assertion)
    if (typeof token !== 'string') throw noToken('no access token was given')
    const lifeMs = (typeof seconds === 'number' ? seconds : 0) * 1000
    return { token, renewAtMs: now + Math.max(lifeMs - marginMs, 0) }
  }
}

/** The issuer's answer; {} if it refused the claim. */
async function askForToken(url: string, assertion: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }),
      redirect: 'manual',
      signal: AbortSignal.timeout(exchangeMs),
    })
    const body = await readResponseBody(response, answerBytesMax)
    if (response.status >= 400 && response.status < 500 && !hurriedStatuses.has(response.status)) return {}
    if (response.status !== 200 || body === 'too-large') throw new Error('no answer from the issuer')
    const answer: unknown = JSON.parse(new TextDecoder().decode(body))
    return recordOf(answer)
  } catch {
    // Unreachable, broken, slow, failing or not JSON: says nothing about the claim.
    throw coded('access tokens cannot be had now', 'NO_TOKEN_ISSUER')
  }
}

async function readKeyFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    throw noToken('the key file of the service account cannot be read')
  }
}

function accountIn(text: string): ServiceAccount {
  const account = parseServiceAccount(text)
  if (!account) throw noToken('the credential is no key of a service account')
  return account
}

function noToken(message: string): Error {
  return coded(message, 'NO_ACCESS_TOKEN')
}

/** Coded like a network error: nothing was sent, so the next route is safe to try. */
function coded(message: string, code: 'NO_ACCESS_TOKEN' | 'NO_TOKEN_ISSUER'): Error {
  return Object.assign(new Error(message), { code })
}
