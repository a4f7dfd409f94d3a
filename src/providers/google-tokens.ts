// Google's credentials and their exchange for access tokens: the key file of a service account and its signed claim, and the
// configuration of a federated identity. Errors never repeat any part of a file.

import { createPrivateKey, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { parseRecord, recordOf } from '../dialects/canonical/json.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import { askForJson, askIssuer, type IssuedToken, noToken } from './access-tokens.ts'

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

// The exchange of credentials for tokens.

export interface GoogleInput {
  readonly clock: Clock
  /** Only the operator's may be a file path or a federated identity, and only its token URL is used, for every workspace. */
  readonly operator: Secret | undefined
}

/** Exchanges the operator's credential or a workspace's key file. */
export function createGoogleExchange({ clock, operator }: GoogleInput): (credential: Secret) => Promise<IssuedToken> {
  const issuedAt = (token: unknown, seconds: unknown, now: number) => issued(token, now + Number(seconds ?? 0) * 1000)
  const operatorsFile = async (credential: Secret): Promise<string> => {
    const text = credential.reveal()
    return text.startsWith('{') ? text : await readKeyFile(text)
  }
  /** The token URL in a workspace's file is ignored: it could name any server in the operator's network. */
  const issuerUrl = async (): Promise<string> => {
    if (!operator) return usualTokenUrl
    // If the operator's file is invalid, the operator's calls fail; workspaces' calls do not need it.
    const text = await operatorsFile(operator).catch(() => '')
    return parseServiceAccount(text)?.tokenUrl ?? usualTokenUrl
  }
  const byClaim = async (account: ServiceAccount): Promise<IssuedToken> => {
    const now = clock.now()
    let assertion: string
    try {
      assertion = signClaim(account, Math.floor(now / 1000))
    } catch {
      throw noToken('the private key of the service account cannot be used')
    }
    const body = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }
    const answer = await askForJson({ url: account.tokenUrl, method: 'POST', body, issuer })
    return issuedAt(answer.access_token, answer.expires_in, now)
  }

  return async (credential) => {
    if (credential !== operator)
      return await byClaim({ ...accountIn(credential.reveal()), tokenUrl: await issuerUrl() })
    const text = await operatorsFile(credential)
    const federated = parseFederation(text)
    return federated ? await byFederation(federated, clock) : await byClaim(accountIn(text))
  }
}

const issuer = "Google's token service"

/** Throws `noToken` if there is none. */
function issued(token: unknown, endsAtMs: number): IssuedToken {
  if (typeof token !== 'string') throw noToken('no access token was given')
  return { token, endsAtMs: Number.isFinite(endsAtMs) ? endsAtMs : 0 }
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

// Workload identity federation: a token of another identity provider, in a file or from a local address, is exchanged at
// Google's Security Token Service, and the result perhaps for a token of a service account.
// https://google.aip.dev/auth/4117, https://cloud.google.com/iam/docs/workload-identity-federation, 2026-11

interface Federation {
  readonly audience: string
  readonly subjectTokenType: string
  readonly tokenUrl: string
  readonly impersonationUrl: string | undefined
  readonly source: Readonly<Record<string, unknown>>
}

const usualStsUrl = 'https://sts.googleapis.com/v1/token'

/** undefined = not a configuration of a federated identity. */
export function parseFederation(text: string): Federation | undefined {
  const file = parseRecord(text)
  if (file?.type !== 'external_account') return undefined
  const textOf = (name: string) => (typeof file[name] === 'string' ? file[name] : undefined)
  return {
    audience: textOf('audience') ?? '',
    subjectTokenType: textOf('subject_token_type') ?? '',
    tokenUrl: textOf('token_url') ?? usualStsUrl,
    impersonationUrl: textOf('service_account_impersonation_url'),
    source: recordOf(file.credential_source),
  }
}

async function byFederation(federation: Federation, clock: Clock): Promise<IssuedToken> {
  const { audience, subjectTokenType, tokenUrl, impersonationUrl } = federation
  const now = clock.now()
  const answer = await askForJson({
    url: tokenUrl,
    method: 'POST',
    body: {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience,
      scope,
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token: await subjectToken(federation),
      subject_token_type: subjectTokenType,
    },
    issuer,
  })
  const federated = issued(answer.access_token, now + Number(answer.expires_in ?? 0) * 1000)
  if (impersonationUrl === undefined) return federated
  const { accessToken, expireTime } = await askForJson({
    url: impersonationUrl,
    method: 'POST',
    headers: { authorization: `Bearer ${federated.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ scope: [scope], lifetime: `${claimSeconds}s` }),
    issuer: "Google's service account",
  })
  return issued(accessToken, Date.parse(String(expireTime)))
}

/** Read again for each exchange: the platform replaces it. */
async function subjectToken({ source }: Federation): Promise<string> {
  const { file, url, headers } = source
  const format = recordOf(source.format)
  if (typeof file !== 'string' && typeof url !== 'string') {
    throw noToken('the federated identity has neither a file nor a url as its source; others are not supported')
  }
  const text =
    typeof file === 'string'
      ? await readFile(file, 'utf8').catch(() => {
          throw noToken('the token file of the federated identity cannot be read')
        })
      : await askIssuer({
          url: String(url),
          headers: Object.fromEntries(Object.entries(recordOf(headers)).map(([name, value]) => [name, String(value)])),
          issuer: 'the source of the federated identity',
          isLocal: true,
        })
  if (format.type !== 'json') return text.trim()
  const token = parseRecord(text)?.[String(format.subject_token_field_name)]
  if (typeof token !== 'string') throw noToken('the source of the federated identity has no token in the named field')
  return token
}
