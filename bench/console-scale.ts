// How long the gateway takes for what each page asks of it, with a small log and with a large one, on both engines: the
// pages must not become slow with success. Two gateways are asked in turns, so that the machine's moods meet both; and both
// logs are made so that every list fills its page, because an empty list is no measure for a full one. Then all pages
// in a browser, also with the widest choices that they offer: their documents, the calls that they make, and how many elements
// they have. Both gateways have many models in their file, and requests for all of them.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import { openBrowser, openContext } from '../test/parts/browser.ts'
import { findPostgresPrograms, sharedPostgres } from '../test/parts/postgres.ts'
import { refuseOptions, scriptOptions } from '../test/parts/script-options.ts'
import { allPages, type ListedPage } from '../test/web/all-pages.ts'
import { benchPriceList, type PageCalls, pageCalls, pageLength } from './console-calls.ts'
import { type Launched, launch } from './contenders/launch.ts'
import { exampleModel, seededModel, seedLog, type Tenant } from './seed-log.ts'
import { median } from './statistics.ts'

const usage = `npm run bench:console-scale -- [options]
  --requests N    rows of the large log (1000000); it has a charge for every tenth
  --rounds N      how often each page is loaded (21)
  --models N      in the configuration file (1000)
  --engine NAME   sqlite or postgres; both by default`

const smallRequests = 1_000
const ratioMax = 3
/** For each call of a page that sums up a log of 100,000 requests. */
const callMsMax = 300
/** For the document of a page. */
const documentMsMax = 300
const elementsMax = 2_000
/** With a thousand models in its file, on a busy machine. */
const startMsMax = 120_000
const engines = ['sqlite', 'postgres'] as const
type Engine = (typeof engines)[number]

interface Gate {
  readonly launched: Launched
  readonly pages: readonly PageCalls[]
  readonly listed: readonly ListedPage[]
  readonly token: string
}

interface Measured {
  readonly timings: readonly Timing[]
  readonly documents: readonly DocumentMeasure[]
}

interface DocumentMeasure {
  readonly name: string
  readonly ms: number
  /** The slowest of the calls that the page makes in a browser; undefined = it makes none. */
  readonly slowest: CallMeasure | undefined
  readonly calls: number
  readonly elements: number
}

interface CallMeasure {
  readonly path: string
  readonly ms: number
}

interface Timing {
  readonly page: string
  readonly smallMs: number
  readonly largeMs: number
  /** Duration of its slowest call. */
  readonly slowestMs: number
  readonly readsLog: boolean
  readonly readsModels: boolean
  /** In the lists of its answers. */
  readonly smallRows: number
  readonly largeRows: number
}

async function main(): Promise<number> {
  const values = scriptOptions(usage, {
    requests: { type: 'string', default: '1000000' },
    models: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '21' },
    engine: { type: 'string' },
  })
  const wanted = engines.filter((engine) => values.engine === undefined || values.engine === engine)
  const [requests, rounds, models] = [Number(values.requests), Number(values.rounds), Number(values.models)]
  if (wanted.length === 0 || ![requests, rounds, models].every(Number.isInteger) || rounds < 1) {
    return refuseOptions('--requests, --rounds and --models take whole numbers, --engine sqlite or postgres', usage)
  }
  let isSlow = false
  let isUnfair = false
  for (const engine of wanted) {
    if (engine === 'postgres' && findPostgresPrograms() === undefined) {
      console.log('postgres: skipped, it is not installed')
      continue
    }
    const { timings, documents } = await measureEngine(engine, { requests, rounds, models })
    console.log(`\n${engine}, medians of ${rounds} rounds in turns, milliseconds\n\n${table(timings, requests)}`)
    console.log(
      `\n${engine}, documents with the large log and ${models} models\n\n${documentTable(documents, requests)}`,
    )
    isSlow ||=
      timings.some((timing) => isTooSlow(timing, requests)) || documents.some((each) => isTooLarge(each, requests))
    isUnfair ||= timings.some(isUnequal)
  }
  if (isUnfair) console.log('\nsome page shows more of one log than of the other, which makes its ratio worthless')
  console.log(isSlow ? '\nsome page is too slow with the large log' : '\nevery page stays within bounds')
  return isSlow || isUnfair ? 1 : 0
}

interface Sizes {
  readonly requests: number
  readonly rounds: number
  readonly models: number
}

async function measureEngine(engine: Engine, { requests, rounds, models }: Sizes): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-console-scale-'))
  const gates: Gate[] = []
  try {
    for (const [name, count] of [['small', smallRequests] as const, ['large', requests] as const]) {
      const url = engine === 'postgres' ? await (await sharedPostgres()).createDatabase() : undefined
      gates.push(await openGate({ folder, name: `${engine}-${name}`, url, requests: count, models }))
    }
    const [small, large] = gates
    if (!small || !large) throw new Error('two gateways are needed')
    return { timings: await ask(small, large, rounds), documents: await measureDocuments(large, rounds) }
  } finally {
    for (const { launched } of gates) await launched.stop()
    rmSync(folder, { recursive: true, force: true })
    progress('')
  }
}

interface GatePlan {
  readonly folder: string
  readonly name: string
  readonly url: string | undefined
  readonly requests: number
  readonly models: number
}

/** Tenants are made by a running gateway; the log is written while it is away. */
async function openGate({ folder, name, url, requests, models }: GatePlan): Promise<Gate> {
  const dataFolder = join(folder, name)
  mkdirSync(dataFolder, { mode: 0o700 })
  const configPath = join(folder, `${name}.yaml`)
  writeFileSync(configPath, configText(models))
  const environment = {
    TOLLGATE_CONFIG: configPath,
    // Its models are built in, and among the pages.
    ANTHROPIC_API_KEY: 'never-called',
    TOLLGATE_PORT: '0',
    TOLLGATE_DATA: dataFolder,
    TOLLGATE_LOG: 'json',
    ...(url !== undefined && { DATABASE_URL: url }),
  }
  const start = async (): Promise<Launched> => {
    const command = [join(import.meta.dir, '..', 'bin', 'tollgate')]
    const launched = await launch({ name, folder, command, environment, startMsMax })
    if ('failed' in launched) throw new Error(`the gateway ${launched.failed}`)
    return launched
  }
  const first = await start()
  const token = readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim()
  const tenants = await makeTenants(first.port, token)
  await first.stop()
  await seedLog({
    url,
    dataFolder,
    tenants,
    requests,
    models,
    // A small ledger has as many, so that both have a second page.
    transfers: Math.max(Math.min(requests, smallRequests), Math.floor(requests / 10)),
    // A second page follows, so that there is something to stop at.
    examples: pageLength + 10,
    progress: (done) => progress(`${name}: ${done}`),
  })
  const launched = await start()
  const read = (path: string) => call(launched.port, token, 'GET', path)
  return { launched, token, pages: await pageCalls(read, tenants[0]), listed: await listPages(read, tenants[0]) }
}

/** The provider is never called. */
function configText(models: number): string {
  const declared = Array.from({ length: models }, (_, at) => {
    const route = `{ provider: acme, model: model-${at}-v1, cost: { input: "0.80", output: "1.60" } }`
    return `  - { id: ${seededModel(at)}, price: { input: "1.00", output: "2.00" }, routes: [${route}] }`
  })
  const provider = '  - { id: acme, dialect: openai-chat, base_url: "http://127.0.0.1:1/v1", api_key: never-called }'
  return ['providers:', provider, 'models:', ...declared, ''].join('\n')
}

/** The pages that operators and visitors open, except the documentation, which has no data. */
// biome-ignore lint/suspicious/noExplicitAny: answers of the gateway's own API, of which only ids are read
async function listPages(read: (path: string) => Promise<any>, tenant: Tenant | undefined) {
  if (!tenant) throw new Error('there is no tenant to look at')
  const { workspaceId, projectId, keyId } = tenant
  const request = (await read(`/api/requests?limit=1&workspace_id=${workspaceId}`)).data[0].id
  const topUp = (await read(`/api/workspaces/${workspaceId}/transfers?limit=1&kind=topup`)).data[0].id
  const month = new Date(systemClock.now()).toISOString().slice(0, 7)
  const things = {
    workspaceId,
    projectId,
    keyId,
    requestId: request,
    batchId: '',
    topUpId: topUp,
    month,
    newWorkspaceId: workspaceId,
  }
  const left = ['first-run', 'sign-in', 'not-found', 'batch', 'batches']
  const pages = allPages(things)
    .filter(({ name, needsAccount }) => !needsAccount && !left.includes(name) && !name.startsWith('docs'))
    .map((page) => (page.name === 'provider' ? { ...page, path: page.path.replace('sandbox', 'acme') } : page))
  const byName = new Map(pages.map((page) => [page.name, page]))
  const chosen = choices(tenant).map(([name, path]): ListedPage => {
    const ready = byName.get(name.split(',')[0] ?? '')?.ready
    if (ready === undefined) throw new Error(`there is no page ${name}`)
    return { name, path: `/console/all/${path}`, ready }
  })
  return [...pages, ...chosen]
}

/** The most that can be chosen on pages that sum up or search the log: name and address. */
function choices({ keyId, projectId }: Tenant): readonly (readonly [string, string])[] {
  const all = 'range=30d'
  const groups = [
    ...['model', 'person', 'key', 'project', 'provider', 'route', 'agent', 'session', 'user', 'tag:team', 'cause'],
    'workspace',
  ]
  const filters = [
    ...['tag=team=3', 'user=user-7', `session=${keyId}-0`, 'agent=codex', 'provider=bolt', 'outcome=ok'],
    ...['cause=provider_throttled', `project=${projectId}`, `key=${keyId}&model=${seededModel(exampleModel)}`],
  ]
  return [
    ...groups.map((group) => [`usage, by ${group}`, `usage?${all}&group=${group}`] as const),
    ['usage, by model, of a key', `usage?${all}&group=model&key=${keyId}`],
    ['usage, by tag:team, of a project', `usage?${all}&group=tag:team&project=${projectId}`],
    ...['cost', 'total_ms'].map((sort) => [`requests, by ${sort}`, `requests?${all}&sort=${sort}`] as const),
    ...filters.map((filter) => [`requests, ${filter.split('=')[0]}`, `requests?${all}&${filter}`] as const),
    ['providers, 30 days', 'providers?period=30d'],
    ...['model', 'route'].map((by) => [`margin, by ${by}`, `margin?range=90d&by=${by}`] as const),
  ]
}

async function makeTenants(port: number, token: string): Promise<readonly Tenant[]> {
  const tenants: Tenant[] = []
  await call(port, token, 'PUT', `/api/price-lists/${benchPriceList}`, { markup_percent: '15' })
  await call(port, token, 'PUT', '/api/managed-settings', { rules: [{ settings: { cleanupPeriodDays: 7 } }] })
  const post = async (path: string, body: object): Promise<string> => (await call(port, token, 'POST', path, body)).id
  for (let workspace = 0; workspace < 5; workspace++) {
    const workspaceId = await post('/api/workspaces', { name: `tenant ${workspace}` })
    for (let project = 0; project < 2; project++) {
      const projectId = await post(`/api/workspaces/${workspaceId}/projects`, { name: `project ${project}` })
      for (let key = 0; key < 2; key++) {
        tenants.push({ workspaceId, projectId, keyId: await post(`/api/projects/${projectId}/keys`, { name: 'ci' }) })
      }
    }
  }
  return tenants
}

async function call(port: number, token: string, method: string, path: string, body?: object) {
  // The catalog takes API keys only; a visitor reads it without one.
  const authorization = path.startsWith('/api/') ? { authorization: `Bearer ${token}` } : {}
  const headers = { ...authorization, 'content-type': 'application/json' }
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init)
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`)
  return response.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : text
}

async function ask(small: Gate, large: Gate, rounds: number): Promise<readonly Timing[]> {
  const timings: Timing[] = []
  for (const [place, { page, readsLog = false, readsModels = false }] of small.pages.entries()) {
    progress(`asking for ${page}`)
    const taken: Record<'small' | 'large', number[]> = { small: [], large: [] }
    const slowest: number[] = []
    const rows = { small: 0, large: 0 }
    for (let round = -3; round < rounds; round++) {
      for (const [name, gate] of [['small', small] as const, ['large', large] as const]) {
        const answers: unknown[] = []
        const calls: number[] = []
        for (const path of gate.pages[place]?.paths ?? []) {
          const before = systemClock.monotonicMs()
          answers.push(await call(gate.launched.port, gate.token, 'GET', path))
          calls.push(systemClock.monotonicMs() - before)
        }
        if (round >= 0) taken[name].push(calls.reduce((sum, ms) => sum + ms, 0))
        if (round >= 0 && name === 'large') slowest.push(Math.max(...calls))
        rows[name] = answers.reduce<number>((sum, answer) => sum + rowsOf(answer), 0)
      }
    }
    const [smallMs, largeMs, slowestMs] = [median(taken.small), median(taken.large), median(slowest)]
    const shown = { smallRows: rows.small, largeRows: rows.large }
    timings.push({ page, smallMs, largeMs, slowestMs, readsLog, readsModels, ...shown })
  }
  return timings
}

/** Documents as a signed-in operator gets them, with their first answers, and what a browser then asks for and shows. */
async function measureDocuments(
  { launched, listed, token }: Gate,
  rounds: number,
): Promise<readonly DocumentMeasure[]> {
  const address = `http://127.0.0.1:${launched.port}`
  const cookie = await signIn(address, token)
  const [name = '', value = ''] = cookie.split('=')
  const browser = await openBrowser()
  try {
    const context = await openContext(browser, { reducedMotion: 'reduce' })
    await context.addCookies([{ name, value, url: address }])
    const page = await context.newPage()
    let asked = new Set<string>()
    page.on('request', (request) => {
      const isRead = request.method() === 'GET' && ['fetch', 'xhr'].includes(request.resourceType())
      if (isRead && !request.url().endsWith('/events')) asked.add(request.url().slice(address.length))
    })
    const measured: DocumentMeasure[] = []
    for (const { name: shown, path, ready } of listed) {
      progress(`asking for the document of ${shown}`)
      asked = new Set()
      await page.goto(address + path)
      await page.waitForSelector(ready)
      await page.waitForSelector(':is(.loading, .skeleton)', { state: 'detached' })
      const elements = await page.locator('*').count()
      const calls: CallMeasure[] = []
      for (const each of asked) calls.push({ path: each, ms: await measureRead(address + each, cookie, rounds) })
      const slowest = calls.toSorted((a, b) => b.ms - a.ms)[0]
      const ms = await measureRead(address + path, cookie, rounds)
      measured.push({ name: shown, ms, slowest, calls: calls.length, elements })
    }
    return measured
  } finally {
    await browser?.close()
  }
}

async function signIn(address: string, token: string): Promise<string> {
  const headers = { origin: address, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }
  const body = JSON.stringify({ token })
  const response = await fetch(`${address}/console/session`, { method: 'POST', headers, body })
  return response.headers.get('set-cookie')?.split(';')[0] ?? ''
}

/** The median of its rounds in milliseconds. */
async function measureRead(url: string, cookie: string, rounds: number): Promise<number> {
  const taken: number[] = []
  for (let round = -1; round < rounds; round++) {
    const before = systemClock.monotonicMs()
    const response = await fetch(url, { headers: { cookie } })
    await response.text()
    if (!response.ok) throw new Error(`${url}: ${response.status}`)
    if (round >= 0) taken.push(systemClock.monotonicMs() - before)
  }
  return median(taken)
}

function isTooLarge({ ms, slowest, elements }: DocumentMeasure, requests: number): boolean {
  return ms > documentMsMax || (slowest?.ms ?? 0) > callMsOf(requests) || elements > elementsMax
}

function documentTable(documents: readonly DocumentMeasure[], requests: number): string {
  const lines = documents.map((each) => {
    const { name, ms, slowest, calls, elements } = each
    const call = slowest ? `${slowest.ms.toFixed(1)} | \`${slowest.path.split('?')[0]}\`` : ' | '
    return `| ${name} | ${ms.toFixed(1)} | ${calls} | ${call} | ${elements}${isTooLarge(each, requests) ? ' (!)' : ''} |`
  })
  const head = '| document | ms | calls | ms of the slowest | its path | elements |'
  return [head, '|---|---|---|---|---|---|', ...lines].join('\n')
}

/** What a call may take that sums up the log. */
const callMsOf = (requests: number): number => callMsMax * Math.max(1, requests / 100_000)

function isTooSlow({ smallMs, largeMs, slowestMs, readsLog, readsModels }: Timing, requests: number): boolean {
  if (readsLog) return slowestMs > callMsOf(requests)
  return slowestMs > callMsMax || (!readsModels && largeMs > ratioMax * smallMs)
}

/** Of a page that is judged by its ratio. */
function isUnequal({ readsLog, smallRows, largeRows }: Timing): boolean {
  return !readsLog && smallRows !== largeRows
}

function rowsOf(answer: unknown): number {
  const isList = typeof answer === 'object' && answer !== null && 'data' in answer && Array.isArray(answer.data)
  return isList ? (answer.data as readonly unknown[]).length : 0
}

function table(timings: readonly Timing[], requests: number): string {
  const lines = timings.map((timing) => {
    const { page, smallMs, largeMs, slowestMs, smallRows, largeRows } = timing
    const rows = isUnequal(timing) ? `${smallRows} and ${largeRows} (!)` : String(largeRows)
    const times = `${(largeMs / smallMs).toFixed(1)}${isTooSlow(timing, requests) ? ' (!)' : ''}`
    return `| ${page} | ${rows} | ${smallMs.toFixed(1)} | ${largeMs.toFixed(1)} | ${slowestMs.toFixed(1)} | ${times} |`
  })
  const count = (value: number) => value.toLocaleString('en-US')
  const head = `| page | rows of lists | ${count(smallRequests)} | ${count(requests)} | its slowest call | × |`
  return [head, '|---|---|---|---|---|---|', ...lines].join('\n')
}

/** One line that replaces itself on a terminal; nothing where output is kept. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

process.exitCode = await main()
