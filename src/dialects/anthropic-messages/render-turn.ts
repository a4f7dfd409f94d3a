// The blocks of one turn. Only blank text is left in for now: its cache mark has still to find a neighbour.

import type { AssistantBlock, ToolCallBlock, ToolResultBlock, Turn, UserBlock } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { type ArgumentNames, argumentsObject, type ToolNames } from '../request/tools.ts'
import type { WarningList } from '../request/warnings.ts'
import { renderDocument, renderImage } from './render-media.ts'
import { isBlank, textBlock, type WireBlock, writeBlock } from './wire-block.ts'

export interface TurnContext {
  readonly rules: TargetRules
  readonly warnings: WarningList
  readonly names: ToolNames
  readonly argumentNames: ArgumentNames
}

export function renderTurn(turn: Turn, context: TurnContext): WireBlock[] {
  const place = turn.place ?? '/messages'
  switch (turn.role) {
    case 'system':
      return turn.blocks.map(({ text, cacheMark }) => textBlock(text, cacheMark))
    case 'user':
      return turn.blocks.flatMap((block) => renderUserBlock(block, place, context))
    case 'assistant':
      return turn.blocks.map((block) => renderAssistantBlock(block, place, context))
  }
}

function renderUserBlock(block: UserBlock, place: string, context: TurnContext): WireBlock[] {
  if (block.kind === 'tool-result') return renderToolResult(block, place, context)
  return [renderContent(block, place, context.rules)]
}

function renderContent(block: Exclude<UserBlock, ToolResultBlock>, place: string, rules: TargetRules): WireBlock {
  switch (block.kind) {
    case 'text':
      return textBlock(block.text, block.cacheMark)
    case 'image':
      return renderImage(block, rules, place)
    case 'document':
      return renderDocument(block, rules, place)
  }
}

/** Marks inside count for the result as a whole. Media that may not stand in it follow it, as user content. */
function renderToolResult(result: ToolResultBlock, place: string, { rules }: TurnContext): WireBlock[] {
  const content = result.content.map((block) => renderContent(block, place, rules)).filter((block) => !isBlank(block))
  const outside = rules.mediaInToolResults === false ? content.filter(({ text }) => text === undefined) : []
  const inside = content.filter((block) => !outside.includes(block))
  const mark = result.cacheMark ?? result.content.findLast(({ cacheMark }) => cacheMark)?.cacheMark
  for (const block of content) block.mark = undefined
  // An error without a word about it is refused.
  if (inside.length === 0 && result.isError) inside.push(textBlock('[tool error]'))
  const [only] = inside
  const text = inside.length === 1 ? only?.text : undefined
  const rendered: WireBlock = {
    type: 'tool_result',
    members: [
      ['tool_use_id', jsonString(result.callId)],
      ['content', text === undefined ? writeContent(inside) : jsonString(text)],
      ['is_error', result.isError ? 'true' : undefined],
    ],
    markable: true,
    mark,
  }
  return [rendered, ...outside]
}

function writeContent(blocks: readonly WireBlock[]) {
  return blocks.length === 0 ? undefined : jsonArray(blocks.map(writeBlock))
}

function renderAssistantBlock(block: AssistantBlock, place: string, context: TurnContext): WireBlock {
  switch (block.kind) {
    case 'text':
      return textBlock(block.text, block.cacheMark)
    case 'refusal':
      return textBlock(block.text)
    case 'tool-call':
      return renderToolCall(block, place, context)
    case 'thinking':
      return unmarkable('thinking', [
        ['thinking', jsonString(block.text)],
        ['signature', jsonString(block.signature ?? '')],
      ])
    case 'sealed-thinking':
      return unmarkable('redacted_thinking', [['data', jsonString(block.data)]])
  }
}

function unmarkable(type: string, members: NonNullable<WireBlock['members']>): WireBlock {
  return { type, members, markable: false, mark: undefined }
}

function renderToolCall(call: ToolCallBlock, place: string, context: TurnContext): WireBlock {
  const { warnings, names, argumentNames } = context
  const name = names.sent(call.name)
  const input = call.custom ? jsonObject([['input', jsonString(call.arguments)]]) : argumentsObject(call.arguments)
  if (!call.custom && input.startsWith('{"raw_arguments":') && input !== call.arguments.trim()) {
    warnings.add('invalid_arguments_wrapped', place)
  }
  return {
    type: 'tool_use',
    members: [
      ['id', jsonString(call.id)],
      ['name', jsonString(name)],
      ['input', argumentNames.inCall(name, input)],
    ],
    markable: true,
    mark: call.cacheMark,
  }
}
