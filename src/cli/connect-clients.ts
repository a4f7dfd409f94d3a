// The clients that `tollgate connect` sets up, one row each: which members of which settings file, which files of their own,
// or what to type where there is no such file. Paths and members are from the clients' own documentation; docs/recipes has
// running examples.

import { join } from 'node:path'
import { stringify } from 'yaml'
import type { ClientSettings } from '../config/client-settings.ts'
import type { Member } from './settings-file.ts'
import { shellWord } from './start-output.ts'

/** Facts about a model that clients need, as the catalog has them. Prices are USD per million tokens. */
export interface ConnectModel {
  readonly id: string
  readonly name?: string
  readonly tags?: readonly string[]
  readonly context_tokens?: number | null
  readonly max_output_tokens?: number | null
  readonly price?: { readonly input: string; readonly output: string } | 'free' | null
}

export interface ConnectFacts {
  /** The gateway's root. */
  readonly url: string
  /** The secret, or a placeholder if it is only shown. Unused by clients that get a command for tokens. */
  readonly key: string
  /** The command that prints a token: for a person's sign-in. Only for clients whose `signIn` is `helper`. */
  readonly tokenCommand?: readonly [program: string, ...args: string[]]
  /** The client signs in at the gateway itself. Only for clients whose `signsIn` is set. */
  readonly ownLogin?: true
  /** Callable models of the catalog. */
  readonly models: readonly ConnectModel[]
  /** The requested model; undefined = choose one. */
  readonly model: string | undefined
}

interface ClientBase {
  readonly id: string
  readonly title: string
  /** How it uses a person's sign-in: it runs a command for tokens, or calls the local proxy. Absent: it needs a key. */
  readonly signIn?: 'helper' | 'proxy'
  /** It can also sign in at a gateway itself, if the gateway's address is private. */
  readonly signsIn?: true
  /** What the person does next, or, if everything is by hand, does at all. See `linesOf` for what is in braces. */
  readonly lines: readonly string[]
}

/** Has a settings file, of which `connect` sets some members. `--undo` restores them. */
export interface FileClient extends ClientBase {
  readonly kind: 'file'
  file(settings: ClientSettings): string
  /** A member without a value is removed. */
  members(facts: ConnectFacts): readonly Member[]
  /** A file of its own beside it, only with a command for tokens. */
  tokenFile?(facts: ConnectFacts, settings: ClientSettings): { readonly path: string; readonly text: string }
}

/** Gets files that only `connect` writes. `--undo` deletes them. */
export interface OwnFilesClient extends ClientBase {
  readonly kind: 'own files'
  files(facts: ConnectFacts, settings: ClientSettings): readonly { readonly path: string; readonly text: string }[]
}

export type Client = FileClient | OwnFilesClient | (ClientBase & { readonly kind: 'by hand' })

export const clients: readonly Client[] = [
  {
    id: 'claude',
    title: 'Claude Code',
    kind: 'file',
    signIn: 'helper',
    signsIn: true,
    file: ({ claudeFolder, homeFolder }) => join(claudeFolder ?? join(homeFolder, '.claude'), 'settings.json'),
    members(facts) {
      const { main, opus, sonnet, haiku } = claudeModels(facts)
      const { tokenCommand, ownLogin, url } = facts
      const env = {
        // Otherwise an existing key would be sent as well.
        ANTHROPIC_API_KEY: '',
        CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1',
        ANTHROPIC_MODEL: main,
        ANTHROPIC_DEFAULT_OPUS_MODEL: opus,
        ANTHROPIC_DEFAULT_SONNET_MODEL: sonnet,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: haiku,
      }
      const set = Object.entries(env).filter(([, value]) => value !== undefined)
      return [
        // One way of three: with a token Claude Code would warn about the helper, and with either it would not sign in.
        { path: ['forceLoginMethod'], value: ownLogin && 'gateway' },
        { path: ['forceLoginGatewayUrl'], value: ownLogin && url },
        { path: ['apiKeyHelper'], value: tokenCommand?.map(shellWord).join(' ') },
        { path: ['env', 'ANTHROPIC_AUTH_TOKEN'], value: tokenCommand || ownLogin ? undefined : facts.key },
        { path: ['env', 'ANTHROPIC_BASE_URL'], value: ownLogin ? undefined : url },
        ...set.map(([name, value]) => ({ path: ['env', name], value })),
      ]
    },
    lines: [
      'Restart claude; /status shows the address and the model.',
      'If you are logged in to an account, /logout first: a saved login can take precedence.',
    ],
  },
  {
    id: 'opencode',
    title: 'opencode',
    kind: 'file',
    signIn: 'helper',
    file: ({ configFolder }) => join(configFolder, 'opencode', 'opencode.json'),
    tokenFile: ({ tokenCommand = [''] }, { configFolder }) => ({
      path: join(configFolder, 'opencode', 'plugin', 'tollgate.js'),
      text: opencodePlugin(tokenCommand),
    }),
    members({ url, key, tokenCommand, models, model }) {
      const provider = {
        npm: '@ai-sdk/openai-compatible',
        name: 'Tollgate',
        // Sends the session as the key of the prompt cache. The plugin adds tokens.
        options: { baseURL: `${url}/v1`, ...(!tokenCommand && { apiKey: key }), setCacheKey: true },
        models: Object.fromEntries(models.map((each) => [each.id, opencodeModel(each)])),
      }
      const isOurs = (value: unknown) => typeof value === 'string' && value.startsWith('tollgate/')
      return [
        { path: ['$schema'], value: 'https://opencode.ai/config.json' },
        { path: ['provider', 'tollgate'], value: provider },
        ...(model === undefined ? [] : [{ path: ['model'], value: `tollgate/${model}`, isOurs }]),
      ]
    },
    lines: ['Restart opencode; /models lists the {count} models of this gateway under Tollgate.'],
  },
  {
    id: 'cline',
    title: 'Cline',
    kind: 'by hand',
    signIn: 'proxy',
    lines: [
      'Cline keeps its settings inside the editor, so they are typed in: its panel → ⚙ → API Configuration',
      '  API Provider   LiteLLM',
      '  Base URL       {url}',
      '  API Key        {key}',
      '  Model          {model}',
      'With this provider it reads context windows and prices from the gateway (GET /v1/model/info). Kilo Code likewise;',
      'Roo Code: OpenAI Compatible, {url}/v1 and the same key.',
      'For the cline command line:',
      '  cline auth --provider openai-compatible --apikey {key} --baseurl {url}/v1 --modelid {model}',
    ],
  },
  {
    id: 'cursor',
    title: 'Cursor',
    kind: 'by hand',
    lines: [
      "Cursor calls from its maker's servers, so the gateway needs a public https:// address; a local one is not reached.",
      'Cursor Settings → Models → API Keys',
      '  OpenAI API Key              on',
      '  API Key                     {key}',
      '  Override OpenAI Base URL    {url}/v1',
      '  Add a custom model          {model}',
      'To undo, switch both off again.',
    ],
  },
  {
    // A profile beside Codex's own settings, which stay as they are, and a list of the models.
    id: 'codex',
    title: 'Codex CLI',
    kind: 'own files',
    signIn: 'helper',
    files({ url, key, tokenCommand, models, model }, { codexFolder, homeFolder }) {
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
        ...(tokenCommand ? codexTokens(tokenCommand) : [`experimental_bearer_token = ${JSON.stringify(key)}`]),
        '',
      ]
      return [
        { path: join(folder, 'tollgate.config.toml'), text: profile.join('\n') },
        { path: catalog, text: `${JSON.stringify({ models: models.map(codexModel) }, null, 2)}\n` },
      ]
    },
    lines: ['Run codex --profile tollgate; /model lists the models of this gateway.'],
  },
  {
    id: 'qwen',
    title: 'Qwen Code',
    kind: 'by hand',
    signIn: 'proxy',
    lines: [
      'Qwen Code takes its settings from the environment:',
      '  export OPENAI_BASE_URL={url}/v1',
      '  export OPENAI_API_KEY={key}',
      '  export OPENAI_MODEL={model}',
      '  qwen --auth-type openai',
    ],
  },
  {
    // Zed fetches no list of models, and keeps keys out of its settings.
    id: 'zed',
    title: 'Zed',
    kind: 'file',
    signIn: 'proxy',
    file: ({ configFolder }) => join(configFolder, 'zed', 'settings.json'),
    members: ({ url, models }) => [
      {
        path: ['language_models', 'openai_compatible', 'Tollgate'],
        value: { api_url: `${url}/v1`, available_models: models.map(zedModel) },
      },
    ],
    lines: ["Enter the key in Zed's agent settings, or start Zed with TOLLGATE_API_KEY={key}."],
  },
  {
    // A separate configuration beside Continue's.
    id: 'continue',
    title: 'Continue',
    kind: 'own files',
    signIn: 'proxy',
    files(facts, { homeFolder }) {
      const listed = facts.model === undefined ? facts.models : facts.models.filter(({ id }) => id === facts.model)
      const models = listed.map((model) => continueModel(model, facts))
      const text = stringify({ name: 'Tollgate', version: '1.0.0', schema: 'v1', models })
      return [{ path: join(homeFolder, '.continue', 'tollgate.yaml'), text }]
    },
    lines: ['Run cn --config ~/.continue/tollgate.yaml. In the editor, copy its models into ~/.continue/config.yaml.'],
  },
  {
    id: 'aider',
    title: 'aider',
    kind: 'own files',
    signIn: 'proxy',
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
    lines: ['Run aider --config ~/.config/aider/tollgate.yml.'],
  },
  {
    id: 'goose',
    title: 'goose',
    kind: 'by hand',
    signIn: 'proxy',
    lines: [
      'goose takes its settings from the environment, or from `goose configure`:',
      '  export GOOSE_PROVIDER=openai',
      '  export OPENAI_HOST={url}',
      '  export OPENAI_API_KEY={key}',
      '  export GOOSE_MODEL={model}',
      '  goose session',
    ],
  },
  {
    id: 'llm',
    title: 'llm',
    kind: 'by hand',
    signIn: 'proxy',
    lines: [
      'Store the key:',
      '  llm keys set tollgate --value {key}',
      "Add the model to extra-openai-models.yaml in the folder of `dirname $(llm logs path)`, then run llm -m tollgate 'hello':",
      '  - model_id: tollgate',
      '    model_name: {model}',
      '    api_base: {url}/v1',
      '    api_key_name: tollgate',
      '    supports_tools: true',
    ],
  },
  {
    // Its settings file holds no keys: https://geminicli.com/docs/get-started/authentication (2026-11). Without the type of
    // authentication in it, `GOOGLE_GEMINI_BASE_URL` makes `gemini --prompt` end with "Invalid auth method selected":
    // https://github.com/google-gemini/gemini-cli/issues/27550 (0.44 to 0.61).
    id: 'gemini',
    title: 'Gemini CLI',
    kind: 'file',
    signIn: 'proxy',
    file: ({ homeFolder }) => join(homeFolder, '.gemini', 'settings.json'),
    members() {
      const type = 'gemini-api-key'
      return [{ path: ['security', 'auth', 'selectedType'], value: type, isOurs: (value) => value === type }]
    },
    lines: [
      'Set these variables, then run gemini:',
      '  export GOOGLE_GEMINI_BASE_URL={url}',
      '  export GEMINI_API_KEY={key}',
      '  gemini --model {model}',
    ],
  },
]

/** The lines of a client with the facts in place of `{url}`, `{key}`, `{model}` and `{count}` (of models). */
export function linesOf({ lines }: Client, facts: ConnectFacts): readonly string[] {
  const values = { url: facts.url, key: facts.key, model: chosenModel(facts), count: String(facts.models.length) }
  return lines.map((line) =>
    line.replaceAll(/\{(url|key|model|count)\}/g, (_, name: keyof typeof values) => values[name]),
  )
}

function chosenModel({ model, models }: ConnectFacts): string {
  return model ?? firstWithTools(models) ?? 'an id from tollgate models'
}

function firstWithTools(models: readonly ConnectModel[]): string | undefined {
  return (models.find(({ tags }) => tags?.includes('tools')) ?? models[0])?.id
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

// A model as each client's settings describe it.

function opencodeModel({ id, name, context_tokens: context, max_output_tokens: output, tags }: ConnectModel): object {
  return {
    name: name || id,
    ...(tags && { tool_call: tags.includes('tools'), reasoning: tags.includes('reasoning') }),
    ...(tags?.includes('vision') && { attachment: true, modalities: { input: ['text', 'image'], output: ['text'] } }),
    ...(context != null && output != null && { limit: { context, output } }),
  }
}

/**
 * Sets the header of each request. A plugin, because opencode's settings take no command, and `opencode auth login` runs one
 * only once. It keeps a token for less than the five minutes for which it is valid at least.
 */
function opencodePlugin(tokenCommand: readonly string[]): string {
  return `// Written by \`tollgate connect opencode\`; removed by \`tollgate connect opencode --undo\`.
// Sends the token of your sign-in with each request to the provider "tollgate".

const command = ${JSON.stringify(tokenCommand)}
const keepMs = 240_000
let fetching
let fetchedAt = 0

async function fetchToken() {
  const child = Bun.spawn(command, { stdio: ["ignore", "pipe", "pipe"] })
  const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  if (exit !== 0) throw new Error(err.trim())
  return out.trim()
}

export const Tollgate = async () => ({
  async "chat.headers"({ model }, output) {
    if (model.providerID !== "tollgate") return
    if (Date.now() - fetchedAt > keepMs) {
      fetchedAt = Date.now()
      fetching = fetchToken()
      fetching.catch(() => { fetchedAt = 0 })
    }
    output.headers.Authorization = \`Bearer \${await fetching}\`
  },
})
`
}

/** Codex runs the command again after five minutes and after a 401. */
function codexTokens([program, ...args]: readonly [string, ...string[]]): readonly string[] {
  return [
    '',
    '[model_providers.tollgate.auth]',
    `command = ${JSON.stringify(program)}`,
    `args = ${JSON.stringify(args)}`,
  ]
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

function continueModel({ id, name, tags, context_tokens: context }: ConnectModel, { url, key }: ConnectFacts): object {
  return {
    name: name || id,
    provider: 'openai',
    model: id,
    apiBase: `${url}/v1`,
    apiKey: key,
    capabilities: [
      ...(tags?.includes('tools') ? ['tool_use'] : []),
      ...(tags?.includes('vision') ? ['image_input'] : []),
    ],
    ...(context != null && { defaultCompletionOptions: { contextLength: context } }),
  }
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
