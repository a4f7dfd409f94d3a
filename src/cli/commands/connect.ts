// `tollgate connect`: points a client on this machine at the gateway, with a separate key that can be revoked alone,
// and back. It says what it changes, keeps the original, and writes no key into a file that a repository would commit.

import { rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
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

/** Facts about a model that clients need. */
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
      /** Next steps and notes. */
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
    'If you are logged in to an account, /logout first: a saved login can take precedence over the key.',
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

function chosenModel({ model, models }: Pick<ConnectFacts, 'model' | 'models'>): string {
  return model ?? firstWithTools(models) ?? 'an id from tollgate models'
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
      // Sends the session as the key of the prompt cache.
      options: { baseURL: `${url}/v1`, apiKey: key, setCacheKey: true },
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

function opencodeModel({ id, name, context_tokens: context, max_output_tokens: output, tags }: ConnectModel): object {
  return {
    name: name || id,
    ...(tags && { tool_call: tags.includes('tools'), reasoning: tags.includes('reasoning') }),
    ...(tags?.includes('vision') && { attachment: true, modalities: { input: ['text', 'image'], output: ['text'] } }),
    ...(context != null && output != null && { limit: { context, output } }),
  }
}

const cline: Client = {
  id: 'cline',
  title: 'Cline',
  kind: 'by hand',
  steps: ({ url, key, model, models }) => [
    'Cline keeps its settings inside the editor, so they are typed in: its panel → ⚙ → API Configuration',
    '  API Provider   LiteLLM',
    `  Base URL       ${url}`,
    `  API Key        ${key}`,
    `  Model          ${chosenModel({ model, models })}`,
    'With this provider it reads context windows and prices from the gateway (GET /v1/model/info). Kilo Code likewise;',
    `Roo Code: OpenAI Compatible, ${url}/v1 and the same key.`,
    'For the cline command line:',
    `  cline auth --provider openai-compatible --apikey ${key} --baseurl ${url}/v1 --modelid ${chosenModel({ model, models })}`,
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
    `  Add a custom model          ${chosenModel({ model, models })}`,
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

const qwen: Client = {
  id: 'qwen',
  title: 'Qwen Code',
  kind: 'by hand',
  steps: (facts) => [
    'Qwen Code takes its settings from the environment:',
    `  export OPENAI_BASE_URL=${facts.url}/v1`,
    `  export OPENAI_API_KEY=${facts.key}`,
    `  export OPENAI_MODEL=${chosenModel(facts)}`,
    '  qwen --auth-type openai',
  ],
}

const goose: Client = {
  id: 'goose',
  title: 'goose',
  kind: 'by hand',
  steps: (facts) => [
    'goose takes its settings from the environment, or from `goose configure`:',
    '  export GOOSE_PROVIDER=openai',
    `  export OPENAI_HOST=${facts.url}`,
    `  export OPENAI_API_KEY=${facts.key}`,
    `  export GOOSE_MODEL=${chosenModel(facts)}`,
    '  goose session',
  ],
}

const llm: Client = {
  id: 'llm',
  title: 'llm',
  kind: 'by hand',
  steps: (facts) => [
    'Store the key:',
    `  llm keys set tollgate --value ${facts.key}`,
    "Add the model to extra-openai-models.yaml in the folder of `dirname $(llm logs path)`, then run llm -m tollgate 'hello':",
    '  - model_id: tollgate',
    `    model_name: ${chosenModel(facts)}`,
    `    api_base: ${facts.url}/v1`,
    '    api_key_name: tollgate',
    '    supports_tools: true',
  ],
}

/**
 * Its settings file holds no keys: https://geminicli.com/docs/get-started/authentication (2026-11). Without the type of
 * authentication in it, `GOOGLE_GEMINI_BASE_URL` makes `gemini --prompt` end with "Invalid auth method selected":
 * https://github.com/google-gemini/gemini-cli/issues/27550 (0.44 to 0.61).
 */
const geminiCli: Client = {
  id: 'gemini',
  title: 'Gemini CLI',
  kind: 'file',
  file: ({ homeFolder }) => join(homeFolder, '.gemini', 'settings.json'),
  members: () => [
    { path: ['security', 'auth', 'selectedType'], value: apiKeyType, isOurs: (value) => value === apiKeyType },
  ],
  notes: (facts) => [
    'Set these variables, then run gemini:',
    `  export GOOGLE_GEMINI_BASE_URL=${facts.url}`,
    `  export GEMINI_API_KEY=${facts.key}`,
    `  gemini --model ${chosenModel(facts)}`,
  ],
}
const apiKeyType = 'gemini-api-key'

/** Zed fetches no list of models, and keeps keys out of its settings. */
const zed: Client = {
  id: 'zed',
  title: 'Zed',
  kind: 'file',
  file: ({ configFolder }) => join(configFolder, 'zed', 'settings.json'),
  members: ({ url, models }) => [
    {
      path: ['language_models', 'openai_compatible', 'Tollgate'],
      value: { api_url: `${url}/v1`, available_models: models.map(zedModel) },
    },
  ],
  notes: ({ key }) => [`Enter the key in Zed's agent settings, or start Zed with TOLLGATE_API_KEY=${key}.`],
}

function zedModel({ id, name, context_tokens: context, max_output_tokens: output, tags }: ConnectModel): object {
  return {
    name: id,
    display_name: name || id,
    max_tokens: context ?? 128_000,
    ...(output != null && { max_output_tokens: output }),
    capabilities: {
      tools: tags?.includes('tools') ?? false,
      images: tags?.includes('vision') ?? false,
      parallel_tool_calls: tags?.includes('tools') ?? false,
      prompt_cache_key: true,
    },
  }
}

/** A separate configuration beside Continue's. */
const continueClient: Client = {
  id: 'continue',
  title: 'Continue',
  kind: 'own files',
  files(facts, { homeFolder }) {
    const listed = facts.model === undefined ? facts.models : facts.models.filter(({ id }) => id === facts.model)
    const models = listed.map(({ id, name, tags, context_tokens: context }) => ({
      name: name || id,
      provider: 'openai',
      model: id,
      apiBase: `${facts.url}/v1`,
      apiKey: facts.key,
      capabilities: [
        ...(tags?.includes('tools') ? ['tool_use'] : []),
        ...(tags?.includes('vision') ? ['image_input'] : []),
      ],
      ...(context != null && { defaultCompletionOptions: { contextLength: context } }),
    }))
    const text = stringify({ name: 'Tollgate', version: '1.0.0', schema: 'v1', models })
    return [{ path: join(homeFolder, '.continue', 'tollgate.yaml'), text }]
  },
  notes: () => [
    'Run cn --config ~/.continue/tollgate.yaml. In the editor, copy its models into ~/.continue/config.yaml.',
  ],
}

const aider: Client = {
  id: 'aider',
  title: 'aider',
  kind: 'own files',
  files(facts, { homeFolder }) {
    const folder = join(homeFolder, '.config', 'aider')
    const metadata = join(folder, 'tollgate-models.json')
    const settings = {
      'openai-api-base': `${facts.url}/v1`,
      'openai-api-key': facts.key,
      model: `openai/${chosenModel(facts)}`,
      'model-metadata-file': metadata,
      'show-model-warnings': false,
    }
    const known = facts.models.map((model) => [`openai/${model.id}`, aiderModel(model)])
    return [
      { path: join(folder, 'tollgate.yml'), text: stringify(settings) },
      { path: metadata, text: `${JSON.stringify(Object.fromEntries(known), null, 2)}\n` },
    ]
  },
  notes: () => ['Run aider --config ~/.config/aider/tollgate.yml.'],
}

function aiderModel({ context_tokens: context, max_output_tokens: output, price }: ConnectModel): object {
  const perToken = (usd: unknown) => (typeof usd === 'string' ? Number(usd) / 1_000_000 : undefined)
  const listed = typeof price === 'object' && price !== null ? price : undefined
  return {
    ...(context != null && { max_input_tokens: context }),
    ...(output != null && { max_output_tokens: output }),
    ...(listed && { input_cost_per_token: perToken(listed.input), output_cost_per_token: perToken(listed.output) }),
    litellm_provider: 'openai',
    mode: 'chat',
  }
}

const clients: readonly Client[] = [
  ...[claude, opencode, cline, cursor, codex],
  ...[qwen, zed, continueClient, aider, goose, llm, geminiCli],
]

const shownKey = 'sk-tg-…'
const names = clients.map(({ id }) => id).join(', ')

export const connectCommand: CommandDefinition = {
  words: ['connect'],
  summary: `points a client at the gateway: ${names}`,
  details: `Creates a key named after the client, unless TOLLGATE_KEY holds one. The original file is kept beside it
(….before-tollgate); --undo restores it. Codex, Continue and aider get files of their
own, which --undo deletes. For the others it prints what to enter.`,
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
