// Renders sampling, output cap, reasoning effort, end user, caching, service tier and output format as far as the
// target supports them. Omitting a default value needs no warning; any other omission does.

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
import { fitEffort } from '../../request/reasoning.ts'
import { isStrictSchema } from '../../request/schema.ts'
import type { Rendering } from './context.ts'
import type { HiddenTool } from './render-tools.ts'

type Member = readonly [name: string, value: RawJson | undefined]

/** The effort to send; undefined = none. `offersTools`: the request has tools, the caller's or ours. */
export function renderEffort(
  conversation: Conversation,
  offersTools: boolean,
  rendering: Rendering,
): Effort | undefined {
  const { rules, warnings } = rendering
  const wanted = fitEffort(conversation, rendering)
  if (!offersTools || rules.toolsWithReasoning !== false || wanted === 'none') return wanted
  if (wanted === undefined && !rules.thinksByDefault) return undefined
  // The host refuses tools while the model reasons, and the caller needs the tools more.
  warnings.add('reasoning_dropped', wanted === undefined ? '/tools' : placeOf(conversation, 'reasoning'))
  return 'none'
}

export function renderSampling({ sampling }: Conversation, effort: Effort | undefined, rendering: Rendering): Member[] {
  const { rules, warnings } = rendering
  const reasons = effort === undefined ? rules.thinksByDefault === true : effort !== 'none'
  const accepted = rules.sampling !== 'none' && !(rules.sampling === 'without-reasoning' && reasons)
  const both = sampling.temperature !== undefined && sampling.topP !== undefined
  const take = (name: string, value: number | undefined, isAccepted: boolean, usual?: number): Member => {
    if (value === undefined || isAccepted) return [name, value === undefined ? undefined : String(value)]
    if (value !== usual) warnings.add(`${name}_dropped`, `/${name}`)
    return [name, undefined]
  }
  const bias = sampling.logitBias
  const takesBias = accepted && rules.logitBias !== false
  if (bias !== undefined && !takesBias) warnings.add('logit_bias_dropped', '/logit_bias')
  return [
    take('temperature', clampedTemperature(sampling.temperature, accepted, rendering), accepted, 1),
    take('top_p', sampling.topP, accepted && !(both && rules.temperatureOrTopP), 1),
    take('top_k', sampling.topK, accepted && rules.topK === true),
    take('frequency_penalty', sampling.frequencyPenalty, accepted && rules.penalties !== false, 0),
    take('presence_penalty', sampling.presencePenalty, accepted && rules.penalties !== false, 0),
    take('seed', sampling.seed, rules.seed !== false),
    ['logit_bias', takesBias ? bias : undefined],
  ]
}

function clampedTemperature(
  temperature: number | undefined,
  accepted: boolean,
  { rules, warnings }: Rendering,
): number | undefined {
  const most = rules.temperatureMax ?? 2
  if (temperature === undefined || temperature <= most || !accepted) return temperature
  warnings.add('temperature_clamped', '/temperature')
  return most
}

export function renderOutputCap({ outputCap, places }: Conversation, target: Target, { warnings }: Rendering): Member {
  const name = target.rules.outputCapName ?? 'max_tokens'
  const place = places?.outputCap ?? '/max_tokens'
  if (outputCap === 0) return refuseAt(place, 'The output cap must be at least 1: this model cannot generate nothing.')
  const most = target.maxOutputTokens
  if (outputCap !== undefined && most !== undefined && outputCap > most) {
    warnings.add('max_tokens_clamped', place)
    return [name, String(most)]
  }
  const cap = outputCap ?? target.defaultOutputCap
  return [name, cap === undefined ? undefined : String(cap)]
}

export function renderEndUser(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const { endUserId } = conversation
  const name = rules.endUserIdName ?? 'user'
  const most = rules.endUserIdMax ?? (name === 'user' ? 64 : 128)
  if (endUserId === undefined) return [name, undefined]
  if (rules.endUserId === false) {
    warnings.add('end_user_id_dropped', placeOf(conversation, 'endUserId'))
    return [name, undefined]
  }
  // A hash is enough to distinguish users, and email addresses should not be shared.
  const isFit = endUserId.length <= most && !endUserId.includes('@')
  if (isFit) return [name, jsonString(endUserId)]
  return [name, jsonString(new Bun.CryptoHasher('sha256').update(endUserId).digest('hex').slice(0, most))]
}

/** Hosts with `cache_control` cache only what is marked; others cache implicitly. */
export function renderCacheOptions(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const isSent = rules.cacheStyle === 'breakpoint'
  if (!isSent && rules.cacheStyle !== 'cache-control') warnCacheOptions(conversation, warnings)
  return ['prompt_cache_options', isSent ? conversation.promptCacheOptions?.written : undefined]
}

export function renderServiceTier({ serviceTier, places }: Conversation, { rules, warnings }: Rendering): Member {
  // Hosts without tiers serve everything as standard, and some refuse the field.
  if (serviceTier === undefined || serviceTier === 'auto' || (serviceTier === 'standard' && !rules.fastTier)) {
    return ['service_tier', undefined]
  }
  if (!rules.fastTier) {
    warnings.add('service_tier_dropped', places?.serviceTier ?? '/service_tier')
    return ['service_tier', undefined]
  }
  const word = { standard: 'default', fast: 'fast', economy: 'flex' }[serviceTier]
  return ['service_tier', jsonString(word)]
}

// The output format: native where the target supports it, otherwise through a hidden tool or an instruction.

export interface RenderedFormat {
  readonly responseFormat?: RawJson
  readonly hiddenTool?: HiddenTool
  /** Appended to the system prompt. */
  readonly instruction?: string
}

const anyObject = '{"type":"json_object"}'

export function renderFormat({ outputFormat, places }: Conversation, rendering: Rendering): RenderedFormat {
  if (!outputFormat) return {}
  const { rules, warnings, names } = rendering
  const place = places?.outputFormat ?? '/response_format'
  const way = rules.jsonOutput ?? 'schema'
  if (way === 'emulated') {
    if (rules.forcedToolChoice === false) return refuseAt(place, 'This model cannot be held to a JSON form.')
    const schema = outputFormat.kind === 'json-schema' ? outputFormat.schema : '{"type":"object"}'
    return { hiddenTool: { name: names.unused('json_output'), schema } }
  }
  if (outputFormat.kind === 'json-object') return { responseFormat: anyObject }
  if (way === 'schema') return { responseFormat: jsonSchema(outputFormat, rendering, place) }
  warnings.add('json_schema_emulated', place)
  const instruction = `Answer with a single JSON object that follows this JSON Schema:\n${outputFormat.schema}`
  return { responseFormat: anyObject, instruction }
}

function jsonSchema(
  { name, description, schema, strict }: OutputFormat & { kind: 'json-schema' },
  { warnings }: Rendering,
  place: string,
): RawJson {
  const canBeStrict = isStrictSchema(schema)
  if (strict && !canBeStrict) warnings.add('strict_dropped', place)
  const wanted = jsonObject([
    ['name', jsonString(labelOf(name))],
    ['description', description === undefined ? undefined : jsonString(description)],
    ['schema', schema],
    ['strict', String((strict ?? true) && canBeStrict)],
  ])
  return jsonObject([
    ['type', '"json_schema"'],
    ['json_schema', wanted],
  ])
}

/** A required label without meaning. */
function labelOf(name: string | undefined): string {
  return name?.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'output'
}
