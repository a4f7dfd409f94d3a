// Why a generateContent reply ended.
//
//   finishReason                             calls   reply stops with
//   STOP                                     no      end
//   STOP                                     yes     tool-calls; there is no word of its own for them
//   MAX_TOKENS, CONTINUATION                 any     length
//   SAFETY and its kin                       any     refusal
//   no candidate, promptFeedback.blockReason –       refusal
//   MALFORMED_FUNCTION_CALL and its kin      any     no ending: the reply has failed
//   OTHER and its kin, a word not known      no      end, told as odd
//   OTHER and its kin, a word not known      yes     tool-calls, told as odd

import { type ProviderFault, replyFault } from '../canonical/faults.ts'
import type { Stop } from '../canonical/reply.ts'

/** What a stream said about its end, and what it held. */
export interface ReplyEnding {
  readonly finish: string
  /** The provider's words about it; '' = none. */
  readonly message: string
  readonly hasCalls: boolean
}

const lengths: ReadonlySet<string> = new Set(['MAX_TOKENS', 'CONTINUATION'])
const refusals: ReadonlySet<string> = new Set([
  'SAFETY',
  'RECITATION',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'LANGUAGE',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
])
/** The model wrote something that is no reply; asked again, it may write another. */
const failures: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
])

export function readStop({ finish, message, hasCalls }: ReplyEnding): Stop | { readonly fault: ProviderFault } {
  if (failures.has(finish)) return { fault: { ...replyFault(saying(finish, message)), code: finish, isChance: true } }
  if (finish === 'STOP') return { unified: hasCalls ? 'tool-calls' : 'end', raw: finish }
  if (lengths.has(finish)) return { unified: 'length', raw: finish }
  if (refusals.has(finish)) {
    return { unified: 'refusal', raw: finish, ...(message === '' ? {} : { explanation: message }) }
  }
  // Whoever was called must answer, whatever the word for it.
  return { unified: hasCalls ? 'tool-calls' : 'end', raw: finish, isUnknown: true }
}

/** The prompt itself was refused, and there is no answer. The reason may be blank. */
export function blockedStop(reason: string, message: string): Stop {
  const word = reason === '' ? 'BLOCKED_REASON_UNSPECIFIED' : reason
  return { unified: 'refusal', raw: word, explanation: `prompt blocked: ${saying(word, message)}` }
}

function saying(word: string, message: string): string {
  return message === '' ? word : `${word}: ${message}`
}
