// Why a Responses reply ended.
//
//   status, incomplete_details.reason    calls   reply stops with
//   completed                            yes     tool-calls
//   completed                            no      refusal after refusal text, else end
//   incomplete, max_output_tokens        any     length: a call may be cut in the middle
//   incomplete, content_filter           any     refusal
//   incomplete, any other                any     length: whatever it was, something is missing
//
// A reply that failed or was cancelled has no ending and never comes here.

import type { Stop } from '../canonical/reply.ts'

/** What a stream said about its end, and what it held. */
export interface ReplyEnding {
  /** '' = the reply is complete; otherwise why it is not. */
  readonly incomplete: string
  readonly hasCalls: boolean
  /** The refusal's words; '' = none. */
  readonly refusal: string
}

export function readStop({ incomplete, hasCalls, refusal }: ReplyEnding): Stop {
  const raw = incomplete === '' ? 'completed' : incomplete
  const explained = refusal === '' ? {} : { explanation: refusal }
  if (incomplete === 'content_filter') return { unified: 'refusal', raw, ...explained }
  if (incomplete !== '') return { unified: 'length', raw }
  if (hasCalls) return { unified: 'tool-calls', raw }
  return refusal === '' ? { unified: 'end', raw } : { unified: 'refusal', raw, ...explained }
}
