// Content blocks of a reply, whole or as a stream starts them, with all members that the official types declare.

import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import type { CollectedBlock } from '../canonical/reply.ts'
import { argumentsObject } from '../request/tools.ts'

/** Official clients cannot read a message without any block. */
export const emptyTextBlock = textBlock('')

/** undefined for a block that says nothing: an empty text is refused when it comes back as history. */
export function renderBlock(block: CollectedBlock): RawJson | undefined {
  switch (block.kind) {
    case 'text':
    case 'refusal':
      return block.text === '' ? undefined : textBlock(block.text)
    case 'thinking':
      if (block.text === '' && block.signature === undefined) return undefined
      return thinkingBlock(block.text, block.signature?.toWellFormed() ?? '')
    case 'sealed-thinking':
      return sealedBlock(block.data)
    case 'tool-call':
      return callBlock(
        block,
        block.custom ? jsonObject([['input', jsonString(block.arguments)]]) : argumentsObject(block.arguments),
      )
  }
}

export function textBlock(text: string): RawJson {
  return jsonObject([
    ['type', '"text"'],
    ['text', jsonString(text)],
    ['citations', 'null'],
  ])
}

export function thinkingBlock(text: string, signature: string): RawJson {
  return jsonObject([
    ['type', '"thinking"'],
    ['thinking', jsonString(text)],
    ['signature', jsonString(signature)],
  ])
}

export function sealedBlock(data: string): RawJson {
  return jsonObject([
    ['type', '"redacted_thinking"'],
    ['data', jsonString(data.toWellFormed())],
  ])
}

export function callBlock(call: { readonly id: string; readonly name: string }, input: RawJson): RawJson {
  return jsonObject([
    ['type', '"tool_use"'],
    ['id', jsonString(call.id.toWellFormed())],
    ['name', jsonString(call.name.toWellFormed())],
    ['input', input],
    ['caller', '{"type":"direct"}'],
  ])
}
