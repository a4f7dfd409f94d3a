// Imports the configuration file of LiteLLM's proxy (https://docs.litellm.ai/docs/proxy/configs, 2026-10): deployments become
// providers and routes, groups become models. Everything else is listed by name.

import { z } from 'zod'
import { perMillion } from '../../catalog/price-source.ts'
import { builtInProviders } from '../../providers/data/built-in.ts'
import { Draft, type Facts, factsOf, findBuiltIn, providerId, type RouteDraft, variableName } from './draft.ts'

const parameters = z.looseObject({ model: z.string() })
const fileSchema = z.looseObject({
  model_list: z
    .array(
      z.looseObject({
        model_name: z.string(),
        litellm_params: parameters,
        model_info: z.looseObject({}).nullish(),
      }),
    )
    .nullish(),
  router_settings: z.looseObject({}).nullish(),
  litellm_settings: z.looseObject({}).nullish(),
  general_settings: z.looseObject({}).nullish(),
  environment_variables: z.record(z.string(), z.unknown()).nullish(),
})

type Parameters = z.output<typeof parameters>

interface Host {
  /** The built-in provider; absent = the address is in the entry, or this one. */
  readonly id?: string
  /** The variable that LiteLLM reads without `api_key`. */
  readonly variable?: string
  readonly dialect?: string
  readonly baseUrl?: string
  /** Appended to the `api_base` of an entry. */
  readonly suffix?: string
  /**
   * For a host that no provider of the file can sign in to: the variables of the built-in one, which has one value of each,
   * the members that hold them here, and the variables that LiteLLM reads without these. Without the last it is optional.
   */
  readonly settings?: Readonly<Record<string, readonly [member: string, variable?: string]>>
  /** A server that operators run themselves. */
  readonly isLocal?: true
}

/** By the prefix of `model`. */
const hosts: Readonly<Record<string, Host>> = {
  openai: { id: 'openai', variable: 'OPENAI_API_KEY' },
  azure: { variable: 'AZURE_API_KEY', baseUrl: `\${AZURE_API_BASE}/openai/v1`, suffix: '/openai/v1' },
  azure_ai: { variable: 'AZURE_AI_API_KEY', baseUrl: `\${AZURE_AI_API_BASE}` },
  anthropic: { id: 'anthropic', variable: 'ANTHROPIC_API_KEY', dialect: 'anthropic-messages' },
  gemini: { id: 'google', variable: 'GEMINI_API_KEY', dialect: 'gemini', suffix: '/v1beta' },
  vertex_ai: {
    id: 'google-vertex',
    settings: {
      GOOGLE_APPLICATION_CREDENTIALS: ['vertex_credentials', 'GOOGLE_APPLICATION_CREDENTIALS'],
      GOOGLE_CLOUD_PROJECT: ['vertex_project', 'VERTEXAI_PROJECT'],
      GOOGLE_CLOUD_LOCATION: ['vertex_location', 'VERTEXAI_LOCATION'],
    },
  },
  bedrock: {
    id: 'amazon-bedrock',
    dialect: 'bedrock',
    settings: {
      AWS_ACCESS_KEY_ID: ['aws_access_key_id', 'AWS_ACCESS_KEY_ID'],
      AWS_SECRET_ACCESS_KEY: ['aws_secret_access_key', 'AWS_SECRET_ACCESS_KEY'],
      AWS_SESSION_TOKEN: ['aws_session_token'],
      AWS_REGION: ['aws_region_name', 'AWS_REGION_NAME'],
    },
  },
  mistral: { id: 'mistral', variable: 'MISTRAL_API_KEY' },
  groq: { id: 'groq', variable: 'GROQ_API_KEY' },
  deepseek: { id: 'deepseek', variable: 'DEEPSEEK_API_KEY' },
  together_ai: { id: 'together', variable: 'TOGETHERAI_API_KEY' },
  fireworks_ai: { id: 'fireworks', variable: 'FIREWORKS_AI_API_KEY' },
  openrouter: { id: 'openrouter', variable: 'OPENROUTER_API_KEY' },
  perplexity: { id: 'perplexity', variable: 'PERPLEXITYAI_API_KEY' },
  xai: { id: 'xai', variable: 'XAI_API_KEY' },
  cohere: { id: 'cohere', variable: 'COHERE_API_KEY' },
  cohere_chat: { id: 'cohere', variable: 'COHERE_API_KEY' },
  cerebras: { id: 'cerebras', variable: 'CEREBRAS_API_KEY' },
  nvidia_nim: { id: 'nvidia', variable: 'NVIDIA_NIM_API_KEY' },
  huggingface: { id: 'huggingface', variable: 'HUGGINGFACE_API_KEY' },
  dashscope: { id: 'alibaba', variable: 'DASHSCOPE_API_KEY' },
  moonshot: { id: 'moonshot', variable: 'MOONSHOT_API_KEY' },
  minimax: { id: 'minimax', variable: 'MINIMAX_API_KEY' },
  zai: { id: 'zai', variable: 'ZAI_API_KEY' },
  ollama: { baseUrl: 'http://localhost:11434/v1', suffix: '/v1', isLocal: true },
  ollama_chat: { baseUrl: 'http://localhost:11434/v1', suffix: '/v1', isLocal: true },
  hosted_vllm: { baseUrl: `\${HOSTED_VLLM_API_BASE}` },
  lm_studio: { baseUrl: `\${LM_STUDIO_API_BASE}`, isLocal: true },
  custom_openai: {},
  openai_like: {},
  litellm_proxy: {},
}

const servedModes = ['chat', 'completion', 'responses', 'embedding']
/** The members of a price, and what they are called here. */
const costs: Readonly<Record<string, string>> = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cache_read',
  cache_creation_input_token_cost: 'cache_write',
  cache_creation_input_token_cost_above_1hr: 'cache_write_1h',
}

const policies: Readonly<Record<string, string>> = {
  'latency-based-routing': 'fastest',
  'cost-based-routing': 'cheapest',
  'simple-shuffle': 'priority',
}

const limitsElsewhere = 'limits belong to keys, projects and workspaces (tollgate limits); shares of traffic are weight'
const budgetElsewhere = 'set a spend limit: tollgate limits set WORKSPACE --spend-per-day, -week or -month'
const ownLimits = 'give limits to each key, person or group: tollgate keys create --help'
const oneAttempts = 'set retries.attempts, for all models'
const oneTimeout = 'set timeouts of the routes'

const reasons: Readonly<Record<string, string>> = {
  rpm: limitsElsewhere,
  tpm: limitsElsewhere,
  max_budget: budgetElsewhere,
  budget_duration: budgetElsewhere,
  default_key_generate_params: ownLimits,
  max_internal_user_budget: ownLimits,
  internal_user_budget_duration: ownLimits,
  master_key: 'Tollgate generates its management token into the data folder',
  database_url: 'DATABASE_URL moves Tollgate to PostgreSQL; keys and spend of LiteLLM are not read',
  drop_params: 'fields that a provider does not take are dropped with a warning, always',
  cache: 'responses are not cached',
  success_callback: 'use webhooks, traces or the request log',
  num_retries: oneAttempts,
  max_retries: oneAttempts,
  request_timeout: oneTimeout,
  timeout: oneTimeout,
  stream_timeout: oneTimeout,
  api_version: 'an address takes no version; Azure needs none at /openai/v1',
  azure_ad_token: 'Azure is called with an API key',
  organization: 'use a key of that organization',
  aws_bedrock_runtime_endpoint: 'add a provider with dialect bedrock and this base_url',
  aws_role_name: 'Tollgate assumes no role: set the keys of a user that may call the models',
  aws_profile_name: 'Tollgate reads no profile: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
  vertex_project: 'set GOOGLE_CLOUD_PROJECT',
  vertex_location: 'set GOOGLE_CLOUD_LOCATION',
  include: 'import that file too, and merge the results',
}

const chosen = (names: readonly unknown[]) => `callers choose one, such as ${JSON.stringify(names.at(1))}`

/** Those for any failure are imported. */
const importedFallbacks = ['fallbacks', 'default_fallbacks']
/** The advice for each other kind of fallback; `names`: the model, then its fallbacks. */
const fallbacks: Readonly<Record<string, (names: readonly unknown[]) => string>> = {
  context_window_fallbacks: (names) =>
    `a request that is too long is refused and not sent to another model: ${chosen(names)}`,
  content_policy_fallbacks: (names) => `a refusal is returned and not sent to another model: ${chosen(names)}`,
}

export function importLitellm(value: unknown): Draft {
  const { model_list, router_settings, litellm_settings, general_settings, environment_variables, ...others } =
    fileSchema.parse(value)
  const draft = new Draft()
  const named = new Set([...JSON.stringify(value).matchAll(/os\.environ\/(\w+)/g)].map(([, name = '']) => name))
  for (const [at, deployment] of (model_list ?? []).entries()) {
    const where = `model_list[${at}] (${deployment.model_name})`
    importDeployment(draft, deployment, where, named)
  }
  const { routing_strategy, model_group_alias, ...router } = router_settings ?? {}
  for (const [name, target] of Object.entries((model_group_alias ?? {}) as Record<string, unknown>)) {
    const group = typeof target === 'string' ? target : (target as { readonly model?: string } | null)?.model
    const id = group === undefined ? undefined : draft.idOf(group)
    if (id === undefined) draft.leave(`router_settings.model_group_alias.${name}`, 'its model was not carried')
    else draft.alias(name, id)
  }
  const policy = policies[String(routing_strategy)]
  if (policy !== undefined) for (const model of draft.models.values()) if (policy !== 'priority') model.routing = policy
  if (routing_strategy !== undefined && policy === undefined) {
    draft.leave(`router_settings.routing_strategy ${routing_strategy}`, 'routes share traffic by weight instead')
  }
  importFallbacks(draft, { router_settings: router, litellm_settings })
  for (const [section, members] of Object.entries({ router_settings: router, litellm_settings, general_settings })) {
    for (const [name, setting] of Object.entries(members ?? {})) importSetting(draft, section, name, setting)
  }
  for (const [name, text] of Object.entries(environment_variables ?? {})) {
    if (draft.variables.has(name) && typeof text === 'string' && !text.startsWith('os.environ/')) {
      draft.needs(name, { value: text, note: 'the value in environment_variables' })
    } else draft.leave(`environment_variables.${name}`, 'set it where the gateway is started')
  }
  for (const name of Object.keys(others)) draft.leave(name, reasons[name] ?? 'no counterpart')
  return draft
}

type Sections = Readonly<Record<string, Readonly<Record<string, unknown>> | null | undefined>>

/** Under this name LiteLLM has the fallbacks of every model without its own. */
const anyModel = '*'

/**
 * LiteLLM falls back from a fallback too. Here the list of a model is all there is, so it gets those of its fallbacks behind
 * them (https://docs.litellm.ai/docs/proxy/reliability, 2026-11).
 */
function importFallbacks(draft: Draft, sections: Sections): void {
  const lists = new Map<string, readonly string[]>()
  for (const [section, members] of Object.entries(sections)) {
    const { fallbacks: named, default_fallbacks: usual } = members ?? {}
    const entries = [named ?? []].flat().flatMap((each) => Object.entries((each ?? {}) as Record<string, unknown>))
    for (const [name, list] of [...entries, ...(usual == null ? [] : [[anyModel, usual] as const])]) {
      const what = `${section}.${name === anyModel && list === usual ? 'default_fallbacks' : `fallbacks.${name}`}`
      const id = name === anyModel ? anyModel : draft.idOf(name)
      if (id === undefined) draft.leave(what, 'its model was not carried')
      // The first one that was read wins.
      else if (!lists.has(id)) lists.set(id, readFallbacks(draft, what, [list].flat()))
    }
  }
  // Vectors of different models cannot be compared, and models that make them make nothing else.
  const embeds = (id: string) => draft.models.get(id)?.facts.tags?.includes('embeddings') ?? false
  for (const id of draft.models.keys()) {
    if (embeds(id)) continue
    const found = new Set<string>()
    const add = (of: string): void => {
      for (const next of lists.get(of) ?? lists.get(anyModel) ?? []) {
        if (next === id || found.has(next) || embeds(next)) continue
        found.add(next)
        add(next)
      }
    }
    add(id)
    draft.fallBack(id, [...found])
  }
}

function readFallbacks(draft: Draft, what: string, names: readonly unknown[]): readonly string[] {
  return names.flatMap((name) => {
    const id = typeof name === 'string' ? draft.idOf(name) : undefined
    if (id === undefined) draft.leave(`${what} to ${JSON.stringify(name)}`, 'its model was not carried')
    return id ?? []
  })
}

/** The router's settings come first, and win as they do in LiteLLM. */
function importSetting(draft: Draft, section: string, name: string, setting: unknown): void {
  if (setting === null || (importedFallbacks.includes(name) && section !== 'general_settings')) return
  const what = `${section}.${name}`
  if (name === 'num_retries' && section !== 'general_settings') {
    if (draft.settings.retries !== undefined) return draft.leave(what, 'router_settings.num_retries comes first')
    if (typeof setting !== 'number' || !Number.isInteger(setting) || setting < 0) return draft.leave(what, oneAttempts)
    if (setting > 9) draft.leave(what, 'retries.attempts is at most 10')
    draft.settings.retries = { attempts: Math.min(10, setting + 1) }
    return
  }
  const fallback = fallbacks[name]
  if (fallback === undefined) return draft.leave(what, reasons[name] ?? 'no counterpart')
  const chains = Array.isArray(setting) ? setting : [setting]
  if (chains.every((each) => typeof each === 'string')) return draft.leave(what, fallback(['MODEL', ...chains]))
  for (const [model, next] of chains.flatMap((each) => Object.entries((each ?? {}) as Record<string, unknown>))) {
    draft.leave(
      `${what}.${model}`,
      fallback([model === '*' ? 'MODEL' : model, ...(Array.isArray(next) ? next : [next])]),
    )
  }
}

type Deployment = NonNullable<z.output<typeof fileSchema>['model_list']>[number]

/** A deployment whose provider is not decided yet. */
interface Found {
  readonly prefix: string
  readonly host: Host
  readonly given: Parameters
  readonly upstream: string
  readonly where: string
  /** The variables that the file refers to. */
  readonly named: ReadonlySet<string>
}

function importDeployment(draft: Draft, deployment: Deployment, where: string, named: ReadonlySet<string>): void {
  const { model_name: name, litellm_params: given, model_info } = deployment
  const info = model_info ?? {}
  const custom = typeof given.custom_llm_provider === 'string' ? `${given.custom_llm_provider}/` : ''
  const [first = '', ...rest] = (custom !== '' && !given.model.startsWith(custom) ? custom : '')
    .concat(given.model)
    .split('/')
  const isBare = rest.length === 0
  const prefix = isBare ? 'openai' : first
  const host = hosts[prefix]
  const upstream = (isBare ? given.model : rest.join('/')).replace(/^(converse|invoke|responses)\//, '')
  const mode = String(info.mode ?? 'chat')
  if (name.includes('*') || upstream.includes('*')) {
    return draft.leave(where, 'a wildcard; set the key of the provider, and its built-in models are there')
  }
  if (!servedModes.includes(mode)) return draft.leave(where, `mode ${mode} is not imported`)
  if (!host) return draft.leave(where, `Tollgate does not know how to call ${prefix}`)
  if (host.dialect === 'bedrock' && !/(^|\.)anthropic\./.test(upstream)) {
    return draft.leave(where, 'only Claude is imported from Bedrock')
  }
  if (given.weight === 0) return draft.leave(where, 'weight 0 is no traffic; add the route when it should have some')
  const provider = findProvider(draft, { prefix, host, given, upstream, where, named })
  if (provider === undefined) return
  const read = { ...sharing(given), ...timeouts(given) }
  const isEmbedding = mode === 'embedding'
  const known = factsOf(findBuiltIn(upstream, host.id)?.id ?? String(info.base_model ?? upstream))
  const price = priceOf({ ...(isEmbedding && { output_cost_per_token: 0 }), ...info, ...given })
  const isFree = price === undefined && (host.isLocal === true || isOnThisMachine(given.api_base ?? given.base_url))
  const facts: Facts = {
    ...known,
    ...sizes(given, info, known),
    ...(isEmbedding && { tags: ['embeddings'] }),
    ...(price !== undefined && { price }),
    ...(isFree && { price: 'free' }),
  }
  if (isFree) draft.leave(`price of ${name}`, 'free, as a server of your own; write price to charge for it')
  listUnread(draft, { host, given, info, where }, { hasPrice: price !== undefined, facts, read })
  draft.route(name, { provider, model: upstream, ...read }, facts)
}

interface Carried {
  readonly hasPrice: boolean
  readonly facts: Facts
  readonly read: Partial<RouteDraft>
}

function listUnread(
  draft: Draft,
  {
    host,
    given,
    info,
    where,
  }: Pick<Found, 'host' | 'given' | 'where'> & { readonly info: Readonly<Record<string, unknown>> },
  { hasPrice, facts, read }: Carried,
): void {
  const priced = hasPrice ? Object.keys(costs) : []
  const carried: readonly unknown[] = [
    ...['model', 'api_key', 'api_base', 'base_url', 'custom_llm_provider', ...priced],
    ...Object.values(host.settings ?? {}).map(([member]) => member),
    ...(read.weight === undefined ? [] : ['weight']),
    ...(read.priority === undefined ? [] : ['order']),
    ...(read.timeouts?.total_ms === undefined ? [] : ['timeout']),
    ...(read.timeouts?.first_event_ms === undefined ? [] : ['stream_timeout']),
    ...(facts.default_max_tokens === given.max_tokens ? ['max_tokens'] : []),
  ]
  const carriedInfo: readonly unknown[] = [
    ...['mode', 'base_model', 'id', 'description', ...priced],
    ...(facts.context_tokens === info.max_input_tokens ? ['max_input_tokens'] : []),
    ...(facts.max_output_tokens === info.max_output_tokens ? ['max_output_tokens'] : []),
  ]
  const why = (member: string, otherwise: string) =>
    member in costs
      ? 'a price needs input_cost_per_token and output_cost_per_token'
      : /(^|_)cost(_|$)/.test(member)
        ? 'add it to price of the model'
        : (reasons[member] ?? otherwise)
  const unread = (members: object, done: readonly unknown[]) =>
    Object.entries(members).flatMap(([member, value]) => (value === null || done.includes(member) ? [] : [member]))
  for (const member of unread(given, carried)) {
    draft.leave(`${where}.${member}`, why(member, 'no counterpart for one deployment'))
  }
  for (const member of unread(info, carriedInfo))
    draft.leave(`${where}.model_info.${member}`, why(member, 'no counterpart'))
}

function findProvider(draft: Draft, found: Found): string | undefined {
  const { prefix, host, given, upstream, where } = found
  const builtIn = builtInProviders.find(({ id }) => id === host.id)
  const endpoint = builtIn?.endpoints.find(({ models }) => models?.test(upstream) ?? true)
  const own = reference(given.api_base ?? given.base_url)
  const written = own === undefined ? undefined : withSuffix(own, host)
  const address = written === endpoint?.baseUrl ? undefined : written
  if (builtIn && host.settings && (given.api_key === undefined || host.dialect === undefined)) {
    if (address === undefined && given.api_key === undefined)
      return settledProvider(draft, builtIn, host.settings, found)
    draft.leave(where, `${builtIn.id} is called at its own address with its own credentials: add a provider by hand`)
    return undefined
  }
  const baseUrl = address ?? (host.settings ? regional(given) : (endpoint?.baseUrl ?? host.baseUrl))
  if (baseUrl === undefined) {
    draft.leave(where, 'it has no api_base: add a provider by hand')
    return undefined
  }
  const variable = keyVariable(draft, found, address === undefined && !host.settings ? builtIn?.variable : undefined)
  if (builtIn && address === undefined && variable === builtIn.variable && !host.settings) return builtIn.id
  const note = /\}\/./.test(baseUrl) ? { note: 'without a slash at its end' } : {}
  for (const [, name = ''] of baseUrl.matchAll(/\$\{(\w+)\}/g)) draft.needs(name, note)
  const dialect = host.dialect ?? (address === undefined ? endpoint?.dialect : undefined) ?? 'openai-chat'
  const key = variable !== undefined && { api_key: `\${${variable}}` }
  return draft.provider({ id: providerId(prefix), dialect, base_url: baseUrl, ...key })
}

/** Bedrock with an API key. */
function regional({ aws_region_name: region }: Parameters): string {
  return `https://bedrock-runtime.${reference(region) ?? `\${AWS_REGION_NAME}`}.amazonaws.com`
}

/** The built-in provider, unless an earlier deployment has given one of its variables another value. */
function settledProvider(
  draft: Draft,
  { id }: { readonly id: string },
  settings: NonNullable<Host['settings']>,
  { host, given, where }: Found,
): string | undefined {
  const wanted = Object.entries(settings).flatMap(([variable, [member, usual]]) => {
    const setting = given[member] ?? (usual === undefined ? undefined : `os.environ/${usual}`)
    return setting == null ? [] : [{ variable, member, ...sourceOf(setting, variable, `${member} of ${where}`) }]
  })
  const isOther = ({ variable, value, note }: (typeof wanted)[number]) => {
    const earlier = draft.variables.get(variable)
    return earlier !== undefined && (earlier.value !== value || (value === undefined && earlier.note !== note))
  }
  const other = wanted.find((each) => given[each.member] != null && isOther(each))
  if (other) {
    const advice = host.dialect === undefined ? '' : `: add a provider with dialect ${host.dialect} by hand`
    const fault = `${other.member} is not that of an earlier deployment`
    draft.leave(where, `${id} has one ${other.variable}, and ${fault}${advice}`)
    return undefined
  }
  for (const { variable, member, value, note } of wanted) {
    if (!draft.variables.has(variable))
      draft.needs(variable, { ...(value !== undefined && { value }), ...(note && { note }) })
    else if (given[member] == null && draft.variables.get(variable)?.note !== note) {
      draft.leave(`${where}.${member}`, `not given; ${variable} is that of an earlier deployment`)
    }
  }
  return id
}

/** Where the value of a variable comes from. Regions and projects are shown, credentials are not. */
function sourceOf(
  setting: unknown,
  variable: string,
  what: string,
): { readonly value?: string; readonly note?: string } {
  const text = typeof setting === 'object' ? JSON.stringify(setting) : String(setting)
  const name = /^os\.environ\/(\w+)$/.exec(text)?.[1]
  if (name !== undefined) return name === variable ? {} : { note: `the value of ${name}` }
  if (text.trimStart().startsWith('{')) return { note: `the path of a file with the ${what}` }
  const isShown = /^(aws_region_name|vertex_project|vertex_location) /.test(what)
  return { value: text, note: isShown ? `${text}, the ${what}` : `the ${what}` }
}

/** `os.environ/NAME` → `${NAME}`. */
function reference(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  return value.replace(/^os\.environ\/(\w+)$/, `\${$1}`)
}

/** The variable of the key: that of the file or, for a key in the file, `wanted` if it is not another one's. */
function keyVariable(draft: Draft, { prefix, host, given, where, named }: Found, wanted?: string): string | undefined {
  const key = typeof given.api_key === 'string' && given.api_key !== '' ? given.api_key : undefined
  const name = key === undefined ? host.variable : /^os\.environ\/(\w+)$/.exec(key)?.[1]
  if (key === undefined || name !== undefined) {
    if (name !== undefined) draft.needs(name)
    return name
  }
  const made = [...draft.variables].find(([, { value }]) => value === key)?.[0]
  if (made !== undefined) return made
  const isTaken = (variable: string) => named.has(variable) || draft.variables.has(variable)
  let variable = wanted === undefined || isTaken(wanted) ? variableName(`imported_${prefix}`) : wanted
  for (let number = 2; isTaken(variable); number++) variable = variableName(`imported_${prefix}_${number}`)
  draft.needs(variable, { value: key, note: `the key in ${where}` })
  return variable
}

function isOnThisMachine(address: unknown): boolean {
  const host = typeof address === 'string' ? URL.parse(address)?.hostname : undefined
  return host !== undefined && /^(localhost|127(\.\d+){3}|\[::1\]|host\.docker\.internal)$/.test(host)
}

/** `max_tokens` of the parameters is the cap of requests without one. */
function sizes(given: Parameters, info: Readonly<Record<string, unknown>>, known: Facts): Facts {
  const size = (value: unknown) => (Number.isInteger(value) && Number(value) > 0 ? Number(value) : undefined)
  const [context, output] = [size(info.max_input_tokens), size(info.max_output_tokens)]
  const cap =
    size(given.max_tokens) ?? (output && known.default_max_tokens && Math.min(output, known.default_max_tokens))
  return {
    ...(context !== undefined && { context_tokens: context }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...(cap !== undefined && { default_max_tokens: cap }),
  }
}

function withSuffix(address: string, { suffix = '', dialect }: Host): string {
  // Azure's addresses are also written as those of a call to one deployment.
  const plain = address
    .replace(/\?.*$/, '')
    .replace(/\/openai\/deployments\/.*$/, '')
    .replace(/\/+$/, '')
    .replace(/\/(chat\/completions|v1\/messages)$/, '')
  if (dialect === 'anthropic-messages') return plain.replace(/\/v1$/, '')
  return suffix !== '' && !plain.endsWith(suffix) ? plain + suffix : plain
}

function priceOf(given: Readonly<Record<string, unknown>>): Facts['price'] {
  const price = Object.fromEntries(
    Object.entries(costs).flatMap(([member, bucket]) => {
      const amount = perMillion(given[member])
      return amount === undefined ? [] : [[bucket, amount]]
    }),
  )
  const { input, output } = price
  if (input === undefined || output === undefined) return undefined
  return Number(input) === 0 && Number(output) === 0 ? 'free' : { ...price, input, output }
}

function sharing({ weight, order }: Parameters): Partial<RouteDraft> {
  return {
    ...(typeof order === 'number' && { priority: Math.max(0, Math.round(order)) }),
    ...(typeof weight === 'number' && weight > 0 && { weight }),
  }
}

function timeouts({ timeout, stream_timeout: first }: Parameters): Partial<RouteDraft> {
  const ms = (seconds: unknown) => Math.max(1, Math.round(Number(seconds) * 1000))
  const found = {
    ...(typeof timeout === 'number' && { total_ms: ms(timeout) }),
    ...(typeof first === 'number' && { first_event_ms: ms(first) }),
  }
  return Object.keys(found).length > 0 ? { timeouts: found } : {}
}
