// Renders sampling, stop sequences, end user, tier and output format as far as the target supports them. Most models of
// this dialect accept no sampling settings, or none while they reason. Omitting a default value needs no warning.

import { type Conversation, placeOf, type RawJson, type Sampling } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { warnCacheOptions } from '../../request/cache-marks.ts'
import { refuseAt } from '../../request/fields.ts'
import { toolSchema } from '../../request/schema.ts'
import type { WarningList } from '../../request/warnings.ts'
import { jsonTool, type ToolContext, type WireTool } from './render-tools.ts'
import { subsetSchema } from './schema.ts'

const temperatureUsualMax = 1

export function renderSampling(
  sampling: Sampling,
  { rules, reasoning }: { rules: TargetRules; reasoning: boolean },
  warnings: WarningList,
): (readonly [name: string, value: RawJson])[] {
  warnForeign(sampling, warnings)
  const taken = rules.sampling !== 'none' && !reasoning
  const { temperature, topP, topK } = sampling
  const members: [string, RawJson][] = []
  if (temperature !== undefined) {
    const sent = Math.min(Math.max(temperature, 0), rules.temperatureMax ?? temperatureUsualMax)
    if (taken) members.push(['temperature', String(sent)])
    if (taken && sent !== temperature) warnings.add('temperature_clamped', '/temperature')
    if (!taken && temperature !== 1) warnings.add('temperature_dropped', '/temperature')
  }
  if (topP !== undefined) {
    if (taken && !(rules.temperatureOrTopP && temperature !== undefined)) members.push(['top_p', String(topP)])
    else if (topP < 0.99) warnings.add('top_p_dropped', '/top_p')
  }
  if (topK !== undefined) {
    if (taken && rules.topK !== false) members.push(['top_k', String(topK)])
    else warnings.add('top_k_dropped', '/top_k')
  }
  return members
}

/** Warns about settings without a field in this dialect. */
function warnForeign(sampling: Sampling, warnings: WarningList): void {
  const { frequencyPenalty, presencePenalty, seed, logitBias } = sampling
  if (frequencyPenalty) warnings.add('frequency_penalty_dropped', '/frequency_penalty')
  if (presencePenalty) warnings.add('presence_penalty_dropped', '/presence_penalty')
  if (seed !== undefined) warnings.add('seed_dropped', '/seed')
  if (logitBias !== undefined && !/^\{\s*\}$/.test(logitBias)) warnings.add('logit_bias_dropped', '/logit_bias')
}

// Stop sequences, end user and speed, and warnings for hints without an equivalent.

const fastBeta = 'fast-mode-2026-02-01'
/** The documented limit of `user_id` (2026-11). */
const userIdUsualMax = 256

export interface Serving {
  readonly members: readonly (readonly [name: string, value: RawJson | undefined])[]
  readonly betas: readonly string[]
}

export function renderServing(conversation: Conversation, rules: TargetRules, warnings: WarningList): Serving {
  const { serviceTier, endUserId } = conversation
  const fast = serviceTier === 'fast' && rules.fastTier === true
  if (serviceTier === 'economy' || (serviceTier === 'fast' && !fast)) {
    warnings.add('service_tier_dropped', placeOf(conversation, 'serviceTier'))
  }
  // Only marked blocks are cached, unless the host has its own way.
  if (rules.cacheStyle !== undefined && rules.cacheStyle !== 'cache-control') warnCacheOptions(conversation, warnings)
  // A host without tiers serves everything as standard and refuses the field.
  const tiers: Partial<Record<string, RawJson>> =
    rules.fastTier === false ? {} : { auto: '"auto"', standard: '"standard_only"' }
  const tier = serviceTier && tiers[serviceTier]
  const userId = endUserId && shortened(endUserId, rules.endUserIdMax ?? userIdUsualMax)
  return {
    members: [
      ['metadata', userId ? jsonObject({ user_id: jsonString(userId) }) : undefined],
      ['service_tier', tier],
      ['speed', fast ? '"fast"' : undefined],
    ],
    betas: fast ? [fastBeta] : [],
  }
}

/** Replaces a long id with its hash, which still distinguishes users. */
function shortened(id: string, max: number): string {
  return id.length <= max ? id : new Bun.CryptoHasher('sha256').update(id).digest('hex').slice(0, max)
}

export interface WireStop {
  readonly json: RawJson | undefined
  /** All sequences, if the target cannot match them itself. */
  readonly matched: readonly string[]
}

/** The provider refuses blank sequences. */
export function renderStop(conversation: Conversation, { stopMax }: TargetRules, warnings: WarningList): WireStop {
  const kept = conversation.stop.filter((sequence) => sequence.trim() !== '')
  if (kept.length < conversation.stop.length) warnings.add('stop_dropped', placeOf(conversation, 'stop'))
  if (kept.length === 0) return { json: undefined, matched: [] }
  const sent = stopMax === undefined ? kept : kept.slice(0, stopMax)
  return {
    json: sent.length > 0 ? jsonArray(sent.map(jsonString)) : undefined,
    matched: sent.length < kept.length ? kept : [],
  }
}

export function warnHints({ verbosity, promptCacheKey }: Conversation, warnings: WarningList): void {
  if (verbosity !== undefined && verbosity !== 'medium') warnings.add('verbosity_dropped', '/verbosity')
  if (promptCacheKey) warnings.add('prompt_cache_key_dropped', '/prompt_cache_key')
}

// The output format: a schema that the provider enforces, or a tool of ours that the model must call with the answer.

export interface WireOutput {
  readonly format?: RawJson
  readonly tool?: WireTool
}

/**
 * A native schema counts against the budget of strict tools, so it is chosen before them. `mustCallOwn`: the model must
 * call one of several tools of the caller's, and could call ours instead.
 */
export function chooseOutput(
  conversation: Conversation,
  context: ToolContext,
  { mustCallOwn }: { readonly mustCallOwn: boolean },
): WireOutput {
  const { rules, warnings } = context
  const format = conversation.outputFormat
  if (format?.kind !== 'json-schema') return {}
  const place = placeOf(conversation, 'outputFormat')
  const byTool = () => ({ tool: jsonTool(format, place, context) })
  if (rules.jsonOutput !== undefined && rules.jsonOutput !== 'schema') {
    if (rules.forcedToolChoice === false) refuseAt(place, 'This model cannot be held to a JSON schema.')
    return byTool()
  }
  const result = subsetSchema(format.schema, context.merges)
  const isTaken = 'schema' in result && (!result.tightened || mustCallOwn) && context.strictBudget.take(result.schema)
  // A tool accepts objects with any fields and recursive schemas, and is not compiled by the provider.
  const canBeTool = !isTaken && rules.forcedToolChoice !== false && !('why' in result && !result.isValid)
  const input = canBeTool ? toolSchema(format.schema) : undefined
  if (typeof input === 'object') {
    if (format.strict) warnings.add('strict_dropped', place)
    if (input.folded) warnings.add('output_schema_loosened', place)
    return byTool()
  }
  if ('why' in result) return refuseAt(place, `The schema of the output format cannot be used: ${result.why}.`)
  if (format.description) warnings.add('description_dropped', place)
  if (result.loosened) warnings.add('output_schema_loosened', place)
  if (result.tightened) warnings.add('output_schema_tightened', place)
  return {
    format: jsonObject({ type: '"json_schema"', schema: result.schema }),
  }
}

export function writeOutputConfig(effort: string | undefined, { format }: WireOutput): RawJson | undefined {
  if (effort === undefined && format === undefined) return undefined
  return jsonObject({ effort: effort === undefined ? undefined : jsonString(effort), format })
}
