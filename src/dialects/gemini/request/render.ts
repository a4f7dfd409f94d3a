// Renders a Conversation as a generateContent body. A pure function of conversation and target: the same history always
// gives the same bytes. The part that grows from turn to turn comes last, so the bytes before it stay the same.

import { Failure } from '../../../kernel/failure.ts'
import type { Conversation, RawJson, Turn } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject } from '../../canonical/json.ts'
import type { RenderedRequest, Target } from '../../canonical/translation.ts'
import { chooseMarks } from '../../request/cache-marks.ts'
import { readRequest, refuse, refuseAt, refusePrefill } from '../../request/fields.ts'
import { SchemaBudget } from '../../request/schema.ts'
import { pairTools, toolNamesIn } from '../../request/tools.ts'
import { reportUnsupported, WarningList } from '../../request/warnings.ts'
import { renderThinking, restoreThinking } from '../reasoning.ts'
import { FunctionNames, type Rendering, takesIds } from './context.ts'
import { renderMessages, textPart } from './render-messages.ts'
import {
  renderFormat,
  renderOutputCap,
  renderSampling,
  renderServiceTier,
  renderStop,
  warnHints,
} from './render-settings.ts'
import { renderTools } from './render-tools.ts'

const toolNameMaxDefault = 128
const toolIdMaxDefault = 64

export function renderRequest(conversation: Conversation, target: Target): RenderedRequest | Failure {
  return readRequest(() => render(conversation, target))
}

function render(conversation: Conversation, target: Target): RenderedRequest {
  const { rules } = target
  const warnings = new WarningList()
  const turns = checkedTurns(conversation, target, warnings)
  const names = new FunctionNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameMaxDefault)
  const rendering: Rendering = { rules, warnings, names, schemas: new SchemaBudget() }
  // The provider only caches implicitly and accepts no marks.
  chooseMarks(conversation, { style: undefined, canCarry: () => false, isImplicit: true }, warnings)
  warnHints(conversation, rendering)
  const format = renderFormat(conversation, rendering)
  const tools = renderTools(conversation, format.hiddenTool, rendering)
  const stop = renderStop(conversation, rendering)
  const contents = renderMessages(turns, rendering)
  if (contents.length === 0) refuseAt('/messages', '`messages` has nothing to answer.')
  const settings = jsonObject([
    renderOutputCap(conversation, target, rendering),
    ...renderSampling(conversation, rendering),
    stop.member,
    ...format.members,
    ['thinkingConfig', renderThinking(conversation, rendering)],
  ])
  const body = jsonObject([
    ['systemInstruction', renderSystem(conversation, format.instruction)],
    ['tools', tools.tools],
    ['toolConfig', tools.toolConfig],
    ['generationConfig', settings === '{}' ? undefined : settings],
    renderServiceTier(conversation, rendering),
    ['contents', jsonArray(contents)],
  ])
  return {
    body: new TextEncoder().encode(body),
    headers: {},
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

/** The turns with results paired to calls, ids the target accepts, and the reasoning it issued. */
function checkedTurns(conversation: Conversation, { rules, issuer }: Target, warnings: WarningList): Turn[] {
  const failure = reportUnsupported(conversation.unsupported, warnings)
  if (failure) return refuse(failure)
  const last = conversation.turns.at(-1)
  if (last?.role === 'assistant' && !rules.prefill && !last.blocks.some(({ kind }) => kind === 'tool-call')) {
    return refusePrefill(last)
  }
  // Ids are needed for pairing even if they are not sent.
  const max = (takesIds(rules) ? rules.toolIdMax : undefined) ?? toolIdMaxDefault
  const idRule = { pattern: rules.toolIdPattern ?? /^[\s\S]+$/, max }
  // Signatures refer to the caller's call ids, so restore them before ids change.
  const turns = pairTools(restoreThinking(conversation.turns, issuer, warnings), idRule, warnings)
  return turns instanceof Failure ? refuse(turns) : turns
}

function renderSystem({ system }: Conversation, instruction: string | undefined): RawJson | undefined {
  const texts = [...system.map(({ text }) => text), instruction ?? ''].filter((text) => text !== '')
  return texts.length === 0 ? undefined : jsonObject([['parts', jsonArray(texts.map(textPart))]])
}
