// What the assistant said, called and thought, as items in the order in which it did. Reasoning never becomes visible
// text: it goes back sealed, or not at all.

import type { AssistantBlock, RawJson, ToolCallBlock } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { type Rendering, reasons } from './rendering.ts'

/** The reasoning among the blocks is that which restoreThinking left. */
export function renderAssistant(blocks: readonly AssistantBlock[], rendering: Rendering): RawJson[] {
  // The provider's own label, which no caller can bring back, so that it is told from what the turn holds.
  const phase = blocks.some(({ kind }) => kind === 'tool-call') ? 'commentary' : 'final_answer'
  const items: RawJson[] = []
  let said = ''
  const flush = () => {
    if (said !== '') items.push(renderSaid(said, phase, rendering))
    said = ''
  }
  for (const block of blocks) {
    // The dialect has refusals only in messages that the provider has numbered.
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

/** Older models ignore the phase; hosts of other models may not know the member. */
function renderSaid(text: string, phase: string, { rules }: Rendering): RawJson {
  return jsonObject([
    ['role', '"assistant"'],
    ['content', jsonString(text)],
    ['phase', reasons(rules) ? jsonString(phase) : undefined],
  ])
}

function renderCall(call: ToolCallBlock, { names, customCalls }: Rendering): RawJson {
  const isCustom = customCalls.has(call.id)
  return jsonObject([
    ['type', isCustom ? '"custom_tool_call"' : '"function_call"'],
    ['call_id', jsonString(call.id)],
    ['name', jsonString(names.sent(call.name))],
    isCustom ? ['input', jsonString(call.arguments)] : ['arguments', jsonString(argumentText(call))],
  ])
}

/** As the model wrote it; a call without arguments has written nothing, which not every host can parse. */
function argumentText(call: ToolCallBlock): string {
  if (call.custom) return jsonObject([['input', jsonString(call.arguments)]])
  return call.arguments.trim() === '' ? '{}' : call.arguments
}
