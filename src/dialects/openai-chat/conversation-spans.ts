// What a chat begins with: its tools, its instructions and its first message.

import type { JsonSpan } from '../../wire/json-spans.ts'
import { firstMessageSpans, memberSpans } from '../byte-lane/conversation-spans.ts'
import type { Envelope } from '../canonical/envelope.ts'

const instructing: ReadonlySet<string> = new Set(['system', 'developer'])

export function conversationSpans(envelope: Envelope): readonly JsonSpan[] {
  return [...memberSpans(envelope, 'tools'), ...firstMessageSpans(envelope, instructing)]
}
