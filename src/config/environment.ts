// The variables of the environment: which exist, what they say, and references to them (`${VARIABLE}`, `file:/path`) in the
// configuration file. They take precedence over the file and pass the same checks. Messages name variables, never values.

import { resolve } from 'node:path'
import { z } from 'zod'
import { type FailpointPlan, failpointNames, parseFailpoints } from '../kernel/failpoint.ts'
import { Secret } from '../kernel/secret.ts'
import { type ConfigFault, checkSchema, suggestion } from './document.ts'
import { onOff, type ServerSection, serverSchema } from './schema.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface ReferenceContext {
  readonly env: Environment
  /** Base of relative `file:` paths. */
  readonly folder: string
  readonly readFile: (path: string) => string
}

const wholeReference = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/
const innerReference = /\$\{([^}]*)\}/g
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

/** An empty variable counts as not set, as in an env file with an empty value. */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim()
  return value === '' ? undefined : value
}

export interface ReferenceFault {
  readonly fault: string
  /** The reference is right, but this process cannot see what it names. */
  readonly isMissingHere?: true
}

export function resolveSecret(text: string, context: ReferenceContext): Secret | ReferenceFault {
  const found = secretText(text, context)
  if (typeof found !== 'string') return found
  return travelsInHeader(found) ? new Secret(found) : { fault: 'has characters that cannot be sent in a header' }
}

/** Visible ASCII: anything else is a copying mistake that would only fail at the first call. */
export function travelsInHeader(credential: string): boolean {
  return /^[\x21-\x7e]+$/.test(credential)
}

function secretText(text: string, { env, folder, readFile }: ReferenceContext): string | ReferenceFault {
  const name = wholeReference.exec(text)?.[1]
  if (name !== undefined) return variable(env, name) ?? missingVariable(name)
  if (text.includes('${')) return { fault: `expected \${VARIABLE} to stand alone, with nothing before or after it` }
  if (!text.startsWith('file:')) return text
  try {
    const content = readFile(resolve(folder, text.slice('file:'.length))).trim()
    return content === '' ? { fault: 'the file it names is empty' } : content
  } catch (error) {
    return { fault: `the file it names cannot be read (${errorCode(error)})`, isMissingHere: true }
  }
}

function missingVariable(name: string): ReferenceFault {
  return { fault: `the variable ${name} is not set`, isMissingHere: true }
}

/** Replaces every `${VARIABLE}` of a text. */
export function interpolate(text: string, env: Environment): { readonly text: string } | ReferenceFault {
  const faults: ReferenceFault[] = []
  const malformed = { fault: `expected the name of a variable between \${ and }` }
  const replaced = text.replace(innerReference, (_, name: string) => {
    if (!variableName.test(name)) faults.push(malformed)
    else if (variable(env, name) === undefined) faults.push(missingVariable(name))
    return variable(env, name) ?? ''
  })
  if (/\$\{[^}]*$/.test(text)) faults.push(malformed)
  const [fault] = faults
  return fault === undefined ? { text: replaced } : fault
}

/** The variables that a text refers to, set or not. */
export function referencedVariables(text: string): string[] {
  return [...text.matchAll(innerReference)].flatMap(([, name]) => (name === undefined ? [] : [name]))
}

/** `ENOENT` and the like, because a message could quote the file. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
}

/** Each setting of the file's `server` section has a variable: `body_bytes_max` is TOLLGATE_BODY_BYTES_MAX. */
export const serverVariables = Object.fromEntries(
  Object.keys(serverSchema.shape).map((key) => [key, `TOLLGATE_${key.toUpperCase()}`]),
) as Readonly<Record<keyof ServerSection, string>>

interface SecretVariable {
  /** As `tollgate config` shows it while it is not set. */
  readonly otherwise: string
  /** Its validity check, and the fault if it fails. */
  readonly check?: readonly [isValid: (value: string) => boolean, fault: string]
}

const headerFault = 'has characters that cannot be sent in a header'
const inData = 'generated, in the data folder'
const startsWith = (pattern: RegExp) => (value: string) => pattern.test(value)

/** Variables that hold a secret or an address with a password, so they have no place in a file that gets copied. */
export const secretVariables = {
  TOLLGATE_ADMIN_TOKEN: { otherwise: inData, check: [travelsInHeader, headerFault] },
  TOLLGATE_SECRET: { otherwise: inData },
  TOLLGATE_SECRET_PREVIOUS: { otherwise: 'not set' },
  DATABASE_URL: {
    otherwise: 'not set: SQLite in the data folder',
    check: [
      startsWith(/^postgres(ql)?:\/\//i),
      'expected an address that starts with postgres:// (unset it to use the embedded database)',
    ],
  },
  REDIS_URL: {
    otherwise: 'not set',
    check: [startsWith(/^rediss?:\/\//i), 'expected an address that starts with redis:// or rediss://'],
  },
  STRIPE_SECRET_KEY: { otherwise: 'not set', check: [travelsInHeader, headerFault] },
  STRIPE_WEBHOOK_SECRET: { otherwise: 'not set' },
  TOLLGATE_OIDC_CLIENT_SECRET: { otherwise: 'not set' },
  TOLLGATE_SMTP_URL: {
    otherwise: 'not set: no e-mail',
    check: [startsWith(/^smtps?:\/\//i), 'expected an address such as smtp://user:password@mail.example.com:587'],
  },
} as const satisfies Readonly<Record<string, SecretVariable>>

export const knownVariables: readonly string[] = [
  ...Object.values(serverVariables),
  ...Object.keys(secretVariables),
  ...['TOLLGATE_OIDC_ISSUER', 'TOLLGATE_OIDC_CLIENT_ID', 'TOLLGATE_MAIL_FROM'],
  ...['TOLLGATE_CONFIG', 'TOLLGATE_URL', 'TOLLGATE_KEY', 'TOLLGATE_TEST', 'TOLLGATE_FAILPOINTS'],
  ...['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_SERVICE_NAME', 'OTEL_TRACES_SAMPLER_ARG'],
]

/** Settings that have no place in the file. */
export type EnvironmentSettings = ReturnType<typeof readVariables>['settings']

export function readVariables(env: Environment, providerVariables: readonly string[]) {
  const faults: ConfigFault[] = []
  const warnings: ConfigFault[] = []
  const fault = (name: string, message: string) => faults.push(environmentFault(name, message))
  const warn = (name: string, message: string) => warnings.push(environmentFault(name, message))
  const secretOf = (name: string): Secret | undefined => {
    const value = variable(env, name)
    return value === undefined ? undefined : new Secret(value)
  }
  const secrets = {} as Record<keyof typeof secretVariables, Secret | undefined>
  for (const [name, { check }] of Object.entries<SecretVariable>(secretVariables)) {
    const secret = secretOf(name)
    if (secret && check && !check[0](secret.reveal())) fault(name, check[1])
    secrets[name as keyof typeof secretVariables] = secret
  }
  const adminToken = secrets.TOLLGATE_ADMIN_TOKEN
  if (adminToken && adminToken.reveal().length < 16) {
    warn('TOLLGATE_ADMIN_TOKEN', 'is short enough to be guessed; use at least 16 random characters')
  }
  /** Values of the usual provider variables that are set, by variable. */
  const providerKeys: Record<string, Secret> = {}
  for (const name of providerVariables) {
    const key = secretOf(name)
    if (key === undefined) continue
    // Not a fault: the variable may be meant for another program.
    if (travelsInHeader(key.reveal())) providerKeys[name] = key
    else warn(name, `is ignored: it ${headerFault}`)
  }
  const oidc = readOidc(env, secrets.TOLLGATE_OIDC_CLIENT_SECRET, fault)
  const mail = readMail(env, secrets.TOLLGATE_SMTP_URL, fault)
  const server = readServerVariables(env, faults, warnings)
  const settings = {
    /** undefined = generated into the data folder. */
    adminToken,
    secret: secrets.TOLLGATE_SECRET,
    /** The one that is being replaced; what it encrypted can still be decrypted. */
    secretPrevious: secrets.TOLLGATE_SECRET_PREVIOUS,
    /** undefined = the embedded database in the data folder. */
    databaseUrl: secrets.DATABASE_URL,
    redisUrl: secrets.REDIS_URL,
    /** undefined = that part of Stripe is not used. */
    stripe: { secretKey: secrets.STRIPE_SECRET_KEY, webhookSecret: secrets.STRIPE_WEBHOOK_SECRET },
    /** undefined = people sign in with local accounts only. */
    oidc,
    /** undefined = no e-mail is sent. */
    mail,
    /** As written; telemetry interprets them. */
    otel: {
      endpoint: variable(env, 'OTEL_EXPORTER_OTLP_ENDPOINT'),
      headers: secretOf('OTEL_EXPORTER_OTLP_HEADERS'),
      serviceName: variable(env, 'OTEL_SERVICE_NAME'),
      samplerArg: variable(env, 'OTEL_TRACES_SAMPLER_ARG'),
    },
    /** For crash tests. */
    failpoints: readFailpoints(env, (message) => fault('TOLLGATE_FAILPOINTS', message)),
    providerKeys,
  }
  return { server, settings, faults, warnings }
}

/** The identity provider. Plain http is for one on this machine. */
function readOidc(env: Environment, clientSecret: Secret | undefined, fault: (name: string, message: string) => void) {
  const [issuer, clientId] = [variable(env, 'TOLLGATE_OIDC_ISSUER'), variable(env, 'TOLLGATE_OIDC_CLIENT_ID')]
  if (issuer === undefined) return undefined
  const url = URL.parse(issuer)
  const isLocal = url?.protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
  if (url?.protocol !== 'https:' && !isLocal) {
    fault('TOLLGATE_OIDC_ISSUER', 'expected an https address such as https://accounts.example.com')
  }
  if (clientId === undefined) fault('TOLLGATE_OIDC_CLIENT_ID', 'is required with TOLLGATE_OIDC_ISSUER')
  return { issuer, clientId: clientId ?? '', clientSecret }
}

function readMail(env: Environment, url: Secret | undefined, fault: (name: string, message: string) => void) {
  if (url === undefined) return undefined
  const from = variable(env, 'TOLLGATE_MAIL_FROM')
  if (!from?.includes('@')) {
    fault('TOLLGATE_MAIL_FROM', 'expected the sender of e-mails, such as "Tollgate <tollgate@example.com>"')
  }
  return { url, from: from ?? '' }
}

/** Failpoints kill the process on purpose; one left over in an environment must not. */
function readFailpoints(env: Environment, fault: (message: string) => void): readonly FailpointPlan[] {
  const text = variable(env, 'TOLLGATE_FAILPOINTS')
  if (text === undefined) return []
  if (variable(env, 'TOLLGATE_TEST') !== '1') fault('is for tests and breaks the gateway on purpose; unset it')
  const plans = parseFailpoints(text)
  if (plans === undefined) fault(`expected e.g. before_settle=kill:0.01; places: ${failpointNames.join(', ')}`)
  return plans ?? []
}

function readServerVariables(env: Environment, faults: ConfigFault[], warnings: ConfigFault[]): ServerSection {
  const section: Record<string, unknown> = {}
  for (const [key, name] of Object.entries(serverVariables)) {
    const text = variable(env, name)
    // Kubernetes sets such variables in every pod next to a service called tollgate.
    if (key === 'port' && text?.startsWith('tcp://')) {
      warnings.push(environmentFault(name, 'is ignored: it is a Kubernetes service link, not a port'))
    } else if (text !== undefined) section[key] = typedText(key as keyof ServerSection, text)
  }
  const checked = checkSchema(serverSchema, section)
  if ('value' in checked) return checked.value
  for (const { path, message } of checked.faults) {
    faults.push(environmentFault(serverVariables[path[0] as keyof ServerSection], message))
  }
  return {}
}

/** Anything that is not a number or a switch stays text, which the schema then rejects. */
function typedText(key: keyof ServerSection, text: string): unknown {
  const schema: z.ZodType = serverSchema.shape[key].unwrap()
  if (schema instanceof z.ZodArray) return text.split(',').map((entry) => entry.trim())
  if (schema instanceof z.ZodNumber) return /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : text
  if (schema !== onOff) return text
  return { true: true, '1': true, false: false, '0': false }[text.toLowerCase()] ?? text.toLowerCase()
}

/** Variables that look like ours but are unknown: most likely misspelt, so the intended setting has no effect. */
export function unknownVariables(env: Environment, alsoKnown: readonly string[]): ConfigFault[] {
  const known = [...knownVariables, ...alsoKnown]
  const serviceLink = /^TOLLGATE_(SERVICE_(HOST|PORT)|PORT_[0-9]+_(TCP|UDP))/
  return Object.keys(env)
    .filter((name) => name.startsWith('TOLLGATE_') && !known.includes(name) && !serviceLink.test(name))
    .sort()
    .map((name) => environmentFault(name, `unknown variable, ignored; ${suggestion(name, knownVariables)}`))
}

function environmentFault(name: string, message: string): ConfigFault {
  return { where: 'environment', field: name, message }
}

/** fetch sends calls through a proxy if one of these is set; the gateway then calls providers by fetch. */
const proxyVariables = ['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy', 'http_proxy']

export function setProxyVariables(env: Environment): readonly string[] {
  return proxyVariables.filter((name) => variable(env, name) !== undefined)
}

/**
 * How many upstream calls run at a time. Bun reads it before the program starts and defaults to 256; further calls would
 * wait unnoticed. The launcher bin/tollgate and the files in deploy set it.
 */
export const upstreamCallsVariable = 'BUN_CONFIG_MAX_HTTP_REQUESTS'
const upstreamCalls = '65000'

/** The environment to restart with; undefined = the variable is set already. */
export function environmentWithRoom(env: Environment): Record<string, string> | undefined {
  if (variable(env, upstreamCallsVariable) !== undefined) return undefined
  const set = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  return { ...Object.fromEntries(set), [upstreamCallsVariable]: upstreamCalls }
}
