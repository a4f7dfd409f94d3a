// Renders sampling, service tier and output format as far as the target supports them.
// Omitting a default value needs no warning; any other omission does.

import { type Conversation, type OutputFormat, placeOf, type RawJson } from '../../canonical/conversation.ts'
import { warnCacheOptions } from '../../request/cache-marks.ts'
import { refuseAt } from '../../request/fields.ts'
import { clampedTemperature, type Member, schemaInstruction } from '../../request/settings.ts'
import { isTurnedOff } from '../reasoning.ts'
import { type Rendering, thinksByLevel } from './context.ts'
import type { HiddenTool } from './render-tools.ts'
import { subsetSchema, toolParameters } from './schema.ts'

/** The provider uses 32-bit integers. */
const seedMax = 2 ** 31 - 1

export function renderSampling({ sampling, reasoning }: Conversation, { rules, warnings }: Rendering): Member[] {
  const thinks = reasoning ? !isTurnedOff(reasoning) : rules.thinksByDefault !== false
  const accepted = rules.sampling !== 'none' && !(rules.sampling === 'without-reasoning' && thinks)
  const take = (
    names: readonly [sent: string, field: string],
    value: number | undefined,
    isTaken: boolean,
    usual?: number,
  ) => {
    const [sent, field] = names
    if (value !== undefined && !isTaken && value !== usual) warnings.add(`${field}_dropped`, `/${field}`)
    return [sent, value === undefined || !isTaken ? undefined : String(value)] as const
  }
  const { temperature, topP, topK, presencePenalty, frequencyPenalty, seed, logitBias } = sampling
  const sent = accepted ? clampedTemperature(temperature, { rules, warnings }) : temperature
  if (logitBias !== undefined && !/^\{\s*\}$/.test(logitBias)) warnings.add('logit_bias_dropped', '/logit_bias')
  const penalties = accepted && rules.penalties !== false
  const isSeed = seed !== undefined && Number.isInteger(seed) && Math.abs(seed) <= seedMax
  return [
    take(['temperature', 'temperature'], sent, accepted, 1),
    take(['topP', 'top_p'], topP, accepted && !(rules.temperatureOrTopP && temperature !== undefined), 1),
    take(['topK', 'top_k'], topK, accepted && rules.topK !== false),
    take(['presencePenalty', 'presence_penalty'], presencePenalty, penalties, 0),
    take(['frequencyPenalty', 'frequency_penalty'], frequencyPenalty, penalties, 0),
    take(['seed', 'seed'], seed, isSeed && rules.seed !== false),
  ]
}

export function renderServiceTier(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const { serviceTier } = conversation
  if (serviceTier === 'fast' && rules.fastTier) return ['serviceTier', '"priority"']
  if (serviceTier === 'economy' && rules.economyTier) return ['serviceTier', '"flex"']
  if (serviceTier === 'fast' || serviceTier === 'economy') {
    warnings.add('service_tier_dropped', placeOf(conversation, 'serviceTier'))
  }
  // Standard is the default.
  return ['serviceTier', undefined]
}

/** Warns about hints that the provider has no field for. */
export function warnHints(conversation: Conversation, { warnings }: Rendering): void {
  const { verbosity, promptCacheKey, endUserId } = conversation
  if (verbosity !== undefined && verbosity !== 'medium') warnings.add('verbosity_dropped', '/verbosity')
  if (promptCacheKey) warnings.add('prompt_cache_key_dropped', '/prompt_cache_key')
  warnCacheOptions(conversation, warnings)
  if (endUserId) warnings.add('end_user_id_dropped', placeOf(conversation, 'endUserId'))
}

// The output format: native where the target supports it, otherwise through a hidden function or an instruction.

export interface RenderedFormat {
  /** Members of generationConfig. */
  readonly members: readonly (readonly [name: string, value: RawJson | undefined])[]
  readonly hiddenTool?: HiddenTool
  /** Appended to the system instruction. */
  readonly instruction?: string
}

const json = ['responseMimeType', '"application/json"'] as const

export function renderFormat(conversation: Conversation, rendering: Rendering): RenderedFormat {
  const { outputFormat, tools } = conversation
  if (!outputFormat) return { members: [] }
  const { rules, warnings } = rendering
  const place = placeOf(conversation, 'outputFormat')
  // Older models refuse JSON output together with functions.
  const isEmulated = rules.jsonOutput === 'emulated' || (tools.length > 0 && !thinksByLevel(rules))
  if (isEmulated) return { members: [], hiddenTool: hiddenTool(outputFormat, rendering, place) }
  if (outputFormat.kind === 'json-object') return { members: [json] }
  if (outputFormat.description) warnings.add('description_dropped', place)
  if (rules.jsonOutput === 'object') {
    warnings.add('json_schema_emulated', place)
    return { members: [json], instruction: schemaInstruction(outputFormat) }
  }
  const result = subsetSchema(outputFormat.schema, rendering.schemas)
  if (typeof result === 'string') return refuseAt(place, `The schema of the output format cannot be used: ${result}.`)
  if (result.loosened) warnings.add('output_schema_loosened', place)
  return { members: [json, ['responseJsonSchema', result.schema]] }
}

function hiddenTool(format: OutputFormat, { rules, names, warnings, schemas }: Rendering, place: string): HiddenTool {
  if (rules.forcedToolChoice === false) return refuseAt(place, 'This model cannot be held to a JSON form.')
  const isSchema = format.kind === 'json-schema'
  const parameters = toolParameters(isSchema ? format.schema : '{"type":"object"}', schemas)
  if (typeof parameters === 'string') {
    return refuseAt(place, `The output format cannot be used with this model: ${parameters}.`)
  }
  if (parameters.loosened) warnings.add('output_schema_loosened', place)
  const description =
    (isSchema ? format.description : undefined) || 'Call this to answer; its arguments are the answer.'
  return { name: names.unused('json'), parameters: parameters.schema ?? '{"type":"object"}', description }
}
