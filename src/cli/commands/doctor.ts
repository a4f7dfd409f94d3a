// `tollgate doctor`: checks the configuration, the machine, the database, the providers, the policies and the running gateway. Every
// finding ends in "ok" or in what to do.

import { accessSync, constants, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { z } from 'zod'
import manifest from '../../../package.json' with { type: 'json' }
import type { ClientSettings } from '../../config/client-settings.ts'
import { type Config, loadConfig } from '../../config/config.ts'
import { formatFault } from '../../config/document.ts'
import { type Environment, setProxyVariables, variable } from '../../config/environment.ts'
import { dialects } from '../../dialects/registry.ts'
import { type Clock, isoTime } from '../../kernel/clock.ts'
import { createId } from '../../kernel/ids.ts'
import { Secret } from '../../kernel/secret.ts'
import { PolicyEndpoint } from '../../pipeline/policy-endpoint.ts'
import { cloudOf } from '../../providers/cloud-identities.ts'
import { builtInProviders } from '../../providers/data/built-in.ts'
import { findLocalServers } from '../../providers/local.ts'
import type { Provider } from '../../providers/provider.ts'
import { createProviders } from '../../providers/registry.ts'
import { type Probe, probeProvider } from '../../routing/probe-provider.ts'
import type { Database } from '../../store/database.ts'
import { readMigrationState } from '../../store/migrate.ts'
import { causeText, StartRefusal } from '../../store/start-refusal.ts'
import { createSend, readHeaders } from '../../telemetry/otlp.ts'
import { encodeTraces } from '../../telemetry/otlp-protobuf.ts'
import { readRotationStatus } from '../../tenancy/rotation.ts'
import { isSecretOnRecord } from '../../tenancy/secrets.ts'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import { openReadOnly } from '../read-only-database.ts'
import { exitCodes, Refusal, tryTo } from '../refusal.ts'
import { bold, cleanText, counted, padded } from '../values.ts'
import { type MasterSecrets, readMasterSecrets } from './secrets.ts'

export const doctorCommand: CommandDefinition = {
  words: ['doctor'],
  isLocal: true,
  summary: 'checks settings, data, database, clock, port, provider keys and what a client would see',
  details: `Each line ends in "ok" or in what to do; exits with 1 if something is wrong. Provider keys are tested with a call that
generates nothing and costs nothing, policies with a harmless request, and the content export with an empty one; --offline
skips all of them. No key is shown.`,
  options: { offline: { help: 'do not call providers, policies and the content export' } },
  examples: ['tollgate doctor', 'tollgate doctor --json'],
  async run(context) {
    const findings = await examine(context)
    const faults = findings.filter(({ verdict }) => verdict === 'wrong').length
    printResult(context, { ok: faults === 0, findings }, () => renderFindings(findings, faults, context.terminal))
    if (faults === 0) return
    throw new Refusal(
      exitCodes.failed,
      `${counted(faults, 'problem')} found.`,
      'the advice after each arrow, then tollgate doctor again',
    )
  },
}

async function examine(context: CommandContext): Promise<readonly Finding[]> {
  const { inputs, settings, clock, isSet } = context
  const loaded = loadConfig(inputs)
  const config = 'faults' in loaded ? undefined : loaded.config
  const [store, providers, policies, content, local, gateway] = await Promise.all([
    config && checkDatabase(config, await tryTo(Promise.try(readMasterSecrets, context)), clock.now()),
    config && !isSet('offline') ? checkProviders(config, clock) : undefined,
    config && !isSet('offline') ? checkEachPolicy(config, clock) : [],
    config ? checkContentExport(config, isSet('offline')) : [],
    config ? checkLocalServers(config) : [],
    checkGateway(settings, config),
  ])
  const area = 'configuration'
  return [
    checkVersion(),
    ...('faults' in loaded
      ? loaded.faults.map((fault) => {
          const missing = 'provide it where the gateway is started, and here to check the rest'
          return wrong(area, formatFault(fault), fault.isMissingHere ? missing : 'correct it there')
        })
      : [ok(area, fileText(loaded.config, inputs.cwd))]),
    ...loaded.warnings.map((warning) => note(area, formatFault(warning), 'correct or unset it')),
    ...checkDataFolder(config?.dataFolder ?? settings.dataFolder),
    ...(store?.findings ?? []),
    checkClock({ now: clock.now(), dated: providers?.dated, newestRow: store?.newestRow }),
    ...checkProxy(inputs.env),
    ...(providers?.findings ?? []),
    ...policies,
    ...content,
    ...local,
    ...gateway,
  ]
}

function fileText({ configPath, configFileExists }: Config, cwd: string): string {
  if (!configFileExists) return 'no file; environment and defaults only'
  const inside = relative(cwd, configPath)
  return inside.startsWith('..') ? configPath : inside
}

export interface Finding {
  /** The subject of the check: `configuration`, `provider`, … */
  readonly area: string
  /** The finding. */
  readonly what: string
  /** `note`: not a fault, but worth knowing. */
  readonly verdict: 'ok' | 'note' | 'wrong'
  /** The remedy; absent if the verdict is ok. */
  readonly advice?: string
}

function ok(area: string, what: string): Finding {
  return { area, what, verdict: 'ok' }
}

function note(area: string, what: string, advice: string): Finding {
  return { area, what, verdict: 'note', advice }
}

function wrong(area: string, what: string, advice: string): Finding {
  return { area, what, verdict: 'wrong', advice }
}

const marks = { ok: ['✓', 32], note: ['·', 33], wrong: ['✗', 31] } as const

function renderFindings(findings: readonly Finding[], faults: number, { color }: { readonly color: boolean }): string {
  const width = Math.max(...findings.map(({ area }) => area.length))
  const lines = findings.map(({ area, what, verdict, advice }) => {
    const [sign, code] = marks[verdict]
    const mark = color ? `\u001b[${code}m${sign}\u001b[39m` : sign
    const end = advice === undefined ? 'ok' : `→ ${cleanText(advice)}`
    return `${mark} ${padded(area, width, undefined)}  ${cleanText(what)}  ${color ? bold(end) : end}\n`
  })
  // How many there are is said by the error.
  return `${lines.join('')}${faults === 0 ? '\nNo problems found.\n' : ''}`
}

function checkVersion(): Finding {
  const { bun } = manifest.dependencies
  const what = `tollgate ${manifest.version} on Bun ${Bun.version}, ${process.platform} ${process.arch}`
  if (bun === Bun.version) return ok('version', what)
  return note('version', what, `this version was tested on Bun ${bun}; to install that: npm ci`)
}

const noProxyVariables = ['NO_PROXY', 'no_proxy']

/** Bun uses these for every call, also to this machine, unless NO_PROXY names it. */
export function checkProxy(env: Environment): readonly Finding[] {
  const set = setProxyVariables(env)
  if (set.length === 0) return [ok('proxy', 'none: providers are called directly')]
  const exempt = noProxyVariables.flatMap((name) => (variable(env, name) ?? '').split(',')).map((host) => host.trim())
  const sparesLocal = exempt.some((host) => host === '*' || host === '127.0.0.1')
  const findings = set.map((name) => {
    const url = URL.parse(variable(env, name) ?? '')
    if (url === null || url.host === '') {
      return wrong('proxy', `${name} is not an address`, `set it to http://HOST:PORT, or unset it`)
    }
    // Only the host: a proxy's address may contain a password.
    return ok('proxy', `${name} sends calls through ${url.host}`)
  })
  if (sparesLocal || !set.some((name) => /^http_/i.test(name))) return findings
  const what = 'calls to this machine go through the proxy too'
  return [...findings, note('proxy', what, 'NO_PROXY=127.0.0.1,localhost')]
}

/** More than signatures, tokens and certificates tolerate. */
const skewMaxMs = 60_000
/** Before this program existed: a clock with an earlier time was never set. */
const firstRelease = Date.UTC(2026, 0, 1)

interface ClockFacts {
  readonly now: number
  /** The Date header of a provider's response, and when it arrived. */
  readonly dated?: { readonly at: number; readonly receivedAt: number } | undefined
  /** The newest time in the database. */
  readonly newestRow?: number | undefined
}

export function checkClock({ now, dated, newestRow }: ClockFacts): Finding {
  const shown = `${isoTime(now).slice(0, 19).replace('T', ' ')} UTC`
  const advice = 'set the clock: timedatectl set-ntp true'
  if (now < firstRelease) return wrong('clock', `${shown} is earlier than the first release`, advice)
  if (dated !== undefined) {
    const skewMs = dated.receivedAt - dated.at
    const seconds = Math.round(Math.abs(skewMs) / 1000)
    if (Math.abs(skewMs) <= skewMaxMs) return ok('clock', `${shown}, agrees with a provider's`)
    return wrong('clock', `${shown} is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} a provider's`, advice)
  }
  if (newestRow !== undefined && newestRow > now + skewMaxMs) {
    return wrong('clock', `${shown} is earlier than the newest row of the database`, advice)
  }
  return ok('clock', shown)
}

const othersMask = 0o077

export function checkDataFolder(folder: string): readonly Finding[] {
  const area = 'data folder'
  const stat = statSync(folder, { throwIfNoEntry: false })
  if (stat === undefined)
    return [note(area, `${folder} does not exist yet`, 'the first start creates it: tollgate serve')]
  if (!stat.isDirectory()) return [wrong(area, `${folder} is not a folder`, 'TOLLGATE_DATA=FOLDER')]
  const findings: Finding[] = []
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return [wrong(area, `${folder} cannot be written by this user`, 'chown it, or TOLLGATE_DATA=FOLDER')]
  }
  if ((stat.mode & othersMask) !== 0) {
    findings.push(wrong(area, `${folder} is open to other users (${octal(stat.mode)})`, `chmod 700 ${folder}`))
  }
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
    if ((mode & othersMask) === 0) continue
    findings.push(wrong(area, `${path} is open to other users (${octal(mode)})`, `chmod go= ${path}`))
  }
  return findings.length > 0 ? findings : [ok(area, `${folder}, private (${octal(stat.mode)})`)]
}

/** `newestRow`: the newest time in it. */
export async function checkDatabase(
  config: Config,
  secrets: MasterSecrets | Refusal,
  now: number,
): Promise<{ readonly findings: readonly Finding[]; readonly newestRow?: number | undefined }> {
  const { databaseUrl, dataFolder } = config
  const area = 'database'
  const engine = databaseUrl === undefined ? 'SQLite' : 'PostgreSQL'
  let database: Database
  try {
    database = await openReadOnly(databaseUrl?.reveal(), dataFolder)
  } catch (thrown) {
    const isNew = databaseUrl === undefined && thrown instanceof StartRefusal
    const finding = isNew
      ? note(area, `${engine}, does not exist yet`, 'the first start creates it: tollgate serve')
      : wrong(area, `${engine} cannot be opened: ${causeText(thrown)}`, 'check DATABASE_URL, or the disk')
    return { findings: [finding] }
  }
  try {
    const tables = await checkTables(database, engine)
    // The other checks read tables as this version has them.
    if (tables.verdict !== 'ok') return { findings: [tables] }
    const [row] = await database.sql<{ newest: bigint | null }>`SELECT MAX(at) AS newest FROM audit`
    return {
      findings: [tables, await checkSecret(database, secrets, now), ...(await checkExporting(database, config))],
      newestRow: row?.newest == null ? undefined : Number(row.newest),
    }
  } catch (thrown) {
    const advice = 'start the gateway once, or see its log'
    return { findings: [wrong(area, `${engine} cannot be read: ${causeText(thrown)}`, advice)] }
  } finally {
    await database.close()
  }
}

async function checkTables(database: Database, engine: string): Promise<Finding> {
  const { applied, pending, fault } = await readMigrationState(database)
  if (fault) return wrong('database', `${engine}: ${fault.what}`, fault.advice)
  const what = `${engine}, ${applied} of ${applied + pending} migrations`
  return pending === 0 ? ok('database', what) : note('database', what, 'the next start applies the rest')
}

async function checkSecret({ sql }: Database, secrets: MasterSecrets | Refusal, now: number): Promise<Finding> {
  const area = 'secret'
  if (secrets instanceof Refusal) return wrong(area, secrets.message, secrets.attempt ?? 'restore it from a backup')
  const { current, previous } = secrets
  if (!(await isSecretOnRecord(sql, current))) {
    const isBegun = previous !== undefined && (await isSecretOnRecord(sql, previous))
    const advice = 'restart the gateway with it, then: tollgate secrets rotate'
    return isBegun
      ? note(area, `${current.source} is new to this database`, advice)
      : wrong(area, `${current.source} does not belong to this database`, 'restore the secret of the first start')
  }
  if (previous === undefined) return ok(area, `${current.source} belongs to this database`)
  const { keys, overlaps, credentials } = await readRotationStatus(sql, current, now)
  const left = keys + overlaps + credentials
  const what = `a rotation is in progress; ${left} keys still depend on the previous secret`
  return note(area, what, left === 0 ? 'restart without TOLLGATE_SECRET_PREVIOUS' : 'tollgate secrets')
}

function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, '0')
}

const localSearchMs = 1000

/** The providers these settings enable, in the order of the registry and the file. */
export function providersOf(config: Config, clock: Clock): ReadonlyMap<string, Provider> {
  return createProviders({
    entries: config.providers,
    keys: config.providerKeys,
    sandboxOn: config.sandbox,
    disabled: config.disabledProviders,
    sandboxTransport: () => Promise.reject(new Error('doctor generates nothing')),
    clock,
    instanceIdentity: config.instanceIdentity,
    // A command must be able to end while a host does not accept its connection.
    byFetch: true,
  })
}

/** `dated`: the Date header of a provider's response, and when it arrived. */
async function checkProviders(config: Config, clock: Clock) {
  const providers = [...providersOf(config, clock).values()]
  const probes = await Promise.all(
    providers.map(async (provider) => {
      const probe = await probeProvider(provider, dialects)
      return { finding: findingOf(provider, probe), at: probe.date, receivedAt: clock.now() }
    }),
  )
  const off = builtInProviders.filter(({ id }) => !providers.some((provider) => provider.id === id))
  const findings = probes.map(({ finding }) => finding)
  if (off.length > 0) {
    findings.push(ok('provider', `${off.length} more are disabled until their variable is set: tollgate providers`))
  }
  const dated = probes.flatMap(({ at, receivedAt }) => (at === undefined ? [] : [{ at, receivedAt }]))
  return { findings, dated: dated[0] }
}

/** `tollgate.yaml:3`, as opposed to the name of a variable. */
const isPlace = /:\d+$/

function findingOf({ id, source, endpoints, apiKey }: Provider, { verdict, status, why = '' }: Probe): Finding {
  const name = `${id} (${source})`
  const baseUrl = endpoints[0]?.baseUrl ?? ''
  const isIdentity = cloudOf(apiKey) !== undefined
  const credential = isIdentity ? 'the identity' : 'the key'
  const accepts = apiKey ? `accepts ${credential}` : 'answers, and needs no key'
  const found = (kind: Finding['verdict'], what: string, advice?: string): Finding => {
    return { area: 'provider', what: `${name} ${what}`, verdict: kind, ...(advice !== undefined && { advice }) }
  }
  switch (verdict) {
    case 'inside':
      return found('ok', 'answers inside the gateway')
    case 'accepted':
      return found('ok', accepts)
    case 'refused':
      if (!apiKey) return found('wrong', `needs a key (${status})`, 'add an api_key to its entry')
      return found(
        'wrong',
        `refuses ${credential} (${status ?? why})`,
        isIdentity
          ? 'give this identity access to the models: docs/recipes/cloud-identities.md'
          : isPlace.test(source)
            ? `replace it; ${source} names it`
            : `replace ${source}`,
      )
    case 'out of credit':
      return found('wrong', `accepts the key, but its account has no credit (${status})`, 'top it up there')
    case 'throttled':
      return found('note', `${accepts}, but is rate limiting it now (${status})`, 'try again in a minute')
    case 'failing':
      return found('note', `fails (${status})`, 'see its status page; other routes take over')
    case 'redirecting':
      return found('wrong', `answers with a redirect (${status})`, `correct its base_url: ${baseUrl}`)
    case 'wrong address':
      return found('wrong', `is not found at its address (${status})`, `correct its base_url: ${baseUrl}`)
    case 'unreachable': {
      const host = URL.parse(baseUrl)?.host ?? baseUrl
      return found('wrong', `cannot be reached at ${host} (${why})`, 'check the network, the proxy and its base_url')
    }
  }
}

/** Asks each policy about a harmless request. */
function checkEachPolicy({ policies }: Config, clock: Clock): Promise<readonly Finding[]> {
  const turns = [{ role: 'user', content: [{ type: 'text', text: 'Hello from tollgate doctor.' }] }]
  const data = { ...samplePolicyFacts, conversation: { system: [], turns, tools: [] }, other: [] }
  return Promise.all(
    policies.map(async (policy): Promise<Finding> => {
      const { id, source, mode, onFailure } = policy
      const name = `${id} (${source}, ${mode}, fails ${onFailure})`
      const verdict = await new PolicyEndpoint(policy, clock).check('request.check', createId('req'), data)
      switch (verdict.kind) {
        case 'allowed':
          return ok('policy', `${name} answers`)
        case 'blocked':
          return note('policy', `${name} blocks even a harmless request`, 'check that it means to')
        case 'failed':
          return wrong('policy', `${name} gives no verdict: ${verdict.why}`, `start it, or correct ${source}`)
      }
    }),
  )
}

/** Sends the collector a payload without spans. */
async function checkContentExport(
  { contentExport, contentHeaders }: Config,
  isOffline: boolean,
): Promise<readonly Finding[]> {
  const { url } = contentExport
  if (url === undefined) return [ok(contentArea, 'prompts and answers are not exported')]
  const { origin } = new URL(url)
  if (isOffline) return [note(contentArea, `exports to ${origin}`, 'not called, because of --offline')]
  const headers = readHeaders(contentHeaders, [], 'TOLLGATE_CONTENT_HEADERS')
  const outcome = await createSend({ endpoint: url, headers })('traces', encodeTraces({ resourceSpans: [] }))
  if (outcome.kind === 'sent') return [ok(contentArea, `${origin} accepts traces`)]
  const advice = 'start it, or correct content_export.url and TOLLGATE_CONTENT_HEADERS'
  return [wrong(contentArea, `${origin} does not accept traces (${outcome.why})`, advice)]
}

const contentArea = 'content'

/** Names the projects that export their content, because it leaves the gateway. */
async function checkExporting({ sql }: Database, { contentExport }: Config): Promise<readonly Finding[]> {
  const rows = await sql<{ id: string }>`SELECT id FROM projects
    WHERE exports_content = 1 AND archived_at IS NULL ORDER BY id LIMIT ${BigInt(exportingShown + 1)}`
  if (rows.length === 0) return []
  const ids = rows.slice(0, exportingShown).map(({ id }) => id)
  const what = `on for ${ids.join(', ')}${rows.length > exportingShown ? ' and more' : ''}`
  return contentExport.url === undefined
    ? [
        note(
          contentArea,
          `${what}, but there is no collector`,
          'set content_export.url, or turn it off for the project',
        ),
      ]
    : [ok(contentArea, what)]
}

const exportingShown = 10

/** In the form of a request; none of these exists. */
const samplePolicyFacts = {
  workspace: 'ws_doctor',
  project: 'prj_doctor',
  key: 'key_doctor',
  end_user: null,
  surface: 'chat',
  model: 'tollgate/doctor',
  stream: false,
}

/** Model servers on this machine. */
async function checkLocalServers(config: Config): Promise<readonly Finding[]> {
  const area = 'local models'
  if (!config.localModels) return [ok(area, 'skipped: local_models is off')]
  const signal = AbortSignal.timeout(localSearchMs)
  const servers = await findLocalServers({ exceptPorts: [config.port], signal })
  if (servers.length === 0) return [ok(area, 'no server on the usual ports')]
  return servers.map(({ provider: { id, source }, models }) => {
    const what = `${id} at ${source}, ${counted(models.length, 'model')}`
    return models.length > 0 ? ok(area, what) : note(area, what, 'install a model there')
  })
}

const answerMs = 5000

async function checkGateway(settings: ClientSettings, config: Config | undefined): Promise<readonly Finding[]> {
  const { url } = settings
  const health = await ask(`${url}/healthz`, {})
  if (health === undefined) return [checkFreePort(url, config)]
  if (!health.headers.has('x-request-id') && health.status !== 200) {
    return [wrong('port', `another program answers at ${url}`, 'stop it, or TOLLGATE_PORT=N')]
  }
  const ready = await ask(`${url}/readyz`, {})
  return [
    ready?.status === 200
      ? ok('gateway', `serves at ${url}`)
      : wrong('gateway', `runs at ${url} but cannot serve (${ready?.status ?? 'no answer'})`, 'see its log'),
    await checkToken(settings),
    ...(await checkModels(settings)),
  ]
}

function checkFreePort(url: string, config: Config | undefined): Finding {
  const advice = 'start it: tollgate serve'
  if (config === undefined) return note('gateway', `nothing answers at ${url}`, advice)
  const { host, port } = config
  try {
    const server = Bun.listen({ hostname: host, port, socket: { data: () => {} } })
    server.stop(true)
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'unknown'
    const what = `${host}:${port} cannot be listened on (${code})`
    return wrong('port', what, 'stop the program that uses it, or TOLLGATE_PORT=N')
  }
  return note('port', `${host}:${port} is free; the gateway is not running`, advice)
}

async function checkToken({ url, token, tokenAbsence }: ClientSettings): Promise<Finding> {
  const area = 'management'
  if (token === undefined) return note(area, `no token: ${tokenAbsence}`, 'TOLLGATE_ADMIN_TOKEN=…')
  const answer = await ask(`${url}/api/workspaces?limit=1`, { authorization: `Bearer ${token.reveal()}` })
  if (answer?.status === 200) return ok(area, 'the token is accepted')
  const advice = 'TOLLGATE_ADMIN_TOKEN=… , or TOLLGATE_DATA=FOLDER of the gateway'
  return wrong(area, `the token is not accepted (${answer?.status ?? 'no answer'})`, advice)
}

/** Requests the model list as both families of clients do. The response may have any shape. */
async function checkModels({ url, apiKey, dataFolder }: ClientSettings): Promise<readonly Finding[]> {
  const key = apiKey ?? firstKey(dataFolder)
  if (key === undefined) return [note('models', 'skipped: no API key is available', 'TOLLGATE_KEY=sk-tg-…')]
  const name = apiKey === undefined ? 'the first key' : 'TOLLGATE_KEY'
  const formats = [
    ['OpenAI', chatListSchema, { authorization: `Bearer ${key.reveal()}` }],
    ['Anthropic', messageListSchema, { 'x-api-key': key.reveal(), 'anthropic-version': '2023-06-01' }],
  ] as const
  const checked = formats.map(async ([format, schema, headers]) => {
    const response = await ask(`${url}/v1/models?limit=1000`, headers)
    const status = response?.status ?? 'no answer'
    if (status === 401) {
      const what = `${name} is not accepted; it may be revoked`
      return note('models', what, 'TOLLGATE_KEY=sk-tg-… of another key')
    }
    const list = schema.safeParse(await response?.json().catch(() => undefined))
    if (status !== 200 || !list.success) {
      const what = `/v1/models in ${format}'s format fails with ${name} (${status})`
      return wrong('models', what, "see the gateway's log, and check a proxy in between")
    }
    const count = list.data.data.length
    const what = `${name} sees ${count} models in ${format}'s format`
    return count > 0 ? ok('models', what) : note('models', what, 'set a provider variable, or extend its allowlist')
  })
  return await Promise.all(checked)
}

const id = z.string().min(1)
const chatListSchema = z.object({
  object: z.literal('list'),
  data: z.array(z.object({ object: z.literal('model'), id })),
})
const messageListSchema = z.object({
  has_more: z.boolean(),
  data: z.array(z.object({ type: z.literal('model'), id })),
})

function firstKey(dataFolder: string): Secret | undefined {
  try {
    const text = readFileSync(join(dataFolder, 'first-key'), 'utf8').trim()
    return text === '' ? undefined : new Secret(text)
  } catch {
    return undefined
  }
}

/** undefined = no response. */
async function ask(url: string, headers: Readonly<Record<string, string>>): Promise<Response | undefined> {
  try {
    return await fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(answerMs) })
  } catch {
    return undefined
  }
}
