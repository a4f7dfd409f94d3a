// Renders a Conversation as a generateContent body. A pure function of conversation and target: the same history always
// gives the same bytes. The part that grows from turn to turn comes last, so the bytes before it stay the same.

import type { Failure } from '../../../kernel/failure.ts'
import { type Conversation, type OutputFormat, placeOf, type RawJson } from '../../canonical/conversation.ts'
import { filledArray, filledObject, jsonArray, jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import { noHeaders, type RenderedRequest, type Target } from '../../canonical/translation.ts'
import { chooseMarks, warnCacheOptions } from '../../request/cache-marks.ts'
import { readRequest, refuseAt, refuseEmpty } from '../../request/fields.ts'
import { SchemaBudget } from '../../request/schema.ts'
import {
  acceptsSampling,
  renderOutputCap,
  renderSampling,
  type SamplingRow,
  schemaInstruction,
  splitStop,
  warnHints,
} from '../../request/settings.ts'
import { preparedTurns, ToolNames, toolNamesIn } from '../../request/tools.ts'
import { WarningList } from '../../request/warnings.ts'
import { isTurnedOff, renderThinking, restoreThinking } from '../reasoning.ts'
import { type Rendering, takesIds, thinksByLevel } from './context.ts'
import { renderMessages, textPart } from './render-messages.ts'
import { type HiddenTool, renderTools } from './render-tools.ts'
import { subsetSchema, toolParameters } from './schema.ts'

const toolNameMaxDefault = 128
const toolIdMaxDefault = 64
const stopMaxDefault = 5

export function renderRequest(conversation: Conversation, target: Target): RenderedRequest | Failure {
  return readRequest(() => render(conversation, target))
}

function render(conversation: Conversation, target: Target): RenderedRequest {
  const { rules } = target
  const warnings = new WarningList()
  // Ids are needed for pairing even if they are not sent.
  const toolIdMax = (takesIds(rules) ? rules.toolIdMax : undefined) ?? toolIdMaxDefault
  const turns = preparedTurns(conversation, { rules, toolIdMax, warnings }, (all) =>
    restoreThinking(all, target.issuer, warnings),
  )
  const names = new ToolNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameMaxDefault, /^[A-Za-z_][\w-]*$/)
  const rendering: Rendering = { rules, warnings, names, schemas: new SchemaBudget() }
  // The provider only caches implicitly and accepts no marks.
  chooseMarks(conversation, { style: undefined, canCarry: () => false, isImplicit: true }, warnings)
  warnHints(conversation, warnings)
  warnCacheOptions(conversation, warnings)
  if (conversation.endUserId) warnings.add('end_user_id_dropped', placeOf(conversation, 'endUserId'))
  const format = renderFormat(conversation, rendering)
  const tools = renderTools(conversation, format.hiddenTool, rendering)
  const stop = splitStop(conversation.stop, rules.stopMax ?? stopMaxDefault)
  const contents = renderMessages(turns, rendering)
  if (contents.length === 0) refuseEmpty(conversation)
  const generationConfig = filledObject({
    // Thoughts count towards the cap.
    maxOutputTokens: renderOutputCap(conversation, target, warnings),
    ...samplingMembers(conversation, rendering),
    stopSequences: filledArray(stop.sent.map(jsonString)),
    ...format.members,
    thinkingConfig: renderThinking(conversation, rendering),
  })
  const body = jsonObject({
    systemInstruction: renderSystem(conversation, format.instruction),
    ...tools.members,
    generationConfig,
    serviceTier: renderServiceTier(conversation, rendering),
    contents: jsonArray(contents),
  })
  return {
    body: new TextEncoder().encode(body),
    headers: noHeaders,
    warnings: warnings.list,
    mapping: {
      toolNames: names.callerNames,
      customTools: tools.customTools,
      jsonTool: format.hiddenTool?.name,
      stop: stop.matched,
      singleToolCall: tools.singleToolCall,
    },
  }
}

function renderSystem({ system }: Conversation, instruction: string | undefined): RawJson | undefined {
  const texts = [...system.map(({ text }) => text), instruction ?? ''].filter((text) => text !== '')
  return texts.length === 0 ? undefined : jsonObject({ parts: jsonArray(texts.map((text) => textPart(text))) })
}

// Renders sampling, service tier and output format as far as the target supports them.
// Omitting a default value needs no warning; any other omission does.

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

function samplingMembers({ sampling, reasoning }: Conversation, { rules, warnings }: Rendering): Members {
  const thinks = reasoning ? !isTurnedOff(reasoning) : rules.thinksByDefault !== false
  const isAccepted = acceptsSampling(rules, thinks)
  return renderSampling(sampling, samplingRows, { rules, warnings, isAccepted, temperatureMax: 2 })
}

function renderServiceTier(conversation: Conversation, { rules, warnings }: Rendering): RawJson | undefined {
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

interface RenderedFormat {
  /** Members of generationConfig. */
  readonly members: Members
  readonly hiddenTool?: HiddenTool
  /** Appended to the system instruction. */
  readonly instruction?: string
}

const json: Members = { responseMimeType: '"application/json"' }

function renderFormat(conversation: Conversation, rendering: Rendering): RenderedFormat {
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
  if (parameters?.loosened) warnings.add('output_schema_loosened', place)
  const description =
    (isSchema ? format.description : undefined) || 'Call this to answer; its arguments are the answer.'
  return { name: names.unused('json'), parameters: parameters?.schema ?? '{"type":"object"}', description }
}
