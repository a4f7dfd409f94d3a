// Renders sampling, service tier and output format as far as the target supports them.
// Omitting a default value needs no warning; any other omission does.

import { type Conversation, type OutputFormat, placeOf, type RawJson } from '../../canonical/conversation.ts'
import type { Members } from '../../canonical/json.ts'
import { refuseAt } from '../../request/fields.ts'
import { acceptsSampling, renderSampling, type SamplingRow, schemaInstruction } from '../../request/settings.ts'
import { isTurnedOff } from '../reasoning.ts'
import { type Rendering, thinksByLevel } from './context.ts'
import type { HiddenTool } from './render-tools.ts'
import { subsetSchema, toolParameters } from './schema.ts'

/** The provider uses 32-bit integers. */
const seedMax = 2 ** 31 - 1

const samplingRows: readonly SamplingRow[] = [
  { setting: 'logitBias' },
  { setting: 'temperature', member: 'temperature' },
  { setting: 'topP', member: 'topP' },
  { setting: 'topK', member: 'topK', when: ({ topK }) => topK !== false },
  { setting: 'presencePenalty', member: 'presencePenalty', when: ({ penalties }) => penalties !== false },
  { setting: 'frequencyPenalty', member: 'frequencyPenalty', when: ({ penalties }) => penalties !== false },
  { setting: 'seed', member: 'seed', always: true, when: ({ seed }, value) => seed !== false && isSeed(Number(value)) },
]

function isSeed(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) <= seedMax
}

export function samplingMembers({ sampling, reasoning }: Conversation, { rules, warnings }: Rendering): Members {
  const thinks = reasoning ? !isTurnedOff(reasoning) : rules.thinksByDefault !== false
  const isAccepted = acceptsSampling(rules, thinks)
  return renderSampling(sampling, samplingRows, { rules, warnings, isAccepted, temperatureMax: 2 })
}

export function renderServiceTier(conversation: Conversation, { rules, warnings }: Rendering): RawJson | undefined {
  const { serviceTier } = conversation
  if (serviceTier === 'fast' && rules.fastTier) return '"priority"'
  if (serviceTier === 'economy' && rules.economyTier) return '"flex"'
  if (serviceTier === 'fast' || serviceTier === 'economy') {
    warnings.add('service_tier_dropped', placeOf(conversation, 'serviceTier'))
  }
  // Standard is the default.
  return undefined
}

// The output format: native where the target supports it, otherwise through a hidden function or an instruction.

export interface RenderedFormat {
  /** Members of generationConfig. */
  readonly members: Members
  readonly hiddenTool?: HiddenTool
  /** Appended to the system instruction. */
  readonly instruction?: string
}

const json: Members = { responseMimeType: '"application/json"' }

export function renderFormat(conversation: Conversation, rendering: Rendering): RenderedFormat {
  const { outputFormat, tools } = conversation
  if (!outputFormat) return { members: {} }
  const { rules, warnings } = rendering
  const place = placeOf(conversation, 'outputFormat')
  // Older models refuse JSON output together with functions.
  const isEmulated = rules.jsonOutput === 'emulated' || (tools.length > 0 && !thinksByLevel(rules))
  if (isEmulated) return { members: {}, hiddenTool: hiddenTool(outputFormat, rendering, place) }
  if (outputFormat.kind === 'json-object') return { members: json }
  if (outputFormat.description) warnings.add('description_dropped', place)
  if (rules.jsonOutput === 'object') {
    warnings.add('json_schema_emulated', place)
    return { members: json, instruction: schemaInstruction(outputFormat) }
  }
  const result = subsetSchema(outputFormat.schema, rendering.schemas)
  if (typeof result === 'string') return refuseAt(place, `The schema of the output format cannot be used: ${result}.`)
  if (result.loosened) warnings.add('output_schema_loosened', place)
  return { members: { ...json, responseJsonSchema: result.schema } }
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
