// `tollgate providers`: which providers are enabled and what the others need, adding one to the configuration file, and how
// they did. A key is never read or written here: an entry refers to a variable or a file.

import { readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { AnswerOf } from '../../api/client.ts'
import { allBuiltInModels } from '../../catalog/data/built-in.ts'
import { type Config, loadConfig } from '../../config/config.ts'
import { variable } from '../../config/environment.ts'
import { addProvider, entryText, type Insertion, type NewProvider } from '../../config/file.ts'
import { dialectIds } from '../../dialects/dialect.ts'
import type { Clock } from '../../kernel/clock.ts'
import { builtInProviders } from '../../providers/data/built-in.ts'
import { answersInProcess } from '../../providers/entry.ts'
import { findLocalServers } from '../../providers/local.ts'
import {
  type CommandContext,
  type CommandDefinition,
  confirm,
  faultLines,
  printResult,
  readConfig,
  yesOption,
} from '../command.ts'
import { answerCommand } from '../operation-command.ts'
import { exitCodes, Refusal, usageRefusal } from '../refusal.ts'
import { type Columns, renderTable, shownTime } from '../values.ts'
import { providersOf } from './doctor.ts'
import { priceAt } from './models.ts'

const list: CommandDefinition = {
  words: ['providers', 'list'],
  isDefault: true,
  isLocal: true,
  summary: 'lists providers: enabled or not, number of models, where the key comes from',
  details: 'As a gateway started here and now would see them. To test the keys: tollgate doctor.',
  examples: ['tollgate providers', 'tollgate providers list --json'],
  async run(context) {
    const providers = await listProviders(readConfig(context), context.clock)
    printResult(context, { data: providers }, () => renderTable(columns, providers, context.terminal))
  },
}

const columns: Columns<ListedProvider> = [
  ['PROVIDER', ({ id }) => id],
  'state',
  ['MODELS', ({ models }) => models, 'right'],
  ['KEY FROM', ({ state, key_from, needs }) => (state === 'off' ? `set ${needs.join(', ')}` : key_from)],
]

const add: CommandDefinition = {
  words: ['providers', 'add'],
  isLocal: true,
  summary: 'adds a provider to the configuration file, after showing the lines',
  details: `Nothing else in the file changes. The key is not copied: the entry names a variable or a file that holds it. A running
gateway picks up the entry as soon as it can read the key. Models: docs/recipes/add-a-model.md.`,
  positionals: [{ name: 'ID' }],
  options: {
    dialect: { value: 'NAME', help: `${dialectIds.join(', ')}; the first is the default` },
    'base-url': { value: 'URL', help: "what the dialect's paths are appended to" },
    'key-variable': { value: 'NAME', help: 'the variable that holds the key (ID_API_KEY)' },
    'key-file': { value: 'PATH', help: 'a file that holds the key, instead of a variable' },
    'no-key': { help: 'the provider takes no key' },
    yes: yesOption,
  },
  examples: [
    'tollgate providers add acme --base-url https://api.acme.example/v1',
    'tollgate providers add acme --base-url https://api.acme.example/v1 --key-file /run/secrets/acme',
  ],
  async run(context) {
    const provider = await readProvider(context)
    const { configPath, configFileExists } = readConfig(context)
    const insertion = addProvider(configFileExists ? readFileSync(configPath, 'utf8') : '', provider)
    if (insertion === 'repeated') {
      throw usageRefusal(`${basename(configPath)} already has a provider ${provider.id}.`, 'tollgate providers')
    }
    if (insertion === 'flow') {
      const what = `${configPath} is written in braces; add this entry to its providers yourself:\n${entryText(provider)}`
      throw new Refusal(exitCodes.failed, what, 'an editor')
    }
    const name = /^\$\{(.*)\}$/.exec(provider.keyReference ?? '')?.[1]
    const missing = name !== undefined && variable(context.inputs.env, name) === undefined ? name : undefined
    checkResult(context, configPath, insertion, missing)
    await write(context, configPath, insertion, missing)
  },
}

async function readProvider({ terminal, first: id, text, isSet }: CommandContext): Promise<NewProvider> {
  const builtIn = builtInProviders.find((each) => each.id === id)
  const dialect = text('dialect') ?? 'openai-chat'
  let baseUrl = text('base-url')
  if (baseUrl === undefined && builtIn !== undefined) {
    throw usageRefusal(`${id} is built in and needs no entry.`, `set ${builtIn.variable}, and restart the gateway`)
  }
  if (baseUrl === undefined && !answersInProcess(dialect)) {
    const question = `Address of ${id}, such as https://api.${id}.example/v1: `
    baseUrl = terminal.isInteractive ? (await terminal.ask(question)).trim() : ''
    if (baseUrl === '') throw usageRefusal('--base-url is missing.')
  }
  const named = ['key-variable', 'key-file', 'no-key'].filter(isSet)
  if (named.length > 1) throw usageRefusal(`--${named.join(' and --')} cannot be used together.`)
  const [file, name] = [text('key-file'), text('key-variable')]
  const usualName = `${id.toUpperCase().replace(/[^A-Z0-9]/g, '_')}_API_KEY`
  const reference = file === undefined ? `\${${name ?? usualName}}` : `file:${file}`
  const takesKey = !isSet('no-key') && !answersInProcess(dialect)
  return { id, dialect, baseUrl, keyReference: takesKey ? reference : undefined }
}

/** Checks the resulting file as the gateway would; a variable that is not set yet is not an error of the entry. */
function checkResult(
  { inputs }: CommandContext,
  configPath: string,
  { text }: Insertion,
  missing: string | undefined,
): void {
  const env = missing === undefined ? inputs.env : { ...inputs.env, [missing]: 'later' }
  const read = inputs.readFile ?? ((path: string) => readFileSync(path, 'utf8'))
  const loaded = loadConfig({ ...inputs, env, readFile: (path) => (path === configPath ? text : read(path)) })
  if (!('faults' in loaded)) return
  throw usageRefusal(`nothing was written, because the entry would be wrong:${faultLines(loaded.faults)}`)
}

async function write(
  context: CommandContext,
  file: string,
  { text, added, line }: Insertion,
  missing: string | undefined,
): Promise<void> {
  const { terminal, json } = context
  if (!json) terminal.print(`${file}, from line ${line}:\n${added.map((each) => `+ ${each}\n`).join('')}`)
  await confirm(context, 'Write it?')
  // Written in place instead of renamed: the file may be a link, and its owner and mode must stay.
  writeFileSync(file, text)
  if (json) return printResult(context, { file, line, added, needs: missing === undefined ? [] : [missing] }, () => '')
  terminal.complain('Written.\n')
  if (missing !== undefined) {
    terminal.complain(`${missing} is not set here: start the gateway with it, or it rejects the file.\n`)
  }
  terminal.complain('Next: add a model with a route to it (docs/recipes/add-a-model.md), then tollgate doctor\n')
}

type Route = AnswerOf<'getProvider'>['routes'][number]

const show = answerCommand({
  words: ['providers', 'show'],
  summary: 'shows an enabled provider of the running gateway, its routes, and what they charge and cost',
  examples: ['tollgate providers show anthropic', 'tollgate providers show anthropic --json'],
  operation: 'getProvider',
  arguments: [{ name: 'ID', parameter: 'provider' }],
  listedBy: 'tollgate providers',
  text({ id, source, last4, address, routes }, { terminal }) {
    const key = last4 === null ? 'no key' : `key …${last4}`
    const head = `${id}: ${address ?? 'inside the gateway'}, ${key}, from ${source}\n\n`
    return head + (routes.length === 0 ? 'No model has a route to it.\n' : renderTable(routeColumns, routes, terminal))
  },
})

const routeColumns: Columns<Route> = [
  ['MODEL', ({ model }) => model],
  ['AS', ({ upstream_model }) => upstream_model],
  ['IN $/M', ({ price }) => priceAt(price, 'input'), 'right'],
  ['OUT $/M', ({ price }) => priceAt(price, 'output'), 'right'],
  ['COST IN', ({ cost }) => priceAt(cost, 'input'), 'right'],
  ['COST OUT', ({ cost }) => priceAt(cost, 'output'), 'right'],
]

type History = AnswerOf<'getProviderHistory'>
type HistoryRoute = History['routes'][number]

const history = answerCommand({
  words: ['providers', 'history'],
  summary: 'shows how attempts at each route ended in the last day, week or 30 days, and the incidents of that time',
  details: `From the request log of the running gateway. An incident is a time in which at least half of the attempts at a route
failed.`,
  examples: ['tollgate providers history', 'tollgate providers history --period 30d --json'],
  operation: 'getProviderHistory',
  options: { period: { value: 'SPAN', help: '24h (the default), 7d or 30d', field: 'period' } },
  text({ routes, incidents }, { terminal }) {
    if (routes.length === 0) return 'No attempts in this period.\n'
    const shown = `${renderTable(historyColumns, routes, terminal)}\n`
    return shown + (incidents.length === 0 ? 'No incidents.\n' : renderTable(incidentColumns, incidents, terminal))
  },
})

const attemptsOf = ({ buckets }: HistoryRoute, place: 0 | 1) =>
  buckets.reduce((sum, bucket) => sum + (bucket?.[place] ?? 0), 0)

const historyColumns: Columns<HistoryRoute> = [
  'provider',
  ['MODEL', ({ upstream_model }) => upstream_model],
  ['OK', (route) => attemptsOf(route, 0), 'right'],
  ['FAILED', (route) => attemptsOf(route, 1), 'right'],
  ['FIRST TOKEN (AVG)', ({ first_event_ms: ms }) => (ms === null ? undefined : `${ms} ms`), 'right'],
]

const incidentColumns: Columns<History['incidents'][number]> = [
  ['INCIDENT AT', ({ provider }) => provider],
  ['FROM (UTC)', ({ started_at }) => shownTime(started_at)],
  ['TO (UTC)', ({ ended_at }) => (ended_at === null ? 'ongoing' : shownTime(ended_at))],
  ['CAUSE', ({ causes }) => causes.map(({ outcome, attempts }) => `${outcome} (${attempts})`).join(', ')],
  ['RESCUED', ({ requests_rescued }) => requests_rescued, 'right'],
  ['FAILED', ({ requests_failed }) => requests_failed, 'right'],
]

export const providerCommands: readonly CommandDefinition[] = [list, show, add, history]

/** As `--json` prints it. */
export interface ListedProvider {
  readonly id: string
  readonly state: 'on' | 'off' | 'own keys' | 'disabled'
  /** Its usual variable; null if it has none. */
  readonly variable: string | null
  /** Settings that would enable it; empty if it is on. */
  readonly needs: readonly string[]
  readonly models: number
  /** A variable or a line of the file; never the key. */
  readonly key_from: string
}

const searchMs = 500

export async function listProviders(config: Config, clock: Clock): Promise<readonly ListedProvider[]> {
  const on = providersOf(config, clock)
  const counts = countModels(config)
  const { disabledProviders: disabled } = config
  const ownOnly = config.providers.filter(({ id, ownKeysOnly }) => ownKeysOnly && !disabled.includes(id))
  const isNew = ({ id }: { readonly id: string }) =>
    !on.has(id) && !disabled.includes(id) && !ownOnly.some((each) => each.id === id)
  const local = config.localModels
    ? await findLocalServers({ exceptPorts: [config.port], signal: AbortSignal.timeout(searchMs) })
    : []
  const enabled = (id: string, models: number, keyFrom: string): ListedProvider => {
    const variable = builtInProviders.find((each) => each.id === id)?.variable ?? null
    return { id, state: 'on', variable, needs: [], models, key_from: keyFrom }
  }
  return [
    ...[...on.values()].map(({ id, source, apiKey, transport }) => {
      const none = transport ? `none: answers inside the gateway (${source})` : `none (${source})`
      return enabled(id, counts.get(id) ?? 0, apiKey ? source : none)
    }),
    ...local
      .filter(({ provider }) => isNew(provider))
      .map(({ provider: { id, source }, models }) => enabled(id, models.length, `none: found at ${source}`)),
    ...ownOnly.map(({ id, source }) => {
      return { ...enabled(id, counts.get(id) ?? 0, `none: own keys only (${source})`), state: 'own keys' as const }
    }),
    ...disabled.map((id) => {
      const where = `disabled_providers in ${basename(config.configPath)}`
      return { ...enabled(id, counts.get(id) ?? 0, where), state: 'disabled' as const }
    }),
    ...builtInProviders.filter(isNew).map(({ id, variable, needs = [] }) => ({
      id,
      state: 'off' as const,
      variable,
      needs: [variable, ...needs].filter((name) => config.providerKeys[name] === undefined),
      models: counts.get(id) ?? 0,
      key_from: '',
    })),
  ]
}

/** Counts models with a price per provider; a model in the file replaces the built-in one with its id. */
function countModels(config: Config): ReadonlyMap<string, number> {
  const builtIn = allBuiltInModels.map(({ id, price, routes }) => {
    return { id, price, providers: routes.map(({ provider }) => provider) }
  })
  const own = config.models.map(({ id, price, routes }) => {
    return { id, price, providers: routes.map(({ providerId }) => providerId) }
  })
  const models = new Map([...builtIn, ...own].map((model) => [model.id, model]))
  const counts = new Map<string, number>()
  for (const { price, providers } of models.values()) {
    if (price === undefined) continue
    for (const provider of new Set(providers)) counts.set(provider, (counts.get(provider) ?? 0) + 1)
  }
  return counts
}
