// How a provider's credential is sent: in a header, or by schemes that do not send it (AWS Signature Version 4, access
// tokens). Also checks what a workspace may store as its own credential.

import { createHash, createHmac } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import type { Secret } from '../kernel/secret.ts'
import { apiKeyFault } from '../tenancy/credentials.ts'
import { AccessTokens } from './access-tokens.ts'
import { cloudOf, exchangeIdentity, type IdentityPlace } from './cloud-identities.ts'
import { createGoogleExchange, readOwnKeyFile } from './google-tokens.ts'
import type { AuthScheme, Endpoint, HeaderScheme, Proof, Sign, SigningScheme, UnsignedRequest } from './provider.ts'

type Headers = Readonly<Record<string, string>>

interface KnownHeaders {
  readonly apiKey: Secret | undefined
  readonly dialectHeaders: Headers
  readonly headers: Headers
}

/** The last headers of each endpoint. Most calls to it have the same, and the pool checks and encodes each record once. */
const lastHeaders = new WeakMap<Endpoint, KnownHeaders>()

/** The headers of a call: those of its dialect, ours, and the credential if the scheme sends it in a header and nothing signs. */
export function headersWith(apiKey: Secret | undefined, endpoint: Endpoint, dialectHeaders: Headers): Headers {
  const last = lastHeaders.get(endpoint)
  if (last?.dialectHeaders === dialectHeaders && last.apiKey === apiKey) return last.headers
  const headers: Record<string, string> = {
    ...dialectHeaders,
    'content-type': 'application/json',
    // A compressed answer would have to be decompressed, and a small one can expand to gigabytes.
    'accept-encoding': 'identity',
    'user-agent': 'tollgate',
  }
  if (apiKey && !endpoint.sign) Object.assign(headers, headerProof(endpoint.auth, apiKey))
  lastHeaders.set(endpoint, { apiKey, dialectHeaders, headers })
  return headers
}

const headerSchemes: ReadonlySet<AuthScheme> = new Set<HeaderScheme>([
  'bearer',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
])

/** The header that sends the credential as it is; empty for schemes that do not. */
function headerProof(auth: AuthScheme, apiKey: Secret): Proof {
  if (auth === 'bearer') return { authorization: `Bearer ${apiKey.reveal()}` }
  // These schemes are named after their header.
  return headerSchemes.has(auth) ? { [auth]: apiKey.reveal() } : {}
}

// Schemes that do not send the credential.

export interface SigningInput {
  readonly clock: Clock
  readonly operator: Secret | undefined
  /** Where the identity of this process comes from, if it is the operator's credential. */
  readonly identity: IdentityPlace
}

const schemes: Readonly<Record<SigningScheme, (input: SigningInput) => Sign>> = {
  sigv4: ({ clock }) => {
    return async (request, credential) => {
      const pair = parseAwsCredential(credential.reveal())
      // Anything but a pair is an API key of the service, which is sent as it is.
      if (!pair) return { authorization: `Bearer ${credential.reveal()}` }
      return signAws(request, pair, { epochMs: clock.now() })
    }
  },
  'google-oauth': (input) => {
    const tokens = new AccessTokens({ ...input, exchange: createGoogleExchange(input) })
    const sign: Sign = async (_, credential) => bearerProof(await tokens.tokenFor(credential))
    return Object.assign(sign, {
      refused: (credential: Secret, { authorization }: Proof) =>
        tokens.drop(credential, (token) => bearerProof(token).authorization === authorization),
    })
  },
}

function bearerProof(token: string): Proof {
  return { authorization: `Bearer ${token}` }
}

/** undefined = the scheme does not sign. */
export function createSign(auth: AuthScheme, input: SigningInput): Sign | undefined {
  const usual = Object.hasOwn(schemes, auth) ? schemes[auth as SigningScheme](input) : undefined
  return cloudOf(input.operator) === undefined ? usual : signByIdentity(auth, input, usual)
}

/** The operator's calls by the identity of this process; those with a workspace's own credential as usual. */
function signByIdentity(auth: AuthScheme, input: SigningInput, usual: Sign | undefined): Sign {
  const { clock, operator, identity } = input
  const cloud = cloudOf(operator)
  assert(cloud !== undefined, 'the operator has an identity')
  const tokens = new AccessTokens({ ...input, exchange: () => exchangeIdentity(cloud, identity, clock) })
  const sign: Sign = async (request, credential) => {
    if (credential !== operator) return await (usual?.(request, credential) ?? headerProof(auth, credential))
    const token = await tokens.tokenFor(credential)
    const pair = cloud === 'aws' ? parseAwsCredential(token) : undefined
    return pair ? signAws(request, pair, { epochMs: clock.now() }) : bearerProof(token)
  }
  return Object.assign(sign, {
    refused(credential: Secret, proof: Proof) {
      if (credential !== operator) return usual?.refused?.(credential, proof)
      tokens.drop(credential, (token) => cloud === 'aws' || bearerProof(token).authorization === proof.authorization)
    },
  })
}

// Credentials of workspaces. Most are a key that one header carries; Google's scheme takes a key file.

export interface OwnCredential {
  /** The stored form. */
  readonly text: string
  /** Identifies it to people by its last four characters; must not be secret. Absent = the text itself. */
  readonly name?: string
}

/** Follows the name of the field: "must …". Contains no part of the credential. */
export interface CredentialFault {
  readonly fault: string
}

export function readOwnCredential(auth: AuthScheme, text: string): OwnCredential | CredentialFault {
  if (auth === 'google-oauth') {
    const read = readOwnKeyFile(text)
    return 'fault' in read ? read : { text: read.text, name: read.keyId }
  }
  const fault = apiKeyFault(text)
  return fault === undefined ? { text } : { fault }
}

// AWS Signature Version 4: a pure function of request, credential and time. The secret is not sent; service and region are
// read from the host name.

export interface AwsCredential {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | undefined
}

export interface SigningScope {
  readonly region: string
  readonly service: string
}

/** `ID:SECRET` or `ID:SECRET:SESSION_TOKEN`; undefined = something else, such as an API key. */
export function parseAwsCredential(text: string): AwsCredential | undefined {
  const [accessKeyId, secretAccessKey, ...rest] = text.split(':')
  if (!accessKeyId || !secretAccessKey) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: rest.join(':') || undefined }
}

const awsHost = /\.(amazonaws\.com(\.cn)?|api\.aws)$/
const regionLabel = /(?:^|\.)([a-z]{2,}(?:-[a-z]+)+-\d)\./

/**
 * `bedrock-runtime.eu-west-1.amazonaws.com`, `vpce-1a2b.bedrock-runtime.eu-west-1.vpce.amazonaws.com`,
 * `bedrock-runtime.eu-west-1.api.aws`: the service is bedrock-runtime in addresses and bedrock in signatures.
 */
export function scopeOf({ hostname }: URL): SigningScope {
  // Other host names, such as the operator's proxy, carry no region.
  const region = awsHost.test(hostname) ? regionLabel.exec(hostname)?.[1] : undefined
  return { region: region ?? 'us-east-1', service: 'bedrock' }
}

/** Headers that proxies may change, and those without meaning. */
const unsigned = new Set(['user-agent', 'accept-encoding', 'connection', 'content-length'])

export function signAws(
  request: UnsignedRequest,
  credential: AwsCredential,
  at: { readonly epochMs: number; readonly scope?: SigningScope; readonly method?: 'POST' | 'GET' },
): Record<string, string> {
  const url = new URL(request.url)
  const { region, service } = at.scope ?? scopeOf(url)
  const time = `${new Date(at.epochMs).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
  const day = time.slice(0, 8)
  const token = credential.sessionToken
  const added = { 'x-amz-date': time, ...(token !== undefined && { 'x-amz-security-token': token }) }
  const signed = Object.entries({ ...request.headers, ...added, host: url.host })
    .map(([name, value]) => [name.toLowerCase(), value.trim().replace(/ +/g, ' ')] as const)
    .filter(([name]) => !unsigned.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  const names = signed.map(([name]) => name).join(';')
  const canonical = [
    at.method ?? 'POST',
    canonicalPath(url.pathname),
    canonicalQuery(url.searchParams),
    ...signed.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    hash(request.body),
  ].join('\n')
  const scope = `${day}/${region}/${service}/aws4_request`
  const toSign = ['AWS4-HMAC-SHA256', time, scope, hash(canonical)].join('\n')
  const key = [day, region, service, 'aws4_request'].reduce(
    (secret: string | Buffer, part) => hmac(secret, part),
    `AWS4${credential.secretAccessKey}`,
  )
  const signature = hmac(key, toSign).toString('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${credential.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`
  return { ...added, authorization }
}

/** Each segment is encoded twice, as for every service except S3. */
function canonicalPath(path: string): string {
  return path.split('/').map(encode).join('/')
}

function canonicalQuery(query: URLSearchParams): string {
  const pairs = [...query].map(([name, value]) => [encode(name), encode(value)] as const)
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
  return pairs
    .sort((a, b) => order(a[0], b[0]) || order(a[1], b[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

/** RFC 3986: everything but letters, digits and -._~ */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function hash(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

function hmac(key: string | Buffer, data: string): Buffer {
  return createHmac('sha256', key).update(data).digest()
}
