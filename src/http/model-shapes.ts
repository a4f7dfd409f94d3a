// Facts about models, in the shapes that clients read: OpenRouter's fields, which many agents understand,
// and LiteLLM's /model/info, from which Cline and Kilo Code take context window and prices. Only what the catalog knows.

import type { Model } from '../catalog/model.ts'
import { hasRow, hasTier, type Price, type Rates, ratesAt } from '../catalog/price.ts'
import { formatPico, type Pico } from '../kernel/money.ts'
import { askedTierNames, type Tier, unitBuckets } from '../kernel/usage.ts'
import type { OfferedModel } from '../routing/plan.ts'

/** USD per token, as a decimal string. */
function perToken(rate: Pico | undefined): string {
  return formatPico(rate ?? 0n).replace(/\.?0+$/, '')
}

/** Below the first step of a price that depends on the length of the prompt. */
function listedRates(price: Price): Rates {
  return ratesAt(price, 0)
}

function inputModalities({ tags, price }: Pick<OfferedModel, 'tags' | 'price'>): readonly string[] {
  return ['text', ...(tags.includes('vision') ? ['image'] : []), ...(hasRow(price, 'audio_input') ? ['audio'] : [])]
}

/** Every model takes these; a provider that does not is sent less, with a warning. */
const commonParameters = ['max_tokens', 'stop', 'temperature', 'top_p']

const taggedParameters: Readonly<Partial<Record<Model['tags'][number], readonly string[]>>> = {
  tools: ['tools', 'tool_choice', 'parallel_tool_calls'],
  reasoning: ['reasoning', 'reasoning_effort', 'include_reasoning'],
  json: ['response_format', 'structured_outputs'],
}

function isEmbedding(tags: Model['tags']): boolean {
  return tags.includes('embeddings')
}

function supportedParameters(tags: Model['tags']): readonly string[] {
  if (isEmbedding(tags)) return ['dimensions', 'encoding_format']
  return [...commonParameters, ...tags.flatMap((tag) => taggedParameters[tag] ?? [])].sort()
}

/** Epoch milliseconds: its release or, if that is not known, since when this gateway has had its price. */
export function createdAt({ released, pricedAt }: OfferedModel): number {
  return released === undefined ? (pricedAt ?? 0) : Date.parse(released)
}

/** https://openrouter.ai/docs/api/api-reference/models/get-models (2026-11). */
export function openRouterFields(model: OfferedModel): object {
  const { name, description, contextTokens, maxOutputTokens, tags, price } = model
  const rates = listedRates(price)
  const modalities = inputModalities(model)
  const output = isEmbedding(tags) ? 'embeddings' : 'text'
  const optional = (key: string, rate: Pico | undefined) => (rate === undefined ? {} : { [key]: perToken(rate) })
  return {
    name,
    ...(description !== undefined && { description }),
    context_length: contextTokens ?? null,
    max_output_tokens: maxOutputTokens ?? null,
    architecture: {
      modality: `${modalities.join('+')}->${output}`,
      input_modalities: modalities,
      output_modalities: [output],
    },
    pricing: {
      prompt: perToken(rates.input),
      completion: perToken(rates.output),
      ...optional('input_cache_read', rates.cache_read),
      ...optional('input_cache_write', rates.cache_write),
      ...Object.assign({}, ...unitBuckets.map(({ bucket }) => optional(bucket, rates[bucket]))),
      ...optional('audio', rates.audio_input),
      ...(askedTiers(price).length > 0 && { service_tiers: tierPricing(price) }),
    },
    top_provider: { context_length: contextTokens ?? null, max_completion_tokens: maxOutputTokens ?? null },
    supported_parameters: supportedParameters(tags),
  }
}

/** With a price, and a name by which callers can ask for them. */
function askedTiers(price: Price): readonly Tier[] {
  return askedTierNames.filter((tier) => hasTier(price, tier))
}

/** Our addition: the same members for each of these tiers. */
function tierPricing(price: Price): object {
  const members = { prompt: 'input', completion: 'output', input_cache_read: 'cache_read' } as const
  return Object.fromEntries(
    askedTiers(price).map((tier) => {
      const rates = ratesAt(price, 0, { tier })
      return [
        tier,
        Object.fromEntries(Object.entries(members).map(([name, bucket]) => [name, perToken(rates[bucket])])),
      ]
    }),
  )
}

/** https://docs.litellm.ai/docs/proxy/model_management (2026-11). Its prices are numbers. */
export function liteLlmItem(model: OfferedModel): object {
  const { id, ownedBy, contextTokens, maxOutputTokens, tags, price } = model
  const rates = listedRates(price)
  const cost = (rate: Pico | undefined) => Number(perToken(rate))
  const optional = (key: string, rate: Pico | undefined) => (rate === undefined ? {} : { [key]: cost(rate) })
  return {
    model_name: id,
    litellm_params: { model: id },
    model_info: {
      id,
      key: id,
      db_model: false,
      mode: isEmbedding(tags) ? 'embedding' : 'chat',
      litellm_provider: ownedBy,
      max_tokens: maxOutputTokens ?? null,
      max_input_tokens: contextTokens ?? null,
      max_output_tokens: maxOutputTokens ?? null,
      input_cost_per_token: cost(rates.input),
      output_cost_per_token: cost(rates.output),
      ...optional('cache_read_input_token_cost', rates.cache_read),
      ...optional('cache_creation_input_token_cost', rates.cache_write),
      ...Object.assign(
        {},
        ...askedTiers(price).map((tier) => ({
          [`input_cost_per_token_${tier}`]: cost(ratesAt(price, 0, { tier }).input),
          [`output_cost_per_token_${tier}`]: cost(ratesAt(price, 0, { tier }).output),
        })),
      ),
      supports_system_messages: true,
      supports_vision: tags.includes('vision'),
      supports_function_calling: tags.includes('tools'),
      supports_tool_choice: tags.includes('tools'),
      supports_prompt_caching: tags.includes('caching'),
      supports_reasoning: tags.includes('reasoning'),
      supports_response_schema: tags.includes('json'),
      supported_openai_params: supportedParameters(tags),
    },
  }
}

/** https://ai.google.dev/api/models#Model (2026-11). */
export function googleItem({ id, name, contextTokens, maxOutputTokens, tags }: OfferedModel): object {
  const generates = ['generateContent', 'streamGenerateContent', 'countTokens']
  return {
    name: `models/${id}`,
    baseModelId: id,
    version: '1',
    displayName: name,
    ...(contextTokens !== undefined && { inputTokenLimit: contextTokens }),
    ...(maxOutputTokens !== undefined && { outputTokenLimit: maxOutputTokens }),
    supportedGenerationMethods: isEmbedding(tags) ? ['embedContent', 'batchEmbedContents'] : generates,
    thinking: tags.includes('reasoning'),
  }
}
