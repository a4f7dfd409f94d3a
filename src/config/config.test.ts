import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import {
  type Config,
  type ConfigInputs,
  type LoadedConfig,
  listSettings,
  loadConfig,
  type RefusedConfig,
} from './config.ts'
import { formatFault } from './document.ts'
import { environmentWithRoom } from './environment.ts'
import { sectionNames, sections } from './settings.ts'

const root = mkdtempSync(join(tmpdir(), 'tollgate-config-'))
afterAll(() => rmSync(root, { recursive: true }))

let folders = 0
function folder(files: Record<string, string> = {}): string {
  const path = join(root, String(folders++))
  mkdirSync(path)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content)
  return path
}

type Setup = Partial<ConfigInputs> & { readonly file?: string }

function inputsOf({ file, ...inputs }: Setup = {}): ConfigInputs {
  return {
    env: {},
    cwd: inputs.cwd ?? folder(file === undefined ? {} : { 'tollgate.yaml': file }),
    stdoutIsTerminal: true,
    providerVariables: ['ACME_API_KEY', 'OTHER_API_KEY'],
    builtInProviderIds: ['acme', 'sandbox'],
    builtInModels: [],
    ...inputs,
  }
}

function load(setup: Setup = {}): LoadedConfig | RefusedConfig {
  return loadConfig(inputsOf(setup))
}

function loaded(setup: Setup = {}): LoadedConfig {
  const outcome = load(setup)
  if ('faults' in outcome) throw new Error(outcome.faults.map(formatFault).join('\n'))
  return outcome
}

const configOf = (setup: Setup = {}): Config => loaded(setup).config

function faultsOf(setup: Setup): string[] {
  const outcome = load(setup)
  return 'faults' in outcome ? outcome.faults.map(formatFault) : []
}

const warningsOf = (setup: Setup) => load(setup).warnings.map(formatFault)

test('uses defaults without a file or variables', () => {
  const cwd = folder()
  const { config, warnings, fileDigest } = loaded({ cwd })
  expect(warnings).toEqual([])
  expect(fileDigest).toBeUndefined()
  expect(config).toEqual({
    host: '127.0.0.1',
    port: 8080,
    dataFolder: join(cwd, 'data'),
    sandbox: true,
    logFormat: 'pretty',
    databaseUrl: undefined,
    redisUrl: undefined,
    failpoints: [],
    secretPrevious: undefined,
    stripe: { secretKey: undefined, webhookSecret: undefined },
    otel: { endpoint: undefined, headers: undefined, serviceName: undefined, samplerArg: undefined },
    requestsRetentionDays: 90,
    storeResponses: false,
    clientTelemetry: true,
    responsesRetentionDays: 30,
    endUsers: 'hashed',
    catalogIsPublic: true,
    secret: undefined,
    adminToken: undefined,
    bodyBytesMax: 33_554_432,
    bodiesBytesMax: 268_435_456,
    drainMs: 120_000,
    drainDelayMs: 0,
    limits: { requestsPerMinute: undefined, tokensPerMinute: undefined, concurrentRequests: undefined },
    ownKeys: { feeBasisPoints: 0, mayBringAddress: false, allowHosts: [], plainHttp: false },
    prices: { updateFrom: undefined, updateHours: 24 },
    reconcile: { daily: true, hour: 8, days: 5 },
    batches: {
      enabled: false,
      concurrency: 4,
      providers: [],
      outputDays: 7,
      fileBytesMax: 209_715_200,
      linesMax: 50_000,
    },
    alerts: { emailDomains: [] },
    webhooks: { allowHosts: [] },
    payments: { min: '1.00', max: '10000.00' },
    retries: { attempts: 10, backoffMs: 2000, totalMs: 20_000, unavailableStatus: 404 },
    sessions: { cacheMarks: true, keepReasoning: true },
    oidc: undefined,
    mail: undefined,
    signIn: {
      mode: 'invite',
      openingCredit: '0',
      providerName: 'single sign-on',
      allowedDomains: [],
      requiredGroup: undefined,
      groupClaim: 'groups',
      scopes: ['openid', 'email', 'profile'],
      roles: [],
    },
    publicUrl: undefined,
    localModels: true,
    instanceIdentity: undefined,
    hasHttpProxy: false,
    trustedProxies: [],
    corsOrigins: [],
    providerChoice: true,
    aliases: {},
    disabledProviders: [],
    bills: [],
    policies: [],
    contentExport: {
      ...{ url: undefined, sampleBasisPoints: 10_000, charactersMax: 65_536, isAnnounced: false },
      redact: ['keys', 'emails', 'cards'],
    },
    contentHeaders: undefined,
    providers: [],
    models: [],
    providerKeys: {},
    configPath: join(cwd, 'tollgate.yaml'),
    configFileExists: false,
  })
})

const file = `server: { host: "::1", port: 9000, data: /var/lib/tollgate, log: json, sandbox: off, body_bytes_max: 2048, drain_seconds: 5 }
limits: { requests_per_minute: 600, concurrent_requests: 50 }
`

test('lists every setting of the file with a value', () => {
  const listed = listSettings(inputsOf())
  if ('faults' in listed) throw new Error('no faults without a file')
  const names = sectionNames.flatMap((name) => Object.keys(sections[name].settings).map((key) => `${name}.${key}`))
  expect(names.length).toBeGreaterThan(40)
  const values = new Map(listed.map(({ name, value }) => [name, value]))
  expect(names.filter((name) => [undefined, '', 'undefined', '[object Object]'].includes(values.get(name)))).toEqual([])
  const expected = {
    'server.port': '8080',
    'server.sandbox': 'on',
    'server.drain_seconds': '120',
    'server.cors_origins': 'none',
    'limits.tokens_per_minute': 'unlimited',
    'own_keys.plain_http': 'false',
    'retries.backoff_ms': '2000',
    'sign_in.required_group': 'none',
    'sign_in.allowed_domains': 'all, if verified',
  }
  expect(Object.fromEntries(Object.keys(expected).map((name) => [name, values.get(name)]))).toEqual(expected)
})

test('the file takes precedence over the defaults', () => {
  const { configPath, ...config } = configOf({ file })
  expect(config).toMatchObject({
    host: '::1',
    port: 9000,
    dataFolder: '/var/lib/tollgate',
    sandbox: false,
    logFormat: 'json',
    bodyBytesMax: 2048,
    drainMs: 5000,
    limits: { requestsPerMinute: 600, tokensPerMinute: undefined, concurrentRequests: 50 },
    configFileExists: true,
  })
  expect(configPath).toEndWith('/tollgate.yaml')
})

test('a variable takes precedence over the file', () => {
  const cwd = folder({ 'tollgate.yaml': file })
  const env = {
    TOLLGATE_HOST: '0.0.0.0',
    TOLLGATE_PORT: '0',
    TOLLGATE_DATA: './elsewhere',
    TOLLGATE_LOG: 'pretty',
    TOLLGATE_SANDBOX: 'on',
    TOLLGATE_BODY_BYTES_MAX: '4096',
    TOLLGATE_DRAIN_SECONDS: '0.5',
  }
  expect(configOf({ cwd, env })).toMatchObject({
    host: '0.0.0.0',
    port: 0,
    dataFolder: join(cwd, 'elsewhere'),
    sandbox: true,
    logFormat: 'pretty',
    bodyBytesMax: 4096,
    drainMs: 500,
  })
})

test('an empty variable counts as not set', () => {
  const env = { TOLLGATE_HOST: '', TOLLGATE_PORT: ' ', DATABASE_URL: '', TOLLGATE_CONFIG: '', ACME_API_KEY: '' }
  const config = configOf({ env })
  expect(config.port).toBe(8080)
  expect(config.databaseUrl).toBeUndefined()
  expect(config.providerKeys).toEqual({})
})

test.each(['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy', 'http_proxy'])('%s names an HTTP proxy', (name) => {
  expect(configOf({ env: { [name]: 'http://proxy.test:3128' } }).hasHttpProxy).toBe(true)
  expect(configOf({ env: { [name]: '' } }).hasHttpProxy).toBe(false)
})

test('shows values as the file would set them, whatever Config holds', () => {
  const text = `server: { sandbox: false, drain_seconds: 5.5, catalog: signed-in, public_url: "https://gate.example//" }
own_keys: { fee_percent: 1.25, base_urls: true }
prices: { update_from: prices.json }
sign_in: { allowed_domains: [A.example, b.example], roles: [{ group: ops, role: operator }] }
`
  const inputs = inputsOf({ file: text })
  expect(configOf(inputs)).toMatchObject({
    sandbox: false,
    drainMs: 5500,
    catalogIsPublic: false,
    publicUrl: 'https://gate.example',
    ownKeys: { feeBasisPoints: 125, mayBringAddress: true },
    prices: { updateFrom: join(inputs.cwd, 'prices.json') },
    signIn: { allowedDomains: ['a.example', 'b.example'], roles: [{ group: 'ops', workspaceId: undefined }] },
  })
  const listed = listSettings(inputs)
  if ('faults' in listed) throw new Error('the file has no faults')
  const values = listed
    .filter(({ source }) => source.startsWith('tollgate.yaml:'))
    .map(({ name, value }) => [name, value])
  expect(Object.fromEntries(values)).toEqual({
    'server.sandbox': 'off',
    'server.drain_seconds': '5.5',
    'server.catalog': 'signed-in',
    'server.public_url': 'https://gate.example',
    'own_keys.fee_percent': '1.25',
    'own_keys.base_urls': 'true',
    'prices.update_from': join(inputs.cwd, 'prices.json'),
    'sign_in.allowed_domains': 'a.example, b.example',
    'sign_in.roles': 'ops = operator',
  })
})

test('a price list at an address stays an address', () => {
  const text = 'prices: { update_from: "https://prices.example/list.json" }'
  expect(configOf({ file: text }).prices.updateFrom).toBe('https://prices.example/list.json')
})

test('with PostgreSQL a stopping gateway still accepts requests for 5 s, unless the setting says otherwise', () => {
  const env = { DATABASE_URL: 'postgres://db/tollgate' }
  expect(configOf({ env }).drainDelayMs).toBe(5000)
  expect(configOf({ env: { ...env, TOLLGATE_DRAIN_DELAY_SECONDS: '0.5' } }).drainDelayMs).toBe(500)
})

test('logs JSON without a terminal', () => {
  expect(configOf({ stdoutIsTerminal: false }).logFormat).toBe('json')
  expect(configOf({ stdoutIsTerminal: false, env: { TOLLGATE_LOG: 'pretty' } }).logFormat).toBe('pretty')
})

test.each([
  ['off', false],
  ['OFF', false],
  ['0', false],
  ['false', false],
  ['on', true],
  ['1', true],
])('TOLLGATE_SANDBOX=%s', (text, sandbox) => {
  expect(configOf({ env: { TOLLGATE_SANDBOX: text } }).sandbox).toBe(sandbox)
})

test('accepts true and false for the sandbox in the file', () => {
  expect(configOf({ file: 'server: { sandbox: false }' }).sandbox).toBe(false)
  expect(configOf({ file: 'server: { sandbox: true }' }).sandbox).toBe(true)
})

test('TOLLGATE_CONFIG names another file, relative to the working folder', () => {
  const cwd = folder({ 'other.json': '{"server": {"port": 1234}}' })
  const config = configOf({ cwd, env: { TOLLGATE_CONFIG: 'other.json' } })
  expect(config.port).toBe(1234)
  expect(config.configPath).toBe(join(cwd, 'other.json'))
})

test('a named file that does not exist is a fault', () => {
  const env = { TOLLGATE_CONFIG: 'missing.yaml' }
  expect(faultsOf({ env })).toEqual([
    'missing.yaml  the configuration file cannot be read (ENOENT); TOLLGATE_CONFIG names it',
  ])
})

test('a folder instead of the file is a fault', () => {
  const cwd = folder()
  mkdirSync(join(cwd, 'tollgate.yaml'))
  expect(faultsOf({ cwd })).toEqual(['tollgate.yaml  the configuration file cannot be read (EISDIR)'])
})

test('shows the full path of a file outside the working folder', () => {
  const path = join(folder({ 'x.yaml': 'server: { port: 70000 }' }), 'x.yaml')
  expect(faultsOf({ env: { TOLLGATE_CONFIG: path } })).toEqual([
    `${path}:1:17  server.port  expected at most 65535, got the number 70000`,
  ])
})

test('reads trusted proxies as a list or a comma-separated variable, and names a wrong one', () => {
  const listed = 'server: { trusted_proxies: [10.0.0.0/8, "2001:db8::1"] }'
  expect(configOf({ file: listed }).trustedProxies).toEqual(['10.0.0.0/8', '2001:db8::1'])
  const env = { TOLLGATE_TRUSTED_PROXIES: '192.0.2.1, 10.83.0.0/24' }
  expect(configOf({ file: listed, env }).trustedProxies).toEqual(['192.0.2.1', '10.83.0.0/24'])
  const expected = 'expected an address or a range whose bits after the prefix are 0, such as 10.0.0.0/8, got'
  expect(faultsOf({ file: 'server:\n  trusted_proxies: [10.0.0.1, 10.0.0.1/8]\n' })).toEqual([
    `tollgate.yaml:2:31  server.trusted_proxies[1]  ${expected} "10.0.0.1/8"`,
  ])
  expect(faultsOf({ env: { TOLLGATE_TRUSTED_PROXIES: '10.0.0.1,nginx' } })).toEqual([
    `environment  TOLLGATE_TRUSTED_PROXIES  ${expected} "nginx"`,
  ])
})

test('the scopes of a sign-in contain openid, and each is one word', () => {
  expect(configOf({ file: 'sign_in: { scopes: [openid, groups] }' }).signIn.scopes).toEqual(['openid', 'groups'])
  expect(faultsOf({ file: 'sign_in: { scopes: [email] }' })).toEqual([
    'tollgate.yaml:1:20  sign_in.scopes  expected openid among the scopes, got a list',
  ])
  expect(faultsOf({ file: 'sign_in: { scopes: [openid, "email groups"] }' })).toEqual([
    'tollgate.yaml:1:29  sign_in.scopes[1]  expected the name of a scope, without spaces, got "email groups"',
  ])
})

test('reports all faults of environment and file at once', () => {
  const env = {
    TOLLGATE_PORT: 'http',
    TOLLGATE_LOG: 'jsn',
    TOLLGATE_SANDBOX: 'maybe',
    TOLLGATE_DRAIN_SECONDS: '-1',
    TOLLGATE_ADMIN_TOKEN: 'canary with spaces in it',
    DATABASE_URL: 'mysql://canary',
    REDIS_URL: 'canary',
  }
  expect(faultsOf({ env, file: 'servr: 1' })).toEqual([
    'environment  TOLLGATE_ADMIN_TOKEN  has characters that cannot be sent in a header',
    'environment  DATABASE_URL  expected an address that starts with postgres:// (unset it to use the embedded database)',
    'environment  REDIS_URL  expected an address that starts with redis:// or rediss://',
    'environment  TOLLGATE_PORT  expected a number, got "http"',
    'environment  TOLLGATE_LOG  expected one of pretty, json, got "jsn" (did you mean json?)',
    'environment  TOLLGATE_SANDBOX  expected on or off, got "maybe"',
    'environment  TOLLGATE_DRAIN_SECONDS  expected a number, got "-1"',
    'tollgate.yaml:1:1  servr  unknown key "servr"; did you mean "server"?',
  ])
})

test('warns about an unknown TOLLGATE_ variable with the nearest known one', () => {
  const env = { TOLLGATE_PROT: '1', TOLLGATE_DATABASE: 'x', UNRELATED: 'x' }
  const [database, prot, ...others] = warningsOf({ env })
  expect(database).toStartWith('environment  TOLLGATE_DATABASE  unknown variable, ignored; ')
  expect(database).toContain('TOLLGATE_DATA')
  expect(prot).toBe('environment  TOLLGATE_PROT  unknown variable, ignored; did you mean "TOLLGATE_PORT"?')
  expect(others).toEqual([])
})

test('does not warn about a variable that the file refers to', () => {
  const text = `providers:\n  - { id: x, dialect: sandbox, api_key: "\${TOLLGATE_X_KEY}" }\n`
  expect(warningsOf({ file: text, env: { TOLLGATE_X_KEY: 'k' } })).toEqual([])
})

test('ignores the variables of a Kubernetes service called tollgate', () => {
  const env = {
    TOLLGATE_PORT: 'tcp://10.0.0.7:8080',
    TOLLGATE_PORT_8080_TCP: 'tcp://10.0.0.7:8080',
    TOLLGATE_SERVICE_HOST: '10.0.0.7',
  }
  expect(configOf({ env }).port).toBe(8080)
  expect(warningsOf({ env })).toEqual([
    'environment  TOLLGATE_PORT  is ignored: it is a Kubernetes service link, not a port',
  ])
})

test('warns about a short token without showing it; a short master secret is refused at the start', () => {
  const env = { TOLLGATE_SECRET: 'canary-secret', TOLLGATE_ADMIN_TOKEN: 'canary' }
  const warnings = warningsOf({ env })
  expect(warnings).toHaveLength(1)
  expect(warnings.join()).not.toContain('canary')
})

test('finds provider keys by the variable names it is given', () => {
  const env = { ACME_API_KEY: 'sk-acme\n', OTHER_API_KEY: 'two words', THIRD_API_KEY: 'sk-third' }
  const { config, warnings } = loaded({ env })
  expect(Object.keys(config.providerKeys)).toEqual(['ACME_API_KEY'])
  expect(config.providerKeys.ACME_API_KEY?.reveal()).toBe('sk-acme')
  expect(warnings.map(formatFault)).toEqual([
    'environment  OTHER_API_KEY  is ignored: it has characters that cannot be sent in a header',
  ])
})

const secretive: Setup = {
  file: `providers:
  - { id: x, dialect: openai-chat, base_url: "http://x/v1", api_key: literal-canary-0123456789 }
models:
  - { id: a/b, price: { input: "2.50", output: "10" }, routes: [{ provider: x, model: b }] }
`,
  env: {
    ACME_API_KEY: 'acme-canary-0123456789',
    TOLLGATE_SECRET: 'secret-canary-0123456789-0123456789',
    TOLLGATE_ADMIN_TOKEN: 'token-canary-0123456789',
    DATABASE_URL: 'postgres://user:canary@db/tollgate',
    REDIS_URL: 'rediss://:canary@cache:6379',
  },
}

test('does not print secrets with the configuration', () => {
  const config = configOf(secretive)
  expect(config.databaseUrl?.reveal()).toBe('postgres://user:canary@db/tollgate')
  for (const text of [JSON.stringify(config), inspect(config, { depth: 9 }), Bun.inspect(config)]) {
    expect(text).not.toContain('canary')
    expect(text).toContain('[secret …6789]')
  }
})

test('writes the configuration as JSON, with decimal prices', () => {
  const { models } = JSON.parse(JSON.stringify(configOf(secretive)))
  const { rows } = models[0].price as { rows: { bucket: string; picoDollarsPerUnit: string }[] }
  const prices = Object.fromEntries(rows.map(({ bucket, picoDollarsPerUnit }) => [bucket, picoDollarsPerUnit]))
  expect(prices).toMatchObject({ input: '2.50', output: '10.00', cache_write_1h: '2.50' })
})

test('freezes the configuration deeply', () => {
  const seen: unknown[] = []
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    seen.push(value)
    expect(Object.isFrozen(value)).toBe(true)
    Object.values(value).forEach(visit)
  }
  visit(configOf(secretive))
  expect(seen.length).toBeGreaterThan(10)
})

test('a process without the limit of upstream calls gets it, and one that is set stays', () => {
  const room = { BUN_CONFIG_MAX_HTTP_REQUESTS: '65000' }
  expect(environmentWithRoom({ PATH: '/bin', GONE: undefined })).toEqual({ PATH: '/bin', ...room })
  expect(environmentWithRoom({ BUN_CONFIG_MAX_HTTP_REQUESTS: '' })).toEqual(room)
  expect(environmentWithRoom({ BUN_CONFIG_MAX_HTTP_REQUESTS: '300' })).toBeUndefined()
})
