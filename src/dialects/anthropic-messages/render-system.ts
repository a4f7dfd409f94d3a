// System text, one block per block of the caller's: joining them would move its cache marks.

import { type Conversation, placeOf } from '../canonical/conversation.ts'
import type { WarningList } from '../request/warnings.ts'
import { isBlank, moveMarks, textBlock, type WireBlock } from './wire-block.ts'

/** Any JSON object will do, and the provider has no setting for that. */
const jsonInstruction =
  'Answer with a single JSON object and nothing else: no text before or after it, and no code fence around it.'

export function renderSystem(conversation: Conversation, warnings: WarningList): WireBlock[] {
  const blocks = conversation.system.map(({ text, cacheMark }) => textBlock(text, cacheMark))
  if (conversation.outputFormat?.kind === 'json-object') {
    warnings.add('json_object_emulated', placeOf(conversation, 'outputFormat'))
    blocks.push(textBlock(jsonInstruction))
  }
  moveMarks(blocks)
  return blocks.filter((block) => !isBlank(block))
}
