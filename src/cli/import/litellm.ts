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
}

/** By the prefix of `model`. */
const hosts: Readonly<Record<string, Host>> = {
  openai: { id: 'openai', variable: 'OPENAI_API_KEY' },
  azure: { variable: 'AZURE_API_KEY', baseUrl: `\${AZURE_API_BASE}/openai/v1`, suffix: '/openai/v1' },
  azure_ai: { variable: 'AZURE_AI_API_KEY', baseUrl: `\${AZURE_AI_API_BASE}` },
  anthropic: { id: 'anthropic', variable: 'ANTHROPIC_API_KEY', dialect: 'anthropic-messages' },
  gemini: { id: 'google', variable: 'GEMINI_API_KEY', dialect: 'gemini', suffix: '/v1beta' },
  vertex_ai: { id: 'google-vertex', variable: 'GOOGLE_APPLICATION_CREDENTIALS' },
  bedrock: { id: 'amazon-bedrock', variable: 'AWS_ACCESS_KEY_ID', dialect: 'bedrock' },
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
  ollama: { baseUrl: 'http://localhost:11434/v1', suffix: '/v1' },
  ollama_chat: { baseUrl: 'http://localhost:11434/v1', suffix: '/v1' },
  hosted_vllm: {},
  lm_studio: {},
  custom_openai: {},
  openai_like: {},
  litellm_proxy: {},
}

const servedModes = ['chat', 'completion', 'responses', 'embedding']
/** Read below; every other member is listed. */
const readParameters = [
  ...['model', 'api_key', 'api_base', 'base_url', 'api_version', 'weight', 'order', 'timeout', 'stream_timeout'],
  ...['input_cost_per_token', 'output_cost_per_token', 'cache_read_input_token_cost'],
  ...['aws_access_key_id', 'aws_secret_access_key', 'aws_region_name', 'vertex_project', 'vertex_location'],
  ...['vertex_credentials', 'custom_llm_provider'],
]
/** Descriptions; not settings. */
const readInfo = ['mode', 'base_model', 'id', 'description', 'max_tokens', 'max_input_tokens', 'max_output_tokens']

const policies: Readonly<Record<string, string>> = {
  'latency-based-routing': 'fastest',
  'cost-based-routing': 'cheapest',
  'simple-shuffle': 'priority',
}

const reasons: Readonly<Record<string, string>> = {
  rpm: 'limits belong to keys, projects and workspaces: tollgate limits',
  tpm: 'limits belong to keys, projects and workspaces: tollgate limits',
  master_key: 'Tollgate generates its management token into the data folder',
  database_url: 'DATABASE_URL moves Tollgate to PostgreSQL; keys and spend of LiteLLM are not read',
  fallbacks: 'another model has another price; give the model more routes instead',
  drop_params: 'fields that a provider does not take are dropped with a warning, always',
  cache: 'responses are not cached',
  success_callback: 'use webhooks, traces or the request log',
  num_retries: 'set retries.attempts',
}

export function importLitellm(value: unknown): Draft {
  const { model_list, router_settings, litellm_settings, general_settings, environment_variables } =
    fileSchema.parse(value)
  const draft = new Draft()
  for (const [at, deployment] of (model_list ?? []).entries()) {
    importDeployment(draft, deployment.model_name, deployment, `model_list[${at}] (${deployment.model_name})`)
  }
  const { routing_strategy, model_group_alias, num_retries, ...router } = router_settings ?? {}
  for (const [name, target] of Object.entries((model_group_alias ?? {}) as Record<string, unknown>)) {
    const group = typeof target === 'string' ? target : (target as { readonly model?: string } | null)?.model
    const id = group === undefined ? undefined : (draft.aliases[group] ?? (draft.models.has(group) ? group : undefined))
    if (id === undefined) draft.leave(`router_settings.model_group_alias.${name}`, 'its model was not carried')
    else draft.alias(name, id)
  }
  const policy = policies[String(routing_strategy)]
  if (policy !== undefined) for (const model of draft.models.values()) if (policy !== 'priority') model.routing = policy
  if (routing_strategy !== undefined && policy === undefined) {
    draft.leave(`router_settings.routing_strategy ${routing_strategy}`, 'routes share traffic by weight instead')
  }
  if (typeof num_retries === 'number') draft.settings.retries = { attempts: Math.min(10, num_retries + 1) }
  for (const [section, members] of Object.entries({ router_settings: router, litellm_settings, general_settings })) {
    for (const name of Object.keys(members ?? {})) draft.leave(`${section}.${name}`, reasons[name] ?? 'no counterpart')
  }
  for (const name of Object.keys(environment_variables ?? {})) {
    draft.leave(`environment_variables.${name}`, 'set it where the gateway is started')
  }
  return draft
}

type Deployment = NonNullable<z.output<typeof fileSchema>['model_list']>[number]

function importDeployment(draft: Draft, name: string, { litellm_params, model_info }: Deployment, where: string): void {
  const given = litellm_params
  const named = typeof given.custom_llm_provider === 'string' ? `${given.custom_llm_provider}/` : ''
  const [prefix = '', ...rest] = (named !== '' && !given.model.startsWith(named) ? named : '')
    .concat(given.model)
    .split('/')
  const isBare = rest.length === 0
  const host = hosts[isBare ? 'openai' : prefix]
  const upstream = (isBare ? given.model : rest.join('/')).replace(/^(converse|invoke|responses)\//, '')
  const mode = String(model_info?.mode ?? 'chat')
  if (name.includes('*') || upstream.includes('*')) {
    return draft.leave(where, 'a wildcard; set the key of the provider, and its built-in models are there')
  }
  if (!servedModes.includes(mode)) return draft.leave(where, `mode ${mode} is not imported`)
  if (!host) return draft.leave(where, `Tollgate does not know how to call ${prefix}`)
  if (host.dialect === 'bedrock' && !/(^|\.)anthropic\./.test(upstream)) {
    return draft.leave(where, 'only Claude is imported from Bedrock')
  }
  const provider = findProvider(draft, isBare ? 'openai' : prefix, host, given, where)
  if (provider === undefined) return
  const unread = Object.keys(given).filter((member) => !readParameters.includes(member))
  for (const member of unread) draft.leave(`${where}.${member}`, reasons[member] ?? 'no counterpart for one deployment')
  for (const member of Object.keys(model_info ?? {})) {
    if (!readInfo.includes(member)) draft.leave(`${where}.model_info.${member}`, 'no counterpart')
  }
  const isEmbedding = mode === 'embedding'
  const price = priceOf({ ...(isEmbedding && { output_cost_per_token: 0 }), ...model_info, ...given })
  const builtIn = findBuiltIn(upstream, provider)
  const known = factsOf(builtIn?.id ?? String(model_info?.base_model ?? upstream))
  const facts: Facts = isEmbedding ? { ...known, tags: ['embeddings'] } : known
  const route: RouteDraft = { provider, model: upstream, ...sharing(given), ...timeouts(given) }
  draft.route(name, route, price ? { ...facts, price } : facts)
}

function findProvider(draft: Draft, prefix: string, host: Host, given: Parameters, where: string): string | undefined {
  const address = reference(given.api_base ?? given.base_url)
  const key = keyReference(draft, prefix, host, given, where)
  const builtIn = builtInProviders.find(({ id }) => id === host.id)
  if (builtIn && address === undefined) {
    const names = draft.variables.get(builtIn.variable)
    const from = key === undefined ? undefined : /^\$\{(.*)\}$/.exec(key)?.[1]
    const isFirst = names === undefined || names.note === `the value of ${from}` || from === builtIn.variable
    if (isFirst) {
      const renamed = from !== undefined && from !== builtIn.variable ? { note: `the value of ${from}` } : {}
      const value = from === undefined ? undefined : draft.variables.get(from)?.value
      if (from !== undefined && from !== builtIn.variable) draft.variables.delete(from)
      draft.needs(builtIn.variable, { ...renamed, ...(value !== undefined && { value }) })
      for (const name of builtIn.needs ?? []) draft.needs(name)
      return builtIn.id
    }
  }
  const baseUrl = address === undefined ? (builtIn?.endpoints[0]?.baseUrl ?? host.baseUrl) : withSuffix(address, host)
  if (baseUrl === undefined || baseUrl.includes('{AWS') || baseUrl.includes('{HOST')) {
    draft.leave(where, 'it has no api_base, or a second account of this provider: add a provider by hand')
    return undefined
  }
  for (const [, name = ''] of baseUrl.matchAll(/\$\{(\w+)\}/g)) draft.needs(name)
  const dialect = host.dialect ?? 'openai-chat'
  return draft.provider({ id: providerId(prefix), dialect, base_url: baseUrl, ...(key && { api_key: key }) })
}

/** `os.environ/NAME` → `${NAME}`. */
function reference(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  return value.replace(/^os\.environ\/(\w+)$/, `\${$1}`)
}

function keyReference(draft: Draft, prefix: string, host: Host, given: Parameters, where: string): string | undefined {
  const key = reference(given.api_key)
  if (key === undefined && host.variable === undefined) return undefined
  const name = key === undefined ? host.variable : /^\$\{(\w+)\}$/.exec(key)?.[1]
  if (name !== undefined) {
    draft.needs(name)
    return `\${${name}}`
  }
  const made = [...draft.variables].find(([, { value }]) => value === key)?.[0]
  let variable = made ?? variableName(`imported_${prefix}`)
  for (let number = 2; made === undefined && draft.variables.has(variable); number++) {
    variable = variableName(`imported_${prefix}_${number}`)
  }
  draft.needs(variable, { value: key ?? '', note: `the key in ${where}` })
  return `\${${variable}}`
}

function withSuffix(address: string, { suffix = '', dialect }: Host): string {
  const plain = address.replace(/\/+$/, '').replace(/\/(chat\/completions|v1\/messages)$/, '')
  if (dialect === 'anthropic-messages') return plain.replace(/\/v1$/, '')
  return suffix !== '' && !plain.endsWith(suffix) ? plain + suffix : plain
}

function priceOf(given: Readonly<Record<string, unknown>>) {
  const [input, output] = [perMillion(given.input_cost_per_token), perMillion(given.output_cost_per_token)]
  const cached = perMillion(given.cache_read_input_token_cost)
  if (input === undefined || output === undefined) return undefined
  if (Number(input) === 0 && Number(output) === 0) return 'free' as const
  return { input, output, ...(cached !== undefined && { cache_read: cached }) }
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
