// Shared by the request renderers: the rendering's state, how the dialect writes what it shares with Chat Completions,
// and what follows from a target's rules.

import type { DocumentBlock, MediaSource, RawJson } from '../../canonical/conversation.ts'
import { jsonObject, jsonString, type Members, rawJsonAt } from '../../canonical/json.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import type { FoundMark, MarkRules } from '../../request/cache-marks.ts'
import { refuseAt } from '../../request/fields.ts'
import { refuseAudio, refuseMediaUrl } from '../../request/media.ts'
import { dataUrl, type OpenaiForm, type OpenaiRendering, textMembers } from '../../request/openai.ts'

export interface Rendering extends OpenaiRendering {
  /** Ids of calls sent as custom tool calls, whose results have their own type. */
  readonly customCalls: ReadonlySet<string>
}

export const responsesForm: OpenaiForm = {
  isNested: false,
  writesStrict: true,
  endUserName: 'safety_identifier',
  knowsTiers: true,
  midSystem: true,
  textType: 'input_text',
  // `detail` is required by the dialect.
  image: (url) => ({ type: '"input_image"', image_url: jsonString(url), detail: '"auto"' }),
  document: documentParts,
  takesCustom: ({ customTools }) => customTools !== false,
  canRestrict: ({ allowedTools }) => allowedTools !== false,
  grammar: renderGrammar,
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

function documentParts(document: DocumentBlock, source: MediaSource, rules: TargetRules, place: string): Members[] {
  const { title, context } = document
  refuseAudio(source, place)
  if (rules.documents === false) {
    return refuseAt(place, 'This model does not take documents; send their text instead.')
  }
  refuseMediaUrl(source, rules, place)
  const filename = jsonString(title ?? 'document.pdf')
  const file: Members =
    source.kind === 'url'
      ? { type: '"input_file"', file_url: jsonString(source.url) }
      : { type: '"input_file"', filename, file_data: jsonString(dataUrl(source)) }
  // A file by URL has no name.
  const about = [source.kind === 'url' ? title : undefined, context].filter((line) => line !== undefined)
  return about.length === 0 ? [file] : [file, textMembers(about.join('\n\n'), { textType: 'input_text' })]
}

/** Whether the target reasons; one that does not refuses a request for encrypted reasoning. */
export function reasons({ efforts, thinksByDefault }: TargetRules): boolean {
  return thinksByDefault === true || efforts === undefined || efforts.length > 0
}

/** The marks that the target can place. */
export function markRules(rules: TargetRules): MarkRules {
  return {
    style: rules.cacheStyle === 'breakpoint' ? 'breakpoint' : undefined,
    // Hosts with a style cache implicitly.
    isImplicit: rules.cacheStyle !== undefined,
    canCarry({ within, block }) {
      // Only input parts carry marks: not what the model wrote and called, nor system text inlined into a tag.
      if (within === 'tools' || within === 'assistant') return false
      return (within !== 'system' || rules.midSystem !== false) && isMarkable(block)
    },
  }
}

function isMarkable(block: FoundMark['block']): boolean {
  if (block.kind === 'tool-result') return block.content.some(isMarkable)
  return block.kind !== 'text' || block.text !== ''
}
