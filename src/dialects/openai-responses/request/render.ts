// Renders a Conversation as a Responses body. A pure function of conversation and target: the same history always gives
// the same bytes. The part that grows from turn to turn comes last, so the bytes before it stay the same.

import type { Failure } from '../../../kernel/failure.ts'
import type { Conversation, RawJson, TextBlock, Turn } from '../../canonical/conversation.ts'
import { filledObject, jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import { noHeaders, type RenderedRequest, type Target } from '../../canonical/translation.ts'
import { chooseMarks } from '../../request/cache-marks.ts'
import { readRequest, refuseEmpty } from '../../request/fields.ts'
import {
  anyObjectFormat,
  joinedText,
  renderFormat,
  renderTools,
  samplingMembers,
  servingMembers,
} from '../../request/openai.ts'
import { SchemaBudget } from '../../request/schema.ts'
import { renderOutputCap, withInstruction } from '../../request/settings.ts'
import { preparedTurns, ToolNames, toolNamesIn } from '../../request/tools.ts'
import { WarningList } from '../../request/warnings.ts'
import { renderReasoning, restoreThinking } from '../reasoning.ts'
import { markRules, type Rendering, reasons, responsesForm } from './context.ts'
import { renderMessages, renderSystem } from './render-messages.ts'

const toolNameMaxDefault = 64
const toolIdMaxDefault = 64
const toolsMaxDefault = 128
/** The provider refuses a lower cap. */
const outputCapMin = 16

export function renderRequest(conversation: Conversation, target: Target): RenderedRequest | Failure {
  return readRequest(() => render(conversation, target))
}

function render(conversation: Conversation, target: Target): RenderedRequest {
  const { rules } = target
  const warnings = new WarningList()
  const turns = preparedTurns(
    conversation,
    { rules, toolIdMax: rules.toolIdMax ?? toolIdMaxDefault, warnings },
    (all) => restoreThinking(all, target.issuer, warnings),
  )
  const names = new ToolNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameMaxDefault)
  const marks = chooseMarks({ ...conversation, turns }, markRules(rules), warnings)
  const customCalls = customCallsIn(turns, target)
  const schemas = new SchemaBudget()
  const rendering: Rendering = { form: responsesForm, rules, warnings, names, marks, customCalls, schemas }
  const { format, instruction } = renderFormat(conversation, rendering)
  const { reasoning, effort } = renderReasoning(conversation, rendering)
  const tools = renderTools(conversation, { toolsMax: rules.toolsMax ?? toolsMaxDefault }, rendering)
  const system = withInstruction(conversation.system, instruction)
  const prompt = renderPrompt(system, turns, format === anyObjectFormat, rendering) ?? refuseEmpty(conversation)
  const body = jsonObject({
    model: jsonString(target.upstreamModel),
    stream: String(!target.wantsWhole),
    // Nothing is stored, so the reasoning has to travel along, encrypted.
    store: 'false',
    include: reasons(rules) ? '["reasoning.encrypted_content"]' : undefined,
    max_output_tokens: renderOutputCap(conversation, target, warnings, outputCapMin),
    reasoning,
    ...samplingMembers(conversation, effort, rendering),
    text: filledObject({ format, verbosity: jsonString(conversation.verbosity) }),
    ...servingMembers(conversation, rendering),
    ...tools.members,
    instructions: prompt.instructions,
    input: jsonArray(prompt.input),
  })
  return {
    body: new TextEncoder().encode(body),
    headers: noHeaders,
    warnings: warnings.list,
    mapping: {
      toolNames: names.callerNames,
      customTools: tools.customTools,
      jsonTool: undefined,
      // The dialect has no stop sequences.
      stop: conversation.stop.filter((sequence) => sequence !== ''),
      singleToolCall: tools.singleToolCall,
    },
  }
}

function customCallsIn(turns: readonly Turn[], { rules }: Target): ReadonlySet<string> {
  if (!responsesForm.takesCustom(rules)) return new Set()
  const blocks = turns.flatMap((turn) => (turn.role === 'assistant' ? turn.blocks : []))
  return new Set(blocks.flatMap((block) => (block.kind === 'tool-call' && block.custom ? [block.id] : [])))
}

interface Prompt {
  readonly instructions: RawJson | undefined
  readonly input: readonly RawJson[]
}

/** The system prompt goes into `instructions`, or into an input message where that is required. undefined if empty. */
function renderPrompt(
  system: readonly TextBlock[],
  turns: readonly Turn[],
  isAnyObject: boolean,
  rendering: Rendering,
): Prompt | undefined {
  const items = renderMessages(turns, rendering)
  const text = joinedText(system)
  if (text === '' && items.length === 0) return undefined
  // A message is required for marks, which are on message parts; for JSON output, which the input must mention; and if
  // there is no other input.
  const isMessage = rendering.marks.inUse || isAnyObject || items.length === 0
  if (isMessage) return { instructions: undefined, input: [...renderSystem(system, rendering), ...items] }
  return { instructions: text === '' ? undefined : jsonString(text), input: items }
}
