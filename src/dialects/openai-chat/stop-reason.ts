// Why a Chat Completions reply ended: the provider's words read, and ours written.
//
//   finish_reason                 calls   reply stops with
//   stop, a word not known, none  no      end; stop-sequence where the host names the match; refusal after refusal text
//   stop, a word not known, none  yes     tool-calls: many hosts say stop after a call
//   tool_calls, function_call     yes/no  tool-calls / end
//   length                        any     length: a call may be cut in the middle
//   content_filter                any     refusal
//
// `error` is no ending and never comes here.

import type { Stop, StopReason } from '../canonical/reply.ts'

/** What a stream said about its end, and what it held. */
export interface ReplyEnding {
  /** The last finish_reason; '' if there was none before a clean end. */
  readonly finish: string
  readonly hasCalls: boolean
  /** The refusal's words; '' = none. */
  readonly refusal: string
  /** The stop sequence that matched, where the host says so. */
  readonly matched: string | undefined
}

const known: ReadonlySet<string> = new Set(['stop', 'length', 'content_filter', 'tool_calls', 'function_call'])

export function readStop(ending: ReplyEnding): Stop {
  const stop = unifiedStop(ending)
  return known.has(ending.finish) ? stop : { ...stop, isUnknown: true }
}

function unifiedStop({ finish, hasCalls, refusal, matched }: ReplyEnding): Stop {
  const explained = refusal === '' ? {} : { explanation: refusal }
  if (finish === 'length') return { unified: 'length', raw: finish }
  if (finish === 'content_filter') return { unified: 'refusal', raw: finish, ...explained }
  if (hasCalls) return { unified: 'tool-calls', raw: finish }
  if (refusal !== '') return { unified: 'refusal', raw: finish, ...explained }
  if (matched !== undefined) return { unified: 'stop-sequence', raw: finish, sequence: matched }
  return { unified: 'end', raw: finish }
}

export const finishReasons: Readonly<Record<StopReason, string>> = {
  end: 'stop',
  length: 'length',
  'stop-sequence': 'stop',
  'tool-calls': 'tool_calls',
  refusal: 'content_filter',
  // A pause that nobody continued: the turn is over for the caller, and no tool waits for it.
  pause: 'stop',
}
