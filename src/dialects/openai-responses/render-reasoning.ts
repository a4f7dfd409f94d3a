// How hard the model is asked to think, and whether it is to tell about it. An explicit "off" never turns into more than
// the least there is. Tools and reasoning go together in this dialect, so that tools never change the effort.

import type { Conversation, Effort, RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { fitEffort } from '../request/reasoning.ts'
import { type Rendering, reasons } from './rendering.ts'

export interface RenderedReasoning {
  /** The member's value; undefined = nothing is said. */
  readonly reasoning: RawJson | undefined
  readonly effort: Effort | undefined
}

export function renderReasoning(conversation: Conversation, rendering: Rendering): RenderedReasoning {
  const effort = fitEffort(conversation, rendering)
  // Only on demand: some accounts are refused summaries until they have proved who they are.
  const isShown = conversation.reasoning?.visible === true && effort !== 'none' && reasons(rendering.rules)
  const reasoning = jsonObject([
    ['effort', effort && jsonString(effort)],
    ['summary', isShown ? '"auto"' : undefined],
  ])
  return { reasoning: reasoning === '{}' ? undefined : reasoning, effort }
}
