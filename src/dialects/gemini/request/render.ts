// Renders a Conversation as a generateContent body. A pure function of conversation and target: the same history always
// gives the same bytes. The part that grows from turn to turn comes last, so the bytes before it stay the same.

import type { Failure } from '../../../kernel/failure.ts'
import { type Conversation, placeOf, type RawJson } from '../../canonical/conversation.ts'
import { filledArray, filledObject, jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import type { RenderedRequest, Target } from '../../canonical/translation.ts'
import { chooseMarks, warnCacheOptions } from '../../request/cache-marks.ts'
import { readRequest, refuseAt } from '../../request/fields.ts'
import { SchemaBudget } from '../../request/schema.ts'
import { renderOutputCap, splitStop, warnHints } from '../../request/settings.ts'
import { preparedTurns, toolNamesIn } from '../../request/tools.ts'
import { WarningList } from '../../request/warnings.ts'
import { renderThinking, restoreThinking } from '../reasoning.ts'
import { FunctionNames, type Rendering, takesIds } from './context.ts'
import { renderMessages, textPart } from './render-messages.ts'
import { renderFormat, renderServiceTier, samplingMembers } from './render-settings.ts'
import { renderTools } from './render-tools.ts'

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
  const names = new FunctionNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameMaxDefault)
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
  if (contents.length === 0) refuseAt('/messages', '`messages` has nothing to answer.')
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

function renderSystem({ system }: Conversation, instruction: string | undefined): RawJson | undefined {
  const texts = [...system.map(({ text }) => text), instruction ?? ''].filter((text) => text !== '')
  return texts.length === 0 ? undefined : jsonObject({ parts: jsonArray(texts.map(textPart)) })
}
