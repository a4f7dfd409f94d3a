// A request without the reasoning in its history, for a provider that does not know its own again.

import type { AssistantBlock } from '../canonical/conversation.ts'
import type { ParsedRequest } from '../canonical/translation.ts'
import { WarningList } from './warning-list.ts'

/** undefined = there is none in it. */
export function forgetReasoning({ conversation, warnings }: ParsedRequest): ParsedRequest | undefined {
  const told = new WarningList()
  told.addAll(warnings)
  let isFound = false
  const turns = conversation.turns.map((turn) => {
    if (turn.role !== 'assistant' || !turn.blocks.some(isReasoning)) return turn
    isFound = true
    told.add('thinking_dropped', turn.place ?? '/messages')
    return { ...turn, blocks: turn.blocks.filter((block) => !isReasoning(block)) }
  })
  return isFound ? { conversation: { ...conversation, turns }, warnings: told.list } : undefined
}

function isReasoning({ kind }: AssistantBlock): boolean {
  return kind === 'thinking' || kind === 'sealed-thinking'
}
