// Renders sampling, output cap, end user, caching, service tier and output format as far as the target supports them.
// Omitting a default value needs no warning; any other omission does.

import {
  type Conversation,
  type Effort,
  type OutputFormat,
  placeOf,
  type RawJson,
} from '../../canonical/conversation.ts'
import { jsonObject, jsonString } from '../../canonical/json.ts'
import type { Target } from '../../canonical/translation.ts'
import { warnCacheOptions } from '../../request/cache-marks.ts'
import { refuseAt } from '../../request/fields.ts'
import { isStrictSchema } from '../../request/schema.ts'
import type { Rendering } from './context.ts'

type Member = readonly [name: string, value: RawJson | undefined]

/** The provider refuses a lower cap. */
const outputCapMin = 16

/** The dialect has only temperature and top_p. `effort` is the requested one, undefined = none. */
export function renderSampling({ sampling }: Conversation, effort: Effort | undefined, rendering: Rendering): Member[] {
  const { rules, warnings } = rendering
  const { temperature, topP, topK, frequencyPenalty, presencePenalty, seed, logitBias } = sampling
  const isReasoning = effort === undefined ? rules.thinksByDefault === true : effort !== 'none'
  const accepted = rules.sampling !== 'none' && !(rules.sampling === 'without-reasoning' && isReasoning)
  const drop = (name: string, value: unknown, usual?: number) => {
    if (value !== undefined && value !== usual) warnings.add(`${name}_dropped`, `/${name}`)
  }
  const take = (name: string, value: number | undefined, isAccepted: boolean): Member => {
    if (!isAccepted) drop(name, value, 1)
    return [name, value === undefined || !isAccepted ? undefined : String(value)]
  }
  drop('top_k', topK)
  drop('frequency_penalty', frequencyPenalty, 0)
  drop('presence_penalty', presencePenalty, 0)
  drop('seed', seed)
  drop('logit_bias', logitBias)
  const isEither = rules.temperatureOrTopP === true && temperature !== undefined
  return [
    take('temperature', accepted ? clamped(temperature, rendering) : temperature, accepted),
    take('top_p', topP, accepted && !isEither),
  ]
}

function clamped(temperature: number | undefined, { rules, warnings }: Rendering): number | undefined {
  const most = rules.temperatureMax ?? 2
  if (temperature === undefined || temperature <= most) return temperature
  warnings.add('temperature_clamped', '/temperature')
  return most
}

export function renderOutputCap(conversation: Conversation, target: Target, { warnings }: Rendering): Member {
  const name = 'max_output_tokens'
  const { outputCap } = conversation
  const place = placeOf(conversation, 'outputCap')
  if (outputCap === 0) return refuseAt(place, 'The output cap must be at least 1: this model cannot generate nothing.')
  const most = target.maxOutputTokens
  if (outputCap !== undefined && most !== undefined && outputCap > most) {
    warnings.add('max_tokens_clamped', place)
    return [name, String(most)]
  }
  if (outputCap !== undefined && outputCap < outputCapMin) {
    warnings.add('max_tokens_raised', place)
    return [name, String(outputCapMin)]
  }
  const cap = outputCap ?? target.defaultOutputCap
  return [name, cap === undefined ? undefined : String(cap)]
}

export function renderEndUser({ endUserId }: Conversation, { rules }: Rendering): Member {
  const name = rules.endUserIdName ?? 'safety_identifier'
  const most = rules.endUserIdMax ?? (name === 'user' ? 64 : 128)
  if (endUserId === undefined) return [name, undefined]
  // A hash is enough to distinguish users, and email addresses should not be shared.
  const isFit = endUserId.length <= most && !endUserId.includes('@')
  if (isFit) return [name, jsonString(endUserId)]
  return [name, jsonString(new Bun.CryptoHasher('sha256').update(endUserId).digest('hex').slice(0, most))]
}

export function renderCacheOptions(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const isSent = rules.cacheStyle === 'breakpoint'
  if (!isSent) warnCacheOptions(conversation, warnings)
  return ['prompt_cache_options', isSent ? conversation.promptCacheOptions?.written : undefined]
}

export function renderServiceTier(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const { serviceTier } = conversation
  // Hosts without tiers serve everything as standard, and some refuse the field.
  if (serviceTier === undefined || serviceTier === 'auto' || (serviceTier === 'standard' && !rules.fastTier)) {
    return ['service_tier', undefined]
  }
  if (!rules.fastTier) {
    warnings.add('service_tier_dropped', placeOf(conversation, 'serviceTier'))
    return ['service_tier', undefined]
  }
  const word = { standard: 'default', fast: 'fast', economy: 'flex' }[serviceTier]
  return ['service_tier', jsonString(word)]
}

// The output format and verbosity: the member `text`. If a host does not support a format, it is requested by
// instruction, with a warning.

export interface RenderedFormat {
  /** undefined = omit the member. */
  readonly text: RawJson | undefined
  /** Appended to the system prompt. */
  readonly instruction: string | undefined
  /** Any JSON object is requested; the provider refuses that unless the input mentions JSON. */
  readonly isAnyObject: boolean
}

const anyObject = '{"type":"json_object"}'

export function renderFormat(conversation: Conversation, rendering: Rendering): RenderedFormat {
  const { format, instruction } = formatOf(conversation, rendering)
  const { verbosity } = conversation
  const text = jsonObject([
    ['format', format],
    ['verbosity', verbosity && jsonString(verbosity)],
  ])
  return { text: text === '{}' ? undefined : text, instruction, isAnyObject: format === anyObject }
}

interface Format {
  readonly format?: RawJson
  readonly instruction?: string
}

function formatOf(conversation: Conversation, rendering: Rendering): Format {
  const { outputFormat } = conversation
  if (!outputFormat) return {}
  const { rules, warnings } = rendering
  const place = placeOf(conversation, 'outputFormat')
  const way = rules.jsonOutput ?? 'schema'
  if (outputFormat.kind === 'json-object') {
    if (way !== 'emulated') return { format: anyObject }
    warnings.add('json_object_emulated', place)
    return { instruction: 'Answer with a single JSON object.' }
  }
  if (way === 'schema') return { format: jsonSchema(outputFormat, rendering, place) }
  warnings.add('json_schema_emulated', place)
  const instruction = `Answer with a single JSON object that follows this JSON Schema:\n${outputFormat.schema}`
  return way === 'object' ? { format: anyObject, instruction } : { instruction }
}

function jsonSchema(
  { name, description, schema, strict }: OutputFormat & { kind: 'json-schema' },
  { warnings }: Rendering,
  place: string,
): RawJson {
  const canBeStrict = isStrictSchema(schema)
  if (strict && !canBeStrict) warnings.add('strict_dropped', place)
  return jsonObject([
    ['type', '"json_schema"'],
    ['name', jsonString(labelOf(name))],
    ['description', description === undefined ? undefined : jsonString(description)],
    ['schema', schema],
    ['strict', String((strict ?? true) && canBeStrict)],
  ])
}

/** A required label without meaning. */
function labelOf(name: string | undefined): string {
  return name?.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'output'
}
