// What a chat begins with: its tools, its instructions and its first message.

import type { JsonSpan } from '../../wire/json-spans.ts'
import { firstMessageSpans, memberSpans } from '../byte-lane/envelope.ts'
import type { Envelope } from '../canonical/translation.ts'

const instructing: ReadonlySet<string> = new Set(['system', 'developer'])

export function conversationSpans(envelope: Envelope): readonly JsonSpan[] {
  return [...memberSpans(envelope, 'tools'), ...firstMessageSpans(envelope, instructing)]
}
