// Joins tool results with the calls they answer. Providers refuse a call without a result and a result without a call,
// so both are refused here by name, before anything is sent. Ids come out as the target accepts them, on both sides.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import type { AssistantBlock, ToolResultBlock, Turn, UserBlock } from '../canonical/conversation.ts'
import { shownCallId } from './shown-word.ts'
import { type ToolIdRule, ToolIds } from './tool-ids.ts'
import { paramOf, type WarningList } from './warning-list.ts'

/** The calls of one assistant turn that came with one id, in their order. */
interface OpenCalls {
  readonly sentIds: string[]
  answered: number
}

/**
 * Results are joined with the calls still open, not with all ids ever seen: some models use one id for every call. A
 * second result for a call is left out with a warning.
 */
export function pairTools(turns: readonly Turn[], rule: ToolIdRule, warnings: WarningList): Turn[] | Failure {
  const ids = new ToolIds(rule)
  const paired: Turn[] = []
  let open = new Map<string, OpenCalls>()
  let place = '/messages'
  for (const [index, turn] of turns.entries()) {
    if (turn.role === 'assistant') {
      // Assistant turns in a row are one turn to the model: the calls of all of them are answered behind the last.
      if (turns[index - 1]?.role !== 'assistant') {
        const failure = unanswered(open, place)
        if (failure) return failure
        open = new Map()
        place = turn.place ?? '/messages'
      }
      paired.push({ ...turn, blocks: turn.blocks.map((block) => renamedCall(block, ids, index, open)) })
    } else if (turn.role === 'user') {
      const blocks: UserBlock[] = []
      for (const block of turn.blocks) {
        const kept = block.kind === 'tool-result' ? renamedResult(block, open, turn.place, warnings) : block
        if (kept && 'code' in kept) return kept
        if (kept) blocks.push(kept)
      }
      paired.push({ ...turn, blocks })
    } else {
      paired.push(turn)
    }
  }
  return unanswered(open, place) ?? paired
}

function renamedCall(block: AssistantBlock, ids: ToolIds, turn: number, open: Map<string, OpenCalls>): AssistantBlock {
  if (block.kind !== 'tool-call') return block
  const sentId = ids.take(block.id, turn)
  const calls = open.get(block.id)
  if (calls) calls.sentIds.push(sentId)
  else open.set(block.id, { sentIds: [sentId], answered: 0 })
  return { ...block, id: sentId }
}

/** undefined = the call has had its answer. */
function renamedResult(
  block: ToolResultBlock,
  open: ReadonlyMap<string, OpenCalls>,
  place: string | undefined,
  warnings: WarningList,
): ToolResultBlock | Failure | undefined {
  const calls = open.get(block.callId)
  if (!calls) {
    return invalidRequest(
      `The tool result for ${shownCallId(block.callId)} answers no tool call of the assistant message before it.`,
      paramOf(place ?? '/messages'),
    )
  }
  const callId = calls.sentIds[calls.answered]
  if (callId === undefined) {
    warnings.add('duplicate_tool_result_dropped', place ?? '/messages')
    return undefined
  }
  calls.answered++
  return { ...block, callId }
}

function unanswered(open: ReadonlyMap<string, OpenCalls>, place: string): Failure | undefined {
  for (const [id, { sentIds, answered }] of open) {
    if (answered === sentIds.length) continue
    return invalidRequest(
      `The tool call ${shownCallId(id)} has no tool result. Each call must be answered before the next assistant message.`,
      paramOf(place),
    )
  }
  return undefined
}
