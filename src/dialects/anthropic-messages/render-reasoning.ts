// The reasoning wish against the rest of the request: what it excludes, and what excludes it.

import { type Conversation, placeOf } from '../canonical/conversation.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { WarningList } from '../request/warnings.ts'
import type { WireMessage } from './render-messages.ts'
import { chooseThinking, type Thinking } from './render-thinking.ts'

export interface ReasoningSurroundings {
  readonly rules: TargetRules
  readonly maxTokens: number
  readonly messages: readonly WireMessage[]
  /** The answer must come as a call of one certain tool. */
  readonly answersByTool: boolean
  readonly warnings: WarningList
}

export function renderReasoning(conversation: Conversation, around: ReasoningSurroundings): Thinking {
  const { rules, messages, warnings } = around
  const thinking = chooseThinking(conversation, around)
  // With a budget, the model can neither be forced to call a tool nor go on from calls it made without thinking.
  if (thinking.mode === 'enabled' && (around.answersByTool || continuesWithoutThinking(messages))) {
    warnings.add('reasoning_dropped', placeOf(conversation, 'reasoning'))
    return { mode: rules.thinking?.includes('disabled') ? 'disabled' : undefined }
  }
  // Where it reasons by itself, the mode is only said to carry what depends on it.
  const carriesBinding = rules.thinkingBindingControls && thinking.mode === undefined && rules.thinksByDefault
  return carriesBinding && rules.thinking?.includes('adaptive') ? { ...thinking, mode: 'adaptive' } : thinking
}

function continuesWithoutThinking(messages: readonly WireMessage[]): boolean {
  const last = messages.findLast(({ role }) => role === 'user')
  if (last?.blocks[0]?.type !== 'tool_result') return false
  const caller = messages.slice(0, messages.indexOf(last)).findLast(({ role }) => role === 'assistant')
  const [first] = caller?.blocks ?? []
  return first !== undefined && !isThinkingBlock(first)
}

function isThinkingBlock({ type }: { readonly type: string }): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}
