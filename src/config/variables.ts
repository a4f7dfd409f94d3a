// The variables of the environment: which there are, and what they say. They win over the file and pass the same checks.

import type { z } from 'zod'
import { type FailpointPlan, failpointNames, parseFailpoints } from '../kernel/failpoint.ts'
import { Secret } from '../kernel/secret.ts'
import { type ConfigFault, checkSchema, suggestion } from './fault.ts'
import { type Environment, travelsInHeader, variable } from './references.ts'
import { type ServerSection, serverSchema } from './schema.ts'

/** Variables that also have a name in the file's `server` section. */
export const serverVariables = {
  host: 'TOLLGATE_HOST',
  port: 'TOLLGATE_PORT',
  data: 'TOLLGATE_DATA',
  log: 'TOLLGATE_LOG',
  sandbox: 'TOLLGATE_SANDBOX',
  body_bytes_max: 'TOLLGATE_BODY_BYTES_MAX',
  drain_seconds: 'TOLLGATE_DRAIN_SECONDS',
  drain_delay_seconds: 'TOLLGATE_DRAIN_DELAY_SECONDS',
  public_url: 'TOLLGATE_PUBLIC_URL',
  requests_retention_days: 'TOLLGATE_REQUESTS_RETENTION_DAYS',
  catalog: 'TOLLGATE_CATALOG',
  local_models: 'TOLLGATE_LOCAL_MODELS',
  trusted_proxies: 'TOLLGATE_TRUSTED_PROXIES',
} as const satisfies Record<keyof z.infer<typeof serverSchema>, string>

/** Variables that have none: the file's place, and what does not belong in a file that gets copied around. */
const otherVariables = [
  'TOLLGATE_CONFIG',
  'TOLLGATE_ADMIN_TOKEN',
  'TOLLGATE_SECRET',
  'TOLLGATE_SECRET_PREVIOUS',
  'TOLLGATE_URL',
  'TOLLGATE_KEY',
  'TOLLGATE_TEST',
  'TOLLGATE_FAILPOINTS',
  'DATABASE_URL',
  'REDIS_URL',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_SERVICE_NAME',
  'OTEL_TRACES_SAMPLER_ARG',
  'STRIPE_SECRET_KEY',
  'STRIPE_WEBHOOK_SECRET',
] as const

export const knownVariables: readonly string[] = [...Object.values(serverVariables), ...otherVariables]

/** As they were written; what they mean is for telemetry to say. */
export interface OtelVariables {
  readonly endpoint: string | undefined
  readonly headers: Secret | undefined
  readonly serviceName: string | undefined
  readonly samplerArg: string | undefined
}

/** undefined = that part of Stripe is not used. */
export interface StripeSecrets {
  readonly secretKey: Secret | undefined
  readonly webhookSecret: Secret | undefined
}

export interface VariableSettings {
  readonly server: ServerSection
  readonly adminToken: Secret | undefined
  readonly secret: Secret | undefined
  readonly databaseUrl: Secret | undefined
  readonly redisUrl: Secret | undefined
  readonly failpoints: readonly FailpointPlan[]
  readonly secretPrevious: Secret | undefined
  readonly stripe: StripeSecrets
  readonly otel: OtelVariables
  readonly providerKeys: Readonly<Record<string, Secret>>
  readonly faults: readonly ConfigFault[]
  readonly warnings: readonly ConfigFault[]
}

export function readVariables(env: Environment, providerVariables: readonly string[]): VariableSettings {
  const faults: ConfigFault[] = []
  const warnings: ConfigFault[] = []
  const fault = (name: string, message: string) => faults.push(environmentFault(name, message))
  const warn = (name: string, message: string) => warnings.push(environmentFault(name, message))
  const secretOf = (name: string) => {
    const value = variable(env, name)
    return value === undefined ? undefined : new Secret(value)
  }

  const adminToken = secretOf('TOLLGATE_ADMIN_TOKEN')
  if (adminToken && !travelsInHeader(adminToken.reveal())) {
    fault('TOLLGATE_ADMIN_TOKEN', 'has characters that cannot be sent in a header')
  }
  if (adminToken && adminToken.reveal().length < 16) {
    warn('TOLLGATE_ADMIN_TOKEN', 'is short enough to be guessed; use at least 16 random characters')
  }
  const secret = secretOf('TOLLGATE_SECRET')
  const databaseUrl = secretOf('DATABASE_URL')
  if (databaseUrl && !/^postgres(ql)?:\/\//i.test(databaseUrl.reveal())) {
    fault('DATABASE_URL', 'expected an address that starts with postgres:// (unset it to use the embedded database)')
  }
  const redisUrl = secretOf('REDIS_URL')
  if (redisUrl && !/^rediss?:\/\//i.test(redisUrl.reveal())) {
    fault('REDIS_URL', 'expected an address that starts with redis:// or rediss://')
  }
  const stripeKey = secretOf('STRIPE_SECRET_KEY')
  if (stripeKey && !travelsInHeader(stripeKey.reveal())) {
    fault('STRIPE_SECRET_KEY', 'has characters that cannot be sent in a header')
  }
  const failpoints = readFailpoints(env, (message) => fault('TOLLGATE_FAILPOINTS', message))
  const providerKeys: Record<string, Secret> = {}
  for (const name of providerVariables) {
    const key = secretOf(name)
    if (key === undefined) continue
    // Not a fault: the variable may be there for another program.
    if (travelsInHeader(key.reveal())) providerKeys[name] = key
    else warn(name, 'is ignored: it has characters that cannot be sent in a header')
  }
  const server = readServerVariables(env)
  return {
    server: server.section,
    adminToken,
    secret,
    databaseUrl,
    redisUrl,
    failpoints,
    secretPrevious: secretOf('TOLLGATE_SECRET_PREVIOUS'),
    stripe: { secretKey: stripeKey, webhookSecret: secretOf('STRIPE_WEBHOOK_SECRET') },
    otel: {
      endpoint: variable(env, 'OTEL_EXPORTER_OTLP_ENDPOINT'),
      headers: secretOf('OTEL_EXPORTER_OTLP_HEADERS'),
      serviceName: variable(env, 'OTEL_SERVICE_NAME'),
      samplerArg: variable(env, 'OTEL_TRACES_SAMPLER_ARG'),
    },
    providerKeys,
    faults: [...faults, ...server.faults],
    warnings: [...warnings, ...server.warnings],
  }
}

/** Failpoints kill the process on purpose; one that was left in an environment must not. */
function readFailpoints(env: Environment, fault: (message: string) => void): readonly FailpointPlan[] {
  const text = variable(env, 'TOLLGATE_FAILPOINTS')
  if (text === undefined) return []
  if (variable(env, 'TOLLGATE_TEST') !== '1') fault('is for tests and breaks the gateway on purpose; unset it')
  const plans = parseFailpoints(text)
  if (plans === undefined) fault(`expected e.g. before_settle=kill:0.01; places: ${failpointNames.join(', ')}`)
  return plans ?? []
}

function readServerVariables(env: Environment): {
  readonly section: ServerSection
  readonly faults: readonly ConfigFault[]
  readonly warnings: readonly ConfigFault[]
} {
  const section: Record<string, unknown> = {}
  const warnings: ConfigFault[] = []
  for (const [key, name] of Object.entries(serverVariables)) {
    const text = variable(env, name)
    if (text === undefined) continue
    if (key === 'port' && text.startsWith('tcp://')) {
      // Kubernetes puts such variables into every pod beside a service that is called tollgate.
      warnings.push(environmentFault(name, 'is ignored: it is a Kubernetes service link, not a port'))
      continue
    }
    section[key] = typedText(key, text)
  }
  const checked = checkSchema(serverSchema, section)
  if ('value' in checked) return { section: checked.value, faults: [], warnings }
  const faults = checked.faults.map(({ path, message }) => {
    return environmentFault(serverVariables[path[0] as keyof ServerSection], message)
  })
  return { section: {}, faults, warnings }
}

const numbers: ReadonlySet<string> = new Set([
  serverVariables.port,
  serverVariables.body_bytes_max,
  serverVariables.drain_seconds,
  serverVariables.drain_delay_seconds,
  serverVariables.requests_retention_days,
])
const switches: ReadonlySet<string> = new Set([serverVariables.sandbox, serverVariables.local_models])

/** What is not a number or a switch stays text, for the schema to refuse. */
function typedText(key: string, text: string): unknown {
  if (key === 'trusted_proxies') return text.split(',').map((entry) => entry.trim())
  const numeric = numbers.has(serverVariables[key as keyof ServerSection])
  if (numeric) return /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : text
  if (!switches.has(serverVariables[key as keyof ServerSection])) return text
  return { true: true, '1': true, false: false, '0': false }[text.toLowerCase()] ?? text.toLowerCase()
}

/** Variables that look like ours and are not: most likely misspelt, so what was meant is not in force. */
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
