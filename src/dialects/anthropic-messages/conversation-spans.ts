// What a Messages conversation begins with: its system prompt, behind the line that changes with every call, its tools
// and its first message.

import type { JsonSpan } from '../../wire/json-spans.ts'
import { firstMessageSpans, memberSpans } from '../byte-lane/envelope.ts'
import type { Envelope } from '../canonical/translation.ts'
import { behindAttribution } from './attribution-line.ts'

/** Instructions have a place of their own. */
const nobody: ReadonlySet<string> = new Set()

export function conversationSpans(envelope: Envelope): readonly JsonSpan[] {
  const system = memberSpans(envelope, 'system').map((span) => ({
    start: behindAttribution(envelope.body, span),
    end: span.end,
  }))
  return [...system, ...memberSpans(envelope, 'tools'), ...firstMessageSpans(envelope, nobody)]
}
