// `tollgate connect`: points a client on this machine at the gateway, with a separate key that can be revoked alone,
// and back. It says what it changes, keeps the original, and writes no key into a file that a repository would commit.

import { rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { AnswerOf, ItemOf } from '../../api/client.ts'
import type { ClientSettings } from '../../config/client-settings.ts'
import { nearestNames } from '../../kernel/nearest.ts'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import { findProject, namesakesIn } from '../lookup.ts'
import { exitCodes, ifPossible, Refusal, usageRefusal } from '../refusal.ts'
import {
  backupOf,
  keepBackup,
  type Member,
  readSettings,
  readText,
  realFile,
  renderSettings,
  repositoryOf,
  restore,
  withMembers,
  writeText,
} from '../settings-file.ts'
import { cleanText } from '../values.ts'

// The clients: which members of which settings file, or what to type where there is no such file. Paths and members are from
// the clients' own documentation; docs/recipes has running examples.

type CatalogModel = ItemOf<'getCatalog'>

/** What clients need to know of a model. */
type ConnectModel = Pick<CatalogModel, 'id'> & Partial<CatalogModel>

interface ConnectFacts {
  /** The gateway's root. */
  readonly url: string
  /** The secret, or a placeholder if it is only shown. */
  readonly key: string
  /** Callable models of the catalog. */
  readonly models: readonly ConnectModel[]
  /** The requested model; undefined = choose one. */
  readonly model: string | undefined
}

type Client = { readonly id: string; readonly title: string } & (
  | {
      readonly kind: 'file'
      file(settings: ClientSettings): string
      members(facts: ConnectFacts): readonly Member[]
      /** What to do next, and what to know. */
      notes(facts: ConnectFacts): readonly string[]
    }
  /** Files that only `connect` writes; `--undo` deletes them. */
  | {
      readonly kind: 'own files'
      files(facts: ConnectFacts, settings: ClientSettings): readonly { readonly path: string; readonly text: string }[]
      notes(facts: ConnectFacts): readonly string[]
    }
  | { readonly kind: 'by hand'; steps(facts: ConnectFacts): readonly string[] }
)

const claude: Client = {
  id: 'claude',
  title: 'Claude Code',
  kind: 'file',
  file: ({ claudeFolder, homeFolder }) => join(claudeFolder ?? join(homeFolder, '.claude'), 'settings.json'),
  members(facts) {
    const { main, opus, sonnet, haiku } = claudeModels(facts)
    const env = {
      ANTHROPIC_BASE_URL: facts.url,
      ANTHROPIC_AUTH_TOKEN: facts.key,
      // Otherwise an existing key would be sent as well.
      ANTHROPIC_API_KEY: '',
      CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1',
      ANTHROPIC_MODEL: main,
      ANTHROPIC_DEFAULT_OPUS_MODEL: opus,
      ANTHROPIC_DEFAULT_SONNET_MODEL: sonnet,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: haiku,
    }
    const set = Object.entries(env).filter(([, value]) => value !== undefined)
    return set.map(([name, value]) => ({ path: ['env', name], value }))
  },
  notes: () => [
    'Restart claude; /status shows the address and the model.',
    'If you are logged in to an account, /logout first: a saved login can win over the key.',
  ],
}

/** The sizes Claude Code asks for, from the catalog; a missing size is replaced by the main model. */
function claudeModels({ models, model }: ConnectFacts) {
  const newestWith = (word: string): string | undefined =>
    models
      .map(({ id }) => id)
      .filter((id) => id.includes(word))
      .sort()
      .at(-1)
  if (model !== undefined) return { main: model, opus: model, sonnet: model, haiku: model }
  const [opus, sonnet, haiku] = [newestWith('opus'), newestWith('sonnet'), newestWith('haiku')]
  const main = sonnet ?? opus ?? haiku ?? firstWithTools(models)
  return { main, opus: opus ?? main, sonnet: sonnet ?? main, haiku: haiku ?? main }
}

function firstWithTools(models: readonly ConnectModel[]): string | undefined {
  return (models.find(({ tags }) => tags?.includes('tools')) ?? models[0])?.id
}

const opencode: Client = {
  id: 'opencode',
  title: 'opencode',
  kind: 'file',
  file: ({ configFolder }) => join(configFolder, 'opencode', 'opencode.json'),
  members({ url, key, models, model }) {
    const provider = {
      npm: '@ai-sdk/openai-compatible',
      name: 'Tollgate',
      options: { baseURL: `${url}/v1`, apiKey: key },
      models: Object.fromEntries(models.map((each) => [each.id, opencodeModel(each)])),
    }
    const chosen: readonly Member[] =
      model === undefined ? [] : [{ path: ['model'], value: `tollgate/${model}`, isOurs: isOfTollgate }]
    return [
      { path: ['$schema'], value: 'https://opencode.ai/config.json' },
      { path: ['provider', 'tollgate'], value: provider },
      ...chosen,
    ]
  },
  notes: ({ models }) => [
    `Restart opencode; /models lists the ${models.length} models of this gateway under Tollgate.`,
  ],
}

function isOfTollgate(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith('tollgate/')
}

function opencodeModel({ id, name, context_tokens: context, max_output_tokens: output }: ConnectModel): object {
  return { name: name || id, ...(context != null && output != null && { limit: { context, output } }) }
}

const cline: Client = {
  id: 'cline',
  title: 'Cline',
  kind: 'by hand',
  steps: ({ url, key, model, models }) => [
    'Cline keeps its settings inside the editor, so they are typed in: its panel → ⚙ → API Configuration',
    '  API Provider   OpenAI Compatible',
    `  Base URL       ${url}/v1`,
    `  API Key        ${key}`,
    `  Model ID       ${model ?? firstWithTools(models) ?? 'an id from tollgate models'}`,
    'Context window and prices are not read from the gateway: type in what `tollgate models` says, or they show as 0.',
    'Roo Code and Kilo Code take the same four settings.',
  ],
}

const cursor: Client = {
  id: 'cursor',
  title: 'Cursor',
  kind: 'by hand',
  steps: ({ url, key, model, models }) => [
    "Cursor calls from its maker's servers, so the gateway needs a public https:// address; a local one is not reached.",
    'Cursor Settings → Models → API Keys',
    '  OpenAI API Key              on',
    `  API Key                     ${key}`,
    `  Override OpenAI Base URL    ${url}/v1`,
    `  Add a custom model          ${model ?? firstWithTools(models) ?? 'an id from tollgate models'}`,
    'To undo, switch both off again.',
  ],
}

/** A profile beside Codex's own settings, which stay as they are, and what it should know of the models. */
const codex: Client = {
  id: 'codex',
  title: 'Codex CLI',
  kind: 'own files',
  files({ url, key, models, model }, { codexFolder, homeFolder }) {
    const folder = codexFolder ?? join(homeFolder, '.codex')
    const catalog = join(folder, 'tollgate-models.json')
    const chosen = model ?? firstWithTools(models)
    const profile = [
      ...(chosen === undefined ? [] : [`model = ${JSON.stringify(chosen)}`]),
      'model_provider = "tollgate"',
      `model_catalog_json = ${JSON.stringify(catalog)}`,
      '',
      '[model_providers.tollgate]',
      'name = "Tollgate"',
      `base_url = ${JSON.stringify(`${url}/v1`)}`,
      'wire_api = "responses"',
      `experimental_bearer_token = ${JSON.stringify(key)}`,
      '',
    ]
    return [
      { path: join(folder, 'tollgate.config.toml'), text: profile.join('\n') },
      { path: catalog, text: `${JSON.stringify({ models: models.map(codexModel) }, null, 2)}\n` },
    ]
  },
  notes: () => ['Run codex --profile tollgate; /model lists the models of this gateway.'],
}

/** Without an entry Codex assumes 272,000 tokens of context, and does not offer `apply_patch`. */
function codexModel({ id, name, context_tokens: context, tags }: ConnectModel, priority: number): object {
  const efforts = tags?.includes('reasoning') ? ['low', 'medium', 'high'] : []
  return {
    slug: id,
    display_name: name || id,
    description: null,
    supported_reasoning_levels: efforts.map((effort) => ({ effort, description: `${effort} effort` })),
    ...(efforts.length > 0 && { default_reasoning_level: 'medium' }),
    shell_type: 'unified_exec',
    visibility: 'list',
    supported_in_api: true,
    priority,
    availability_nux: null,
    upgrade: null,
    base_instructions: codexInstructions,
    supports_reasoning_summaries: efforts.length > 0,
    default_reasoning_summary: 'auto',
    support_verbosity: false,
    default_verbosity: null,
    apply_patch_tool_type: 'freeform',
    truncation_policy: { mode: 'tokens', limit: 10_000 },
    supports_parallel_tool_calls: true,
    supports_image_detail_original: false,
    context_window: context ?? null,
    auto_compact_token_limit: null,
    effective_context_window_percent: 95,
    experimental_supported_tools: [],
    input_modalities: tags?.includes('vision') ? ['text', 'image'] : ['text'],
    supports_search_tool: false,
  }
}

const codexInstructions = `You are a coding agent in the Codex CLI, working with the user in their terminal and their repository.
Read what you need before you change anything, and keep changes small and focused on the task.
Run commands with exec_command. Edit files with apply_patch, not with shell redirection.
Check your work by running the project's tests or the program where that is possible.
Say what you did and what you found in a few plain sentences. If something is unclear or failed, say so.`

const clients: readonly Client[] = [claude, opencode, cline, cursor, codex]

const shownKey = 'sk-tg-…'
const names = clients.map(({ id }) => id).join(', ')

export const connectCommand: CommandDefinition = {
  words: ['connect'],
  summary: `points a client at the gateway: ${names}`,
  details: `Creates a key named after the client, unless TOLLGATE_KEY holds one. The original file is kept beside it
(….before-tollgate); --undo restores it. Codex gets a profile of its own, which --undo
deletes. For Cline and Cursor it prints what to enter.`,
  positionals: [{ name: 'CLIENT' }],
  options: {
    model: { value: 'ID', help: 'the model to use; absent = a suitable one is chosen' },
    project: { value: 'ID', help: 'where to create the key; optional if there is only one' },
    workspace: { value: 'ID', help: 'where to look for the project' },
    print: { help: 'only show what would be written' },
    'dry-run': { help: 'the same as --print' },
    undo: { help: 'restore the original settings' },
    restore: { help: 'the same as --undo' },
  },
  examples: ['tollgate connect claude --print', 'tollgate connect claude', 'tollgate connect claude --undo'],
  async run(context) {
    const { first: name, isSet } = context
    const client = clients.find(({ id }) => id === name)
    if (client === undefined) {
      const near = nearestId(name, clients)
      throw usageRefusal(`there is no client "${name}"; there are ${names}.`, `tollgate connect ${near ?? '--help'}`)
    }
    await (isSet('undo') || isSet('restore') ? undo(context, client) : connect(context, client))
  },
}

function nearestId(name: string, all: readonly { readonly id: string }[]): string | undefined {
  const ids = all.map(({ id }) => id)
  return nearestNames(name, ids, 1)[0]
}

type FileClient = Extract<Client, { kind: 'file' }>
type OwnFilesClient = Extract<Client, { kind: 'own files' }>

async function connect(context: CommandContext, client: Client): Promise<void> {
  const { api, text, isSet } = context
  const isShown = isSet('print') || isSet('dry-run')
  const catalog = await api.call('getCatalog', { isPublic: true })
  const models = catalog.data.filter(({ price }) => price !== null)
  const model = text('model')
  if (model !== undefined && !models.some((each) => each.id === model)) {
    const near = nearestId(model, models)
    const attempt = near === undefined ? 'tollgate models' : `--model ${near}`
    throw new Refusal(exitCodes.notFound, `there is no model ${model}.`, attempt)
  }
  const facts = { url: api.url, key: shownKey, models, model }
  if (client.kind === 'file') {
    const fault = fileFault(client.file(context.settings))
    if (isShown || fault !== undefined) return show(context, client, facts, fault)
  }
  if (client.kind === 'own files' && isShown) return showFiles(context, client, facts)
  const key = isShown ? shownKey : await clientKey(context, client)
  if (client.kind === 'file') return write(context, client, { ...facts, key })
  if (client.kind === 'own files') return writeFiles(context, client, { ...facts, key })
  const steps = client.steps({ ...facts, key })
  printResult(context, { client: client.id, steps }, () => `${steps.join('\n')}\n`)
}

/** Why the file must not be written; undefined = it may. */
function fileFault(file: string): string | undefined {
  const repository = repositoryOf(file)
  if (repository !== undefined)
    return `${file} belongs to the repository ${repository}, and a key must not be committed`
  return readSettings(readText(file)) === undefined ? `${file} is not plain JSON (comments?)` : undefined
}

function show(context: CommandContext, client: FileClient, facts: ConnectFacts, fault: string | undefined): void {
  const members = client.members(facts)
  const file = client.file(context.settings)
  if (!context.json) context.terminal.complain(`${file} would get, in addition to what it contains:\n`)
  printResult(context, { client: client.id, file, members: jsonMembers(members) }, () =>
    renderSettings(withMembers({}, members)),
  )
  if (fault !== undefined)
    throw new Refusal(exitCodes.failed, `nothing was written: ${fault}.`, 'the settings above, by hand or as variables')
}

function write(context: CommandContext, client: FileClient, facts: ConnectFacts): void {
  const file = client.file(context.settings)
  const target = realFile(file)
  const members = client.members(facts)
  const settings = readSettings(readText(target)) ?? {}
  keepBackup(target)
  writeText(target, renderSettings(withMembers(settings, members)))
  const masked = jsonMembers(client.members({ ...facts, key: shownKey }))
  printResult(context, { client: client.id, file: target, backup: backupOf(target), members: masked }, () => {
    const changed = members.map(({ path }) => `  ${path.join('.')}\n`).join('')
    const notes = client.notes(facts).map((note) => `${note}\n`)
    return `${client.title} now uses ${facts.url}. Changed in ${target}:\n${changed}${notes.join('')}To undo: tollgate connect ${client.id} --undo\n`
  })
}

function showFiles(context: CommandContext, client: OwnFilesClient, facts: ConnectFacts): void {
  const files = client.files(facts, context.settings)
  printResult(context, { client: client.id, files }, () =>
    files.map(({ path, text }) => `${path}:\n\n${text}\n`).join(''),
  )
}

function writeFiles(context: CommandContext, client: OwnFilesClient, facts: ConnectFacts): void {
  const files = client.files(facts, context.settings)
  for (const { path } of files) {
    const repository = repositoryOf(path)
    if (repository === undefined) continue
    const what = `nothing was written: ${path} belongs to the repository ${repository}, and a key must not be committed.`
    throw new Refusal(exitCodes.failed, what, `tollgate connect ${client.id} --print`)
  }
  for (const { path, text } of files) writeText(path, text)
  const paths = files.map(({ path }) => path)
  printResult(context, { client: client.id, files: paths }, () => {
    const notes = client.notes(facts).map((note) => `${note}\n`)
    return `Written:\n${paths.map((path) => `  ${path}\n`).join('')}${notes.join('')}To undo: tollgate connect ${client.id} --undo\n`
  })
}

async function deleteFiles(context: CommandContext, client: OwnFilesClient): Promise<void> {
  const files = client.files({ url: '', key: '', models: [], model: undefined }, context.settings)
  const paths = files.map(({ path }) => path).filter((path) => readText(path) !== undefined)
  if (paths.length === 0) throw new Refusal(exitCodes.notFound, `there is nothing to undo: no ${files[0]?.path}.`)
  const written = paths.map((path) => readText(path)).join('')
  for (const path of paths) rmSync(path)
  const keys = await findClientKeys(context, client, written)
  const ids = keys?.map(({ id }) => id) ?? null
  printResult(context, { client: client.id, files: paths, keys: ids }, () => `Deleted: ${paths.join(', ')}.\n`)
  sayKeysLeft(context, client, keys)
}

function jsonMembers(members: readonly Member[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(members.map(({ path, value }) => [path.join('.'), value]))
}

async function undo(context: CommandContext, client: Client): Promise<void> {
  if (client.kind === 'by hand') {
    throw new Refusal(exitCodes.failed, `${client.title} was set up manually and has to be reset manually.`)
  }
  if (client.kind === 'own files') return deleteFiles(context, client)
  const target = realFile(client.file(context.settings))
  // The members do not depend on the facts, except for one that is only written with --model.
  const members = client.members({ url: '', key: '', models: [{ id: '-' }], model: '-' })
  const written = readText(target) ?? ''
  const outcome = restore(target, members)
  if (outcome === 'no backup') {
    throw new Refusal(exitCodes.notFound, `there is nothing to undo: no ${backupOf(target)}.`)
  }
  if (outcome === 'not plain') {
    const attempt = `cp ${backupOf(target)} ${target}`
    throw new Refusal(exitCodes.failed, `${target} is no longer plain JSON; it was left as it is.`, attempt)
  }
  const keys = await findClientKeys(context, client, written)
  const what = outcome === 'restored' ? 'is restored' : 'no longer has what connect wrote; later changes were kept'
  const ids = keys?.map(({ id }) => id) ?? null
  printResult(context, { client: client.id, file: target, outcome, keys: ids }, () => `${target} ${what}.\n`)
  sayKeysLeft(context, client, keys)
}

/** Active keys that `connect` wrote or created for the client; undefined if the gateway cannot be reached. */
async function findClientKeys({ api }: CommandContext, client: Client, written: string) {
  const last4 = /sk-tg-[A-Za-z0-9]+/.exec(written)?.[0].slice(-4)
  const isClients = (key: Key) => key.status === 'active' && (key.last4 === last4 || key.name === keyName(client))
  return (await ifPossible(api.list('listKeys', {})))?.data.filter(isClients)
}

function sayKeysLeft(context: CommandContext, client: Client, keys: readonly Key[] | undefined): void {
  if (context.json) return
  if (keys !== undefined) return listKeysLeft(context, client, keys)
  context.terminal.complain('Its key is still active. To revoke it: tollgate keys list, then tollgate keys revoke ID\n')
}

type Key = AnswerOf<'getKey'>

function keyName({ id }: Client): string {
  return `${id} on ${hostname()}`.slice(0, 60)
}

async function clientKey(context: CommandContext, client: Client): Promise<string> {
  const { api, settings, terminal, text } = context
  if (settings.apiKey !== undefined) return settings.apiKey.reveal()
  const project = await findProject(api, text('project'), text('workspace'))
  const key = await api.call('createKey', { id: project, body: { name: keyName(client) } })
  terminal.complain(`Created key "${cleanText(key.name)}": ${key.id}\n`)
  const list = api.list('listKeys', { query: { project_id: project } })
  listActiveKeys(context, await namesakesIn(list, key), 'Created earlier with this name and still active')
  return key.secret
}

/**
 * After `--undo`: lists the active keys that `connect` created, which are no longer needed, and one from TOLLGATE_KEY,
 * which may be used elsewhere.
 */
function listKeysLeft(context: CommandContext, client: Client, keys: readonly Key[]): void {
  const { true: created = [], false: given = [] } = Object.groupBy(keys, ({ name }) => `${name === keyName(client)}`)
  listActiveKeys(context, created, 'Still active')
  for (const { id, name } of given) {
    context.terminal.complain(`The key "${cleanText(name)}" ${id} came from TOLLGATE_KEY and stays active.\n`)
  }
}

function listActiveKeys({ terminal }: CommandContext, keys: readonly Key[], what: string): void {
  for (const { id, name } of keys) {
    terminal.complain(`${what}: "${cleanText(name)}" ${id}. To revoke it: tollgate keys revoke ${id}\n`)
  }
}
