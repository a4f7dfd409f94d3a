// Environment variables: which exist, how they are read, and references to them (`${VARIABLE}`, `file:/path`) in the
// configuration file. They take precedence over the file and pass the same checks. Messages name variables, never values.

import { resolve } from 'node:path'
import { z } from 'zod'
import { type FailpointPlan, failpointNames, parseFailpoints } from '../kernel/failpoint.ts'
import { Secret } from '../kernel/secret.ts'
import { type ConfigFault, checkSchema, suggestion } from './document.ts'
import { type SectionInputs, sectionSchemas } from './schema.ts'
import type { Setting } from './setting.ts'
import { bySection, onOff, type SectionName, sectionNames, sections } from './settings.ts'

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

/** A variable that is not a setting of the file. */
export interface VariableRow {
  /** What applies if it is not set. */
  readonly unset: string
  /** In the same form as the help of a setting. */
  readonly help: string
  readonly details?: string
  readonly inHelp?: true
  /** It holds a secret or an address with a password, so it has no place in a file that gets copied. */
  readonly isSecret?: true
  /** Its validity check, and the fault if it fails. */
  readonly check?: readonly [isValid: (value: string) => boolean, fault: string]
}

const headerFault = 'has characters that cannot be sent in a header'
const generated = 'generated in the data folder'
const startsWith = (pattern: RegExp) => (value: string) => pattern.test(value)

export const variables = {
  TOLLGATE_CONFIG: { unset: '`./tollgate.yaml` if it exists', help: 'configuration file, YAML or JSON', inHelp: true },
  TOLLGATE_ADMIN_TOKEN: {
    unset: generated,
    help: 'bearer token of the management API',
    isSecret: true,
    check: [travelsInHeader, headerFault],
  },
  TOLLGATE_SECRET: {
    unset: generated,
    help: 'master secret',
    details:
      'It hashes API keys and encrypts stored provider keys: at least 32 random bytes in base64 or hexadecimal, or any other text of at least 32 characters that is as hard to guess.',
    inHelp: true,
    isSecret: true,
  },
  TOLLGATE_SECRET_PREVIOUS: {
    unset: 'not set',
    help: 'the master secret that is being replaced; data encrypted with it stays readable',
    isSecret: true,
  },
  DATABASE_URL: {
    unset: 'not set: SQLite in the data folder',
    help: 'PostgreSQL database, `postgres://…`',
    inHelp: true,
    isSecret: true,
    check: [
      startsWith(/^postgres(ql)?:\/\//i),
      'expected an address that starts with postgres:// (unset it to use the embedded database)',
    ],
  },
  REDIS_URL: {
    unset: 'not set',
    help: 'Redis for several replicas, `redis://…` or `rediss://…`',
    isSecret: true,
    check: [startsWith(/^rediss?:\/\//i), 'expected an address that starts with redis:// or rediss://'],
  },
  STRIPE_SECRET_KEY: {
    unset: 'not set',
    help: 'API key of Stripe, needed for [card payments](../operate/payments.md), automatic top-ups and refunds',
    isSecret: true,
    check: [travelsInHeader, headerFault],
  },
  STRIPE_WEBHOOK_SECRET: {
    unset: 'not set: payments are off',
    help: "signing secret of Stripe's webhook, which reports [payments](../operate/payments.md)",
    isSecret: true,
  },
  TOLLGATE_OIDC_ISSUER: {
    unset: 'not set: local accounts only',
    help: 'the identity provider that people may sign in with, see [sign-in](../operate/sign-in.md)',
  },
  TOLLGATE_OIDC_CLIENT_ID: { unset: 'not set', help: "the gateway's client id at the identity provider" },
  TOLLGATE_OIDC_CLIENT_SECRET: { unset: 'not set', help: 'the secret of that client', isSecret: true },
  TOLLGATE_SMTP_URL: {
    unset: 'not set: no e-mail',
    help: 'mail server, `smtp://user:password@mail.example.com:587` (STARTTLS if offered) or `smtps://…:465`, see [alerts](../operate/alerts.md#e-mail)',
    isSecret: true,
    check: [startsWith(/^smtps?:\/\//i), 'expected an address such as smtp://user:password@mail.example.com:587'],
  },
  TOLLGATE_MAIL_FROM: { unset: 'not set', help: 'sender of e-mails, such as `Tollgate <tollgate@example.com>`' },
  TOLLGATE_CONTENT_HEADERS: {
    unset: 'not set',
    help: 'headers of the [content export](../operate/content-export.md), such as credentials: `name=value,name=value`, values percent-encoded',
    isSecret: true,
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    unset: 'not set: no export',
    help: 'where traces and metrics are sent over OTLP, see [monitoring](../operate/observe.md)',
  },
  OTEL_EXPORTER_OTLP_HEADERS: { unset: 'not set', help: 'headers of the export, such as credentials' },
  OTEL_SERVICE_NAME: { unset: 'not set', help: 'name of the service in traces and metrics' },
  OTEL_TRACES_SAMPLER_ARG: { unset: 'not set', help: 'share of requests that are traced' },
  TOLLGATE_URL: {
    unset: 'address of the gateway that uses the data folder',
    help: 'for commands: the gateway to talk to',
  },
  TOLLGATE_KEY: { unset: 'not set', help: 'for `tollgate connect`: the API key to use instead of a new one' },
  TOLLGATE_FAILPOINTS: {
    unset: 'not set',
    help: 'for crash tests, such as `before_settle=kill:0.01`; rejected unless `TOLLGATE_TEST=1`',
  },
  TOLLGATE_TEST: { unset: 'not set', help: '`1` enables `TOLLGATE_FAILPOINTS`' },
} as const satisfies Readonly<Record<string, VariableRow>>

type SecretVariable = {
  [Name in keyof typeof variables]: (typeof variables)[Name] extends { readonly isSecret: true } ? Name : never
}[keyof typeof variables]

export const secretVariables = Object.keys(variables).filter((name): name is SecretVariable => {
  return 'isSecret' in variables[name as keyof typeof variables]
})

/** The variable and the row of each setting that has one. */
export const settingVariables: readonly {
  readonly section: SectionName
  readonly key: string
  readonly row: Setting
  readonly name: string
}[] = sectionNames.flatMap((section) =>
  Object.entries<Setting>(sections[section].settings).flatMap(([key, row]) =>
    row.variable === undefined ? [] : [{ section, key, row, name: row.variable }],
  ),
)

export const knownVariables: readonly string[] = [
  ...settingVariables.map(({ name }) => name),
  ...Object.keys(variables),
]

/** Absolute; whether or not the file exists. */
export function configPathOf(env: Environment, cwd: string): string {
  return resolve(cwd, variable(env, 'TOLLGATE_CONFIG') ?? 'tollgate.yaml')
}

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
  const secrets: Partial<Record<SecretVariable, Secret | undefined>> = {}
  for (const name of secretVariables) {
    const { check }: VariableRow = variables[name]
    const secret = secretOf(name)
    if (secret && check && !check[0](secret.reveal())) fault(name, check[1])
    secrets[name] = secret
  }
  const adminToken = secrets.TOLLGATE_ADMIN_TOKEN
  if (adminToken && adminToken.reveal().length < 16) {
    warn('TOLLGATE_ADMIN_TOKEN', 'is short enough to be guessed; use at least 16 random characters')
  }
  /** By variable; only those that are set. */
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
  const sections = readSettingVariables(env, faults, warnings)
  const settings = {
    /** undefined = generated into the data folder. */
    adminToken,
    secret: secrets.TOLLGATE_SECRET,
    /** The master secret that is being replaced. It still decrypts what it encrypted. */
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
    /** As written; telemetry interprets it. */
    contentHeaders: secrets.TOLLGATE_CONTENT_HEADERS,
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
  return { sections, settings, faults, warnings }
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

function readSettingVariables(env: Environment, faults: ConfigFault[], warnings: ConfigFault[]): SectionInputs {
  return bySection((section) => {
    const given: Record<string, unknown> = {}
    const own = settingVariables.filter((each) => each.section === section)
    for (const { key, row, name } of own) {
      const text = variable(env, name)
      // Kubernetes sets such variables in every pod next to a service called tollgate.
      if (name === 'TOLLGATE_PORT' && text?.startsWith('tcp://')) {
        warnings.push(environmentFault(name, 'is ignored: it is a Kubernetes service link, not a port'))
      } else if (text !== undefined) given[key] = typedText(row.schema, text)
    }
    const checked = checkSchema(sectionSchemas[section], given)
    if ('value' in checked) return checked.value
    for (const { path, message } of checked.faults) {
      const name = own.find(({ key }) => key === path[0])?.name ?? ''
      faults.push(environmentFault(name, message))
    }
    return {}
  })
}

/** Anything that is not a number or a switch stays text, which the schema then rejects. */
function typedText(schema: z.ZodType, text: string): unknown {
  const written = schema instanceof z.ZodCodec ? schema.in : schema
  if (written instanceof z.ZodArray) return text.split(',').map((entry) => entry.trim())
  if (written instanceof z.ZodNumber) return /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : text
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

/** fetch sends calls through a proxy if one of these is set; the gateway then calls providers with fetch. */
const proxyVariables = ['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy', 'http_proxy']

export function setProxyVariables(env: Environment): readonly string[] {
  return proxyVariables.filter((name) => variable(env, name) !== undefined)
}

/**
 * Maximum number of concurrent upstream calls. Bun reads it before the program starts and defaults to 256; further calls
 * would queue silently. The launcher bin/tollgate and the files in deploy set it.
 */
export const upstreamCallsVariable = 'BUN_CONFIG_MAX_HTTP_REQUESTS'
const upstreamCalls = '65000'

/** The environment to restart with; undefined = the variable is set already. */
export function environmentWithRoom(env: Environment): Record<string, string> | undefined {
  if (variable(env, upstreamCallsVariable) !== undefined) return undefined
  const set = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  return { ...Object.fromEntries(set), [upstreamCallsVariable]: upstreamCalls }
}
