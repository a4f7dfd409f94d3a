// Why a Messages reply ended: the provider's words read, and ours written.

import { isRecord, textOf } from '../canonical/json.ts'
import type { Stop, StopReason as Unified } from '../canonical/reply.ts'

const unified: Readonly<Record<string, Unified>> = {
  end_turn: 'end',
  stop_sequence: 'stop-sequence',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool-calls',
  pause_turn: 'pause',
  refusal: 'refusal',
  compaction: 'end',
}

/** The members of message_delta's `delta` as last seen, and what the stream held. */
export interface ReplyEnding {
  readonly members: Readonly<Record<string, unknown>>
  readonly hasCalls: boolean
  /** Tools were called that the provider runs itself. */
  readonly hasServerTools: boolean
}

export function readStop(ending: ReplyEnding): Stop {
  const stop = unifiedStop(ending)
  return Object.hasOwn(unified, stop.raw) ? stop : { ...stop, isUnknown: true }
}

function unifiedStop({ members, hasCalls, hasServerTools }: ReplyEnding): Stop {
  const raw = textOf(members.stop_reason)
  const said = Object.hasOwn(unified, raw) ? (unified[raw] as Unified) : 'end'
  if (said === 'end' && hasCalls) return { unified: 'tool-calls', raw }
  // No call is left for the caller to answer: the provider waits for its own.
  if (said === 'tool-calls' && !hasCalls) return { unified: hasServerTools ? 'pause' : 'end', raw }
  if (said === 'stop-sequence' && typeof members.stop_sequence === 'string') {
    return { unified: said, raw, sequence: members.stop_sequence }
  }
  const explanation = isRecord(members.stop_details) ? textOf(members.stop_details.explanation) : ''
  return { unified: said, raw, ...(said === 'refusal' && explanation !== '' ? { explanation } : {}) }
}

export const stopReasons: Readonly<Record<Unified, string>> = {
  end: 'end_turn',
  length: 'max_tokens',
  'stop-sequence': 'stop_sequence',
  'tool-calls': 'tool_use',
  refusal: 'refusal',
  pause: 'pause_turn',
}
