// A whole Messages reply on the byte lane.

import { createReplyRelay } from '../byte-lane/relay.ts'
import { recordOf } from '../canonical/json.ts'
import { readErrorObject } from './failure.ts'
import { renderUsage } from './render-usage.ts'
import { mergeUsage, readUsage } from './usage.ts'

export const relayReply = createReplyRelay({
  content: 'content',
  readUsage: (usage) => readUsage(mergeUsage({}, usage)),
  renderUsage,
  outputBytes: (content) =>
    Array.isArray(content) ? content.reduce((bytes, block) => bytes + blockBytes(block), 0) : 0,
  readErrorObject,
  isEmptyReply: ({ content, stop_reason }) =>
    typeof stop_reason !== 'string' && Array.isArray(content) && content.every((block) => blockBytes(block) === 0),
})

function blockBytes(block: unknown): number {
  const { text, thinking, name, input } = recordOf(block)
  const parts = [text, thinking, name].filter((part) => typeof part === 'string')
  if (input !== undefined) parts.push(JSON.stringify(input))
  return Buffer.byteLength(parts.join(''))
}
