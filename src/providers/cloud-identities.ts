// The identity that a cloud gives a process, in place of a long-lived key: AWS for Bedrock, Google for Vertex AI, Azure for its
// OpenAI models. Each platform names its source in variables, as its own libraries expect them. The addresses of metadata
// servers are only called from here, and only for the operator.

import { readFile } from 'node:fs/promises'
import type { Clock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import { askForJson, askIssuer, type IssuedToken, noIssuer, noToken } from './access-tokens.ts'
import type { Cloud, ProviderSettings } from './provider.ts'

const clouds: readonly Cloud[] = ['aws', 'google', 'azure']

export const identityCredentials: readonly string[] = clouds.map(credentialOf)

/** undefined = a key or something else. */
export function cloudOf(credential: Secret | undefined): Cloud | undefined {
  const text = credential?.reveal()
  return clouds.find((cloud) => text === credentialOf(cloud))
}

/** The text of a credential that names an identity. */
export function credentialOf(cloud: Cloud): string {
  return `identity:${cloud}`
}

/** Where an identity comes from. */
interface Source {
  /** For people. */
  readonly name: string
  /** The variables that the platform sets. Absent = the virtual machine, which has none and is asked for by a setting. */
  readonly needs?: readonly string[]
  exchange(settings: ProviderSettings, clock: Clock): Promise<IssuedToken>
}

/** In the order of the platforms' own libraries. */
const sources: Readonly<Record<Cloud, readonly Source[]>> = {
  aws: [
    {
      name: 'AWS web identity',
      needs: ['AWS_WEB_IDENTITY_TOKEN_FILE', 'AWS_ROLE_ARN'],
      exchange: assumeRole,
    },
    {
      name: 'AWS container identity',
      needs: ['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'],
      exchange: askContainer,
    },
    { name: 'AWS container identity', needs: ['AWS_CONTAINER_CREDENTIALS_FULL_URI'], exchange: askContainer },
    { name: 'AWS instance identity', exchange: askInstance },
  ],
  google: [{ name: 'Google instance identity', exchange: askGoogleInstance }],
  azure: [
    {
      name: 'Azure workload identity',
      needs: ['AZURE_FEDERATED_TOKEN_FILE', 'AZURE_TENANT_ID', 'AZURE_CLIENT_ID'],
      exchange: assertFederation,
    },
    { name: 'Azure managed identity', needs: ['IDENTITY_ENDPOINT', 'IDENTITY_HEADER'], exchange: askAppService },
    { name: 'Azure instance identity', exchange: askAzureInstance },
  ],
}

/** Variables that sources may read besides those that they need. */
const optional = [
  ...['AWS_REGION', 'AWS_ROLE_SESSION_NAME', 'AWS_ENDPOINT_URL_STS', 'AWS_EC2_METADATA_SERVICE_ENDPOINT'],
  ...['AWS_CONTAINER_AUTHORIZATION_TOKEN', 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE', 'GCE_METADATA_HOST'],
  ...['AZURE_AUTHORITY_HOST', 'AZURE_POD_IDENTITY_AUTHORITY_HOST'],
] as const

export const identityVariables: readonly string[] = [
  ...new Set([...Object.values(sources).flatMap((all) => all.flatMap(({ needs = [] }) => needs)), ...optional]),
]

/** `instance`: the cloud whose virtual machine this is, as the operator says; undefined = not said. */
export interface IdentityPlace {
  readonly settings: ProviderSettings
  readonly instance: Cloud | undefined
}

function findSource(cloud: Cloud, { settings, instance }: IdentityPlace): Source | undefined {
  return sources[cloud].find(({ needs }) =>
    needs ? needs.every((name) => settings[name] !== undefined) : instance === cloud,
  )
}

/** For people; undefined = this process has no identity there. */
export function identityName(cloud: Cloud, place: IdentityPlace): string | undefined {
  return findSource(cloud, place)?.name
}

/** For AWS, `ID:SECRET:SESSION_TOKEN`; for the others a bearer token. */
export async function exchangeIdentity(cloud: Cloud, place: IdentityPlace, clock: Clock): Promise<IssuedToken> {
  const source = findSource(cloud, place)
  if (!source) throw noToken(`this process has no identity of ${cloudNames[cloud]}`)
  return await source.exchange(place.settings, clock)
}

const cloudNames: Readonly<Record<Cloud, string>> = { aws: 'AWS', google: 'Google Cloud', azure: 'Azure' }

// The platform replaces token files, so they are read for each exchange.

async function readToken(path: string | undefined, what: string): Promise<string> {
  try {
    return (await readFile(path ?? '', 'utf8')).trim()
  } catch {
    throw noToken(`${what} cannot be read`)
  }
}

/** Local addresses may be plain http; others must not, because tokens are sent there. */
function checkedUrl(text: string, what: string, isAllowed: (hostname: string) => boolean): string {
  const url = URL.parse(text)
  if (url && (url.protocol === 'https:' || (url.protocol === 'http:' && isAllowed(url.hostname)))) return url.href
  throw noToken(`${what} must be an https address`)
}

/** Names the variable that is wrong. */
function addressOf(text: string, variable: string): URL {
  const url = URL.parse(text)
  if (!url) throw noToken(`${variable} is not an address`)
  return url
}

/** Without the slash at its end. */
function originOf(text: string, variable: string): string {
  return addressOf(text, variable).href.replace(/\/+$/, '')
}

const isLoopback = (hostname: string) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)

// AWS. https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html, 2026-11

async function assumeRole(settings: ProviderSettings, _: Clock): Promise<IssuedToken> {
  const { AWS_REGION: region = 'us-east-1', AWS_ROLE_ARN: role = '', AWS_ENDPOINT_URL_STS } = settings
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
  const answer = await askIssuer({
    url: checkedUrl(AWS_ENDPOINT_URL_STS ?? `https://sts.${region}.${domain}/`, 'AWS_ENDPOINT_URL_STS', isLoopback),
    method: 'POST',
    body: {
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: role,
      RoleSessionName: settings.AWS_ROLE_SESSION_NAME ?? 'tollgate',
      WebIdentityToken: await readToken(settings.AWS_WEB_IDENTITY_TOKEN_FILE, 'the file AWS_WEB_IDENTITY_TOKEN_FILE'),
    },
    issuer: 'the AWS token service',
  })
  // These values contain nothing that XML escapes.
  const elementOf = (name: string) => new RegExp(`<${name}>\\s*([^<\\s]+)\\s*</${name}>`).exec(answer)?.[1]
  return awsToken({
    AccessKeyId: elementOf('AccessKeyId'),
    SecretAccessKey: elementOf('SecretAccessKey'),
    Token: elementOf('SessionToken'),
    Expiration: elementOf('Expiration'),
  })
}

function awsToken({ AccessKeyId, SecretAccessKey, Token, Expiration }: Readonly<Record<string, unknown>>): IssuedToken {
  const parts = [AccessKeyId, SecretAccessKey, Token]
  const endsAtMs = Date.parse(String(Expiration))
  if (!parts.every((part) => typeof part === 'string') || Number.isNaN(endsAtMs)) {
    throw noIssuer('AWS answered without credentials')
  }
  return { token: parts.join(':'), endsAtMs }
}

const containerHost = '169.254.170.2'
const containerHosts: ReadonlySet<string> = new Set([containerHost, '169.254.170.23', '[fd00:ec2::23]'])

async function askContainer(settings: ProviderSettings): Promise<IssuedToken> {
  const { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: path, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file } = settings
  const url =
    path === undefined
      ? (settings.AWS_CONTAINER_CREDENTIALS_FULL_URI ?? '')
      : `http://${containerHost}/${path.replace(/^\/+/, '')}`
  const token =
    file === undefined
      ? settings.AWS_CONTAINER_AUTHORIZATION_TOKEN
      : await readToken(file, 'the file AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE')
  const isAllowed = (hostname: string) => isLoopback(hostname) || containerHosts.has(hostname)
  return awsToken(
    await askForJson({
      url: checkedUrl(url, 'AWS_CONTAINER_CREDENTIALS_FULL_URI', isAllowed),
      ...(token !== undefined && { headers: { authorization: token } }),
      issuer: 'the credential server of the container',
      isLocal: true,
    }),
  )
}

const tokenSeconds = '21600'

async function askInstance({ AWS_EC2_METADATA_SERVICE_ENDPOINT: base }: ProviderSettings): Promise<IssuedToken> {
  const latest = `${originOf(base ?? 'http://169.254.169.254', 'AWS_EC2_METADATA_SERVICE_ENDPOINT')}/latest`
  const issuer = 'the metadata server of AWS'
  const session = await askIssuer({
    url: `${latest}/api/token`,
    method: 'PUT',
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': tokenSeconds },
    issuer,
    isLocal: true,
  })
  // Not the page of a proxy or of a network that wants a sign-in.
  if (!/^[\x21-\x7e]{1,4096}$/.test(session)) throw noIssuer(`${issuer} answers without a token`)
  const headers = { 'x-aws-ec2-metadata-token': session }
  const roles = `${latest}/meta-data/iam/security-credentials/`
  const [role = ''] = (await askIssuer({ url: roles, headers, issuer, isLocal: true })).trim().split('\n')
  if (!/^[\w+=,.@-]{1,128}$/.test(role)) throw noToken('this virtual machine has no role')
  return awsToken(await askForJson({ url: roles + role, headers, issuer, isLocal: true }))
}

// Google. https://cloud.google.com/compute/docs/access/authenticate-workloads, 2026-11

async function askGoogleInstance(settings: ProviderSettings, clock: Clock): Promise<IssuedToken> {
  const { GCE_METADATA_HOST: host = 'metadata.google.internal' } = settings
  const now = clock.now()
  const { access_token: token, expires_in: seconds } = await askForJson({
    url: `${originOf(`http://${host}`, 'GCE_METADATA_HOST')}/computeMetadata/v1/instance/service-accounts/default/token`,
    headers: { 'metadata-flavor': 'Google' },
    issuer: 'the metadata server of Google Cloud',
    isLocal: true,
  })
  return bearerToken(token, now + Number(seconds) * 1000)
}

/** Throws `noIssuer` if it is none. */
function bearerToken(token: unknown, endsAtMs: number): IssuedToken {
  if (typeof token !== 'string' || !Number.isFinite(endsAtMs)) throw noIssuer('the issuer answered without a token')
  return { token, endsAtMs }
}

// Azure. https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token,
// https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference, 2026-11

const azureResource = 'https://cognitiveservices.azure.com'

async function assertFederation(settings: ProviderSettings, clock: Clock): Promise<IssuedToken> {
  const { AZURE_AUTHORITY_HOST: host = 'https://login.microsoftonline.com', AZURE_TENANT_ID: tenant = '' } = settings
  const url = `${host.replace(/\/+$/, '')}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`
  const now = clock.now()
  const { access_token: token, expires_in: seconds } = await askForJson({
    url: checkedUrl(url, 'AZURE_AUTHORITY_HOST', isLoopback),
    method: 'POST',
    body: {
      grant_type: 'client_credentials',
      client_id: settings.AZURE_CLIENT_ID ?? '',
      scope: `${azureResource}/.default`,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: await readToken(settings.AZURE_FEDERATED_TOKEN_FILE, 'the file AZURE_FEDERATED_TOKEN_FILE'),
    },
    issuer: 'the token service of Azure',
  })
  return bearerToken(token, now + Number(seconds) * 1000)
}

async function askAppService(settings: ProviderSettings): Promise<IssuedToken> {
  const { IDENTITY_ENDPOINT = '', IDENTITY_HEADER = '' } = settings
  const answer = await askForJson({
    url: withQuery(addressOf(IDENTITY_ENDPOINT, 'IDENTITY_ENDPOINT'), {
      'api-version': '2019-08-01',
      ...resourceOf(settings),
    }),
    headers: { 'x-identity-header': IDENTITY_HEADER },
    issuer: "Azure's identity endpoint",
    isLocal: true,
  })
  return bearerToken(answer.access_token, Number(answer.expires_on) * 1000)
}

async function askAzureInstance(settings: ProviderSettings): Promise<IssuedToken> {
  const { AZURE_POD_IDENTITY_AUTHORITY_HOST: host = 'http://169.254.169.254' } = settings
  const url = new URL(`${originOf(host, 'AZURE_POD_IDENTITY_AUTHORITY_HOST')}/metadata/identity/oauth2/token`)
  const answer = await askForJson({
    url: withQuery(url, { 'api-version': '2018-02-01', ...resourceOf(settings) }),
    headers: { metadata: 'true' },
    issuer: 'the metadata server of Azure',
    isLocal: true,
  })
  return bearerToken(answer.access_token, Number(answer.expires_on) * 1000)
}

/** The client id chooses among the identities of a machine that has several. */
function resourceOf({ AZURE_CLIENT_ID: clientId }: ProviderSettings): Record<string, string> {
  return { resource: azureResource, ...(clientId !== undefined && { client_id: clientId }) }
}

function withQuery(url: URL, query: Readonly<Record<string, string>>): string {
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url.href
}
