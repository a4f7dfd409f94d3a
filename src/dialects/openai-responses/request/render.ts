// Renders a Conversation as a Responses body. A pure function of conversation and target: the same history always gives
// the same bytes. The part that grows from turn to turn comes last, so the bytes before it stay the same.

import type {
  AssistantBlock,
  ContentBlock,
  Conversation,
  DocumentBlock,
  MediaSource,
  RawJson,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../canonical/conversation.ts'
import { filledObject, jsonArray, jsonObject, jsonString, type Members, rawJsonAt } from '../../canonical/json.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { responsesHostTiers } from '../../canonical/tiers.ts'
import { type RenderedRequest, renderedRequest, type Target } from '../../canonical/translation.ts'
import type { FoundMark } from '../../request/cache-marks.ts'
import { refuseAt, refuseEmpty, refusing } from '../../request/fields.ts'
import { refuseAudio, refuseMediaUrl } from '../../request/media.ts'
import {
  anyObjectFormat,
  argumentText,
  dataUrl,
  errorMark,
  isFilled,
  joinedText,
  message,
  type OpenaiForm,
  type OpenaiRendering,
  openRendering,
  renderFormat,
  renderParts,
  renderTools,
  resultText,
  samplingMembers,
  servingMembers,
  textIn,
  textMembers,
  writeTurns,
} from '../../request/render-openai.ts'
import { renderOutputCap, withInstruction } from '../../request/settings.ts'
import { reasons, renderReasoning, restoreThinking } from '../reasoning.ts'

/** The provider refuses a lower cap. */
const outputCapMin = 16

/** `customCalls`: ids of calls sent as custom tool calls, whose results have their own type. */
type Rendering = OpenaiRendering & { readonly customCalls: ReadonlySet<string> }

export const renderRequest = refusing(render)

function render(conversation: Conversation, target: Target): RenderedRequest {
  const opened = openRendering(responsesForm, conversation, target, restoreThinking)
  const rendering: Rendering = { ...opened, customCalls: customCallsIn(opened.turns, target) }
  const { rules, warnings } = rendering
  const { format, instruction } = renderFormat(conversation, rendering)
  const { reasoning, effort } = renderReasoning(conversation, rendering)
  const tools = renderTools(conversation, rendering)
  const system = withInstruction(conversation.system, instruction)
  const prompt = renderPrompt(system, format === anyObjectFormat, rendering) ?? refuseEmpty(conversation)
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
  // The dialect has no stop sequences.
  const stop = conversation.stop.filter((sequence) => sequence !== '')
  return renderedRequest(body, warnings.list, { ...tools.mapping, stop })
}

function customCallsIn(turns: readonly Turn[], { rules }: Target): ReadonlySet<string> {
  if (!responsesForm.takesCustom(rules)) return new Set()
  const blocks = turns.flatMap((turn) => (turn.role === 'assistant' ? turn.blocks : []))
  return new Set(blocks.flatMap((block) => (block.kind === 'tool-call' && block.custom ? [block.id] : [])))
}

/** The system prompt goes into `instructions`, or into an input message where that is required. undefined if empty. */
function renderPrompt(system: readonly TextBlock[], isAnyObject: boolean, rendering: Rendering) {
  const items = renderMessages(rendering)
  const text = joinedText(system)
  if (text === '' && items.length === 0) return undefined
  // A message is required for marks, which are on message parts; for JSON output, which the input must mention; and if
  // there is no other input.
  const isMessage = rendering.marks.inUse || isAnyObject || items.length === 0
  if (isMessage) return { instructions: undefined, input: [...renderSystem(system, rendering), ...items] }
  return { instructions: text === '' ? undefined : jsonString(text), input: items }
}

// How the dialect writes what it shares with Chat Completions.

const responsesForm: OpenaiForm = {
  isNested: false,
  writesStrict: true,
  endUserName: 'safety_identifier',
  tierWords: responsesHostTiers,
  midSystem: true,
  toolsMax: 128,
  toolIdMax: 64,
  textType: 'input_text',
  // `detail` is required by the dialect.
  image: (url) => ({ type: '"input_image"', image_url: jsonString(url), detail: '"auto"' }),
  document: documentParts,
  takesCustom: ({ customTools }) => customTools !== false,
  canRestrict: ({ allowedTools }) => allowedTools !== false,
  grammar: renderGrammar,
  canCarry,
  sampling: [
    { setting: 'topK' },
    { setting: 'frequencyPenalty' },
    { setting: 'presencePenalty' },
    { setting: 'seed' },
    { setting: 'logitBias' },
    { setting: 'temperature', member: 'temperature' },
    { setting: 'topP', member: 'top_p' },
  ],
}

/** Other dialects wrap the grammar definition into an object; here it stands beside the type. */
function renderGrammar(grammar: RawJson): RawJson {
  const inside = (name: string) => rawJsonAt(grammar, ['grammar', name]) ?? rawJsonAt(grammar, [name])
  return jsonObject({ type: '"grammar"', syntax: inside('syntax'), definition: inside('definition') })
}

function documentParts(document: DocumentBlock, source: MediaSource, rules: TargetRules, pointer: string): Members[] {
  const { title, context } = document
  refuseAudio(source, pointer)
  if (rules.documents === false) {
    return refuseAt(pointer, 'This model does not take documents; send their text instead.')
  }
  refuseMediaUrl(source, rules, pointer)
  const filename = jsonString(title ?? 'document.pdf')
  const file: Members =
    source.kind === 'url'
      ? { type: '"input_file"', file_url: jsonString(source.url) }
      : { type: '"input_file"', filename, file_data: jsonString(dataUrl(source)) }
  // A file by URL has no name.
  const about = [source.kind === 'url' ? title : undefined, context].filter((line) => line !== undefined)
  return about.length === 0 ? [file] : [file, textMembers(about.join('\n\n'), { textType: 'input_text' })]
}

/** Only input parts carry marks: not what the model wrote and called, nor system text inlined into a tag. */
function canCarry({ within, block }: FoundMark, rules: TargetRules): boolean {
  if (within === 'tools' || within === 'assistant') return false
  return (within !== 'system' || rules.midSystem !== false) && isMarkable(block)
}

function isMarkable(block: FoundMark['block']): boolean {
  if (block.kind === 'tool-result') return block.content.some(isMarkable)
  return block.kind !== 'text' || block.text !== ''
}

// Renders turns as input items. Each item depends only on its own turn and those before it, so a growing conversation
// keeps its prefix.

function renderMessages(rendering: Rendering): RawJson[] {
  const items: RawJson[] = []
  writeTurns(
    {
      assistant: (blocks) => void items.push(...renderAssistant(blocks, rendering)),
      result(result, pointer) {
        items.push(renderToolResult(result, rendering, pointer))
        return []
      },
      user(blocks, pointer) {
        const said = blocks.filter(isFilled)
        if (said.length > 0) items.push(message('user', renderContent(said, rendering, pointer)))
      },
      system: (blocks) => void items.push(...renderSystem(blocks, rendering)),
      inlinedSystem: (text) => void items.push(message('user', jsonString(text))),
    },
    rendering,
  )
  return items
}

/** System text as an input message; none if it is empty. */
function renderSystem(blocks: readonly TextBlock[], rendering: Rendering): RawJson[] {
  const text = joinedText(blocks)
  if (text === '') return []
  const { rules, marks } = rendering
  const content = marks.inUse ? renderContent(blocks.filter(isFilled), rendering, '') : jsonString(text)
  return [message(rules.systemRole ?? 'developer', content)]
}

// Assistant turns: text, calls and reasoning as items, in order. Reasoning is sent back encrypted or not at all, never
// as visible text.

/** Expects the blocks that restoreThinking returned. */
function renderAssistant(blocks: readonly AssistantBlock[], rendering: Rendering): RawJson[] {
  // The provider's label cannot be returned by callers, so derive it from the turn's content. Older models ignore it;
  // hosts of other models may not know the member.
  const label = blocks.some(({ kind }) => kind === 'tool-call') ? '"commentary"' : '"final_answer"'
  const phase = reasons(rendering.rules) ? label : undefined
  const items: RawJson[] = []
  let said = ''
  const flush = () => {
    if (said !== '') items.push(jsonObject({ role: '"assistant"', content: jsonString(said), phase }))
    said = ''
  }
  for (const block of blocks) {
    // The dialect has refusals only in messages with a provider id.
    if (block.kind === 'text' || block.kind === 'refusal') {
      said += block.text
      continue
    }
    flush()
    if (block.kind === 'tool-call') items.push(renderCall(block, rendering))
    else if (block.kind === 'thinking' && block.signature !== undefined) items.push(block.signature)
  }
  flush()
  return items
}

function renderCall(call: ToolCallBlock, { names, customCalls }: Rendering): RawJson {
  const isCustom = customCalls.has(call.id)
  return jsonObject({
    type: isCustom ? '"custom_tool_call"' : '"function_call"',
    call_id: jsonString(call.id),
    name: jsonString(names.sent(call.name)),
    [isCustom ? 'input' : 'arguments']: jsonString(isCustom ? call.arguments : argumentText(call)),
  })
}

// Tool results as call outputs: a string if it is all text, a list of parts if it contains media.

function renderToolResult(result: ToolResultBlock, rendering: Rendering, pointer: string): RawJson {
  const { marks, customCalls } = rendering
  const hasMedia = result.content.some((block) => textIn(block) === undefined)
  const parts = marks.inUse || hasMedia ? resultParts(result, rendering, pointer) : []
  return jsonObject({
    type: customCalls.has(result.callId) ? '"custom_tool_call_output"' : '"function_call_output"',
    call_id: jsonString(result.callId),
    output: parts.length > 0 ? jsonArray(parts) : jsonString(resultText(result)),
  })
}

function resultParts(result: ToolResultBlock, rendering: Rendering, pointer: string): RawJson[] {
  const filled = result.content.filter(isFilled)
  const failed =
    result.isError && filled[0]?.kind !== 'text'
      ? renderParts({ kind: 'text', text: errorMark.trim() }, rendering, pointer)
      : []
  const parts = filled.flatMap((block, i) => {
    const saysFailed = result.isError && i === 0 && block.kind === 'text'
    const shown = saysFailed ? { ...block, text: errorMark + block.text } : block
    return renderParts(shown, rendering, pointer, i === filled.length - 1 ? [block, result] : [block])
  })
  return [...failed, ...parts]
}

/** A string for a single unmarked text, which every host accepts; parts otherwise. */
function renderContent(blocks: readonly ContentBlock[], rendering: Rendering, pointer: string): RawJson {
  const [only, ...more] = blocks
  if (only?.kind === 'text' && more.length === 0 && !rendering.marks.inUse) return jsonString(only.text)
  return jsonArray(blocks.flatMap((block) => renderParts(block, rendering, pointer)))
}
