// Renders sampling, stop sequences, end user, tier and output format as far as the target supports them. Most models of
// this dialect accept no sampling settings, or none while they reason. Omitting a default value needs no warning.

import { type Conversation, placeOf, type RawJson, type Sampling } from '../../canonical/conversation.ts'
import { filledArray, jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { warnCacheOptions } from '../../request/cache-marks.ts'
import { refuseAt } from '../../request/fields.ts'
import { toolSchema } from '../../request/schema.ts'
import { hashedId, renderSampling, type SamplingRow } from '../../request/settings.ts'
import type { WarningList } from '../../request/warnings.ts'
import { jsonTool, type ToolContext, type WireTool } from './render-tools.ts'
import { subsetSchema } from './schema.ts'

const samplingRows: readonly SamplingRow[] = [
  { setting: 'frequencyPenalty' },
  { setting: 'presencePenalty' },
  { setting: 'seed' },
  { setting: 'logitBias' },
  { setting: 'temperature', member: 'temperature' },
  // From 0.99 on, top_p makes no difference here.
  { setting: 'topP', member: 'top_p', isDefault: (value) => Number(value) >= 0.99 },
  { setting: 'topK', member: 'top_k', when: ({ topK }) => topK !== false },
]

export function samplingMembers(
  sampling: Sampling,
  { rules, reasoning }: { rules: TargetRules; reasoning: boolean },
  warnings: WarningList,
): Members {
  const isAccepted = rules.sampling !== 'none' && !reasoning
  return renderSampling(sampling, samplingRows, { rules, warnings, isAccepted, temperatureMax: 1 })
}

// Stop sequences, end user and speed, and warnings for hints without an equivalent.

const fastBeta = 'fast-mode-2026-02-01'
/** The documented limit of `user_id` (2026-11). */
const userIdUsualMax = 256

export interface Serving {
  readonly members: Members
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
  const most = rules.endUserIdMax ?? userIdUsualMax
  const userId = endUserId && endUserId.length > most ? hashedId(endUserId, most) : endUserId
  return {
    members: {
      metadata: userId ? jsonObject({ user_id: jsonString(userId) }) : undefined,
      service_tier: tier,
      speed: fast ? '"fast"' : undefined,
    },
    betas: fast ? [fastBeta] : [],
  }
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
  const sent = kept.slice(0, stopMax)
  return { json: filledArray(sent.map(jsonString)), matched: sent.length < kept.length ? kept : [] }
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
