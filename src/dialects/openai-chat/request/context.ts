// Shared by the request renderers: the marks that a target can place, and how the dialect writes what it shares with
// Responses.

import type { DocumentBlock, MediaSource } from '../../canonical/conversation.ts'
import { jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import type { FoundMark, MarkRules } from '../../request/cache-marks.ts'
import { refuseAt } from '../../request/fields.ts'
import { isAudio } from '../../request/media.ts'
import { dataUrl, type OpenaiForm, type OpenaiRendering, textMembers } from '../../request/openai.ts'

export interface Rendering extends OpenaiRendering {
  readonly issuer: string
}

/** How this dialect writes what it shares with Responses. */
export const chatForm: OpenaiForm = {
  isNested: true,
  writesStrict: false,
  endUserName: 'user',
  knowsTiers: false,
  midSystem: false,
  textType: 'text',
  image: (url) => ({ type: '"image_url"', image_url: jsonObject({ url: jsonString(url) }) }),
  document: documentParts,
  takesCustom: ({ customTools }) => customTools === true,
  canRestrict: ({ allowedTools }) => allowedTools === true,
  grammar: (grammar) => grammar,
  sampling: [
    { setting: 'temperature', member: 'temperature' },
    { setting: 'topP', member: 'top_p' },
    { setting: 'topK', member: 'top_k', when: ({ topK }) => topK === true },
    { setting: 'frequencyPenalty', member: 'frequency_penalty', when: ({ penalties }) => penalties !== false },
    { setting: 'presencePenalty', member: 'presence_penalty', when: ({ penalties }) => penalties !== false },
    { setting: 'seed', member: 'seed', always: true, when: ({ seed }) => seed !== false },
    { setting: 'logitBias', member: 'logit_bias', when: ({ logitBias }) => logitBias !== false },
  ],
}

function documentParts(document: DocumentBlock, source: MediaSource, rules: TargetRules, place: string): Members[] {
  if (source.kind === 'url') {
    return refuseAt(place, 'This model does not take documents by URL; send the data instead.')
  }
  if (isAudio(source)) {
    const format = jsonString(source.mediaType.slice('audio/'.length))
    return [{ type: '"input_audio"', input_audio: jsonObject({ data: jsonString(source.base64), format }) }]
  }
  if (rules.documents !== true) {
    return refuseAt(place, 'This model does not take documents; send their text instead.')
  }
  const { title = 'document.pdf', context } = document
  const file = jsonObject({ filename: jsonString(title), file_data: jsonString(dataUrl(source)) })
  const part = { type: '"file"', file }
  return context === undefined ? [part] : [part, textMembers(context, { textType: 'text' })]
}

/** The marks that the target can place. */
export function markRules(rules: TargetRules): MarkRules {
  const style = rules.cacheStyle === 'implicit' ? undefined : rules.cacheStyle
  return {
    style,
    // Hosts of the other two styles cache implicitly.
    isImplicit: rules.cacheStyle === 'breakpoint' || rules.cacheStyle === 'implicit',
    canCarry({ within, block }) {
      if (within === 'tools') return style === 'cache-control'
      return within !== 'tool-result' && block.kind !== 'tool-call' && !isEmpty(block)
    },
  }
}

function isEmpty(block: FoundMark['block']): boolean {
  if (block.kind === 'tool-result') return block.content.length === 0 && !block.isError
  return block.kind === 'text' && block.text === ''
}
