// The clients that `tollgate connect` can point at a gateway: which members of which settings file, or what to type where
// there is no such file. Paths and members are from the clients' own documentation; docs/recipes has running examples.

import { join } from 'node:path'
import type { ItemOf } from '../../api/client.ts'
import type { ClientSettings } from '../../config/client-settings.ts'

/** A member of a JSON file by its path, and the value it gets. */
export interface Member {
  readonly path: readonly string[]
  readonly value: unknown
  /** For a member that people also set themselves: whether this value was written by `connect`. Absent = always. */
  isOurs?(value: unknown): boolean
}

type CatalogModel = ItemOf<'getCatalog'>

/** What clients need to know of a model. */
export type ConnectModel = Pick<CatalogModel, 'id'> & Partial<CatalogModel>

export interface ConnectFacts {
  /** The gateway's root. */
  readonly url: string
  /** The secret, or a placeholder if it is only shown. */
  readonly key: string
  /** Callable models of the catalog. */
  readonly models: readonly ConnectModel[]
  /** The requested model; undefined = choose one. */
  readonly model: string | undefined
}

export type Client = { readonly id: string; readonly title: string } & (
  | {
      readonly kind: 'file'
      file(settings: ClientSettings): string
      members(facts: ConnectFacts): readonly Member[]
      /** What to do next, and what to know. */
      notes(facts: ConnectFacts): readonly string[]
    }
  | { readonly kind: 'by hand'; steps(facts: ConnectFacts): readonly string[] }
  | { readonly kind: 'unsupported'; readonly reason: string }
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

const codex: Client = {
  id: 'codex',
  title: 'Codex CLI',
  kind: 'unsupported',
  reason:
    'Codex CLI speaks only the Responses API (/v1/responses), which Tollgate does not serve. Nothing was changed.',
}

export const clients: readonly Client[] = [claude, opencode, cline, cursor, codex]
