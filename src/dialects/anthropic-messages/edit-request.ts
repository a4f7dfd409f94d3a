// What changes in a Messages body on the way to a provider of the same dialect: the model's name, traces of the gateway
// itself in the history, a cap that the wallet cannot pay for, and, for hosts that have none, Anthropic's billing line.
// Everything else is forwarded byte for byte.

import { spliceBytes } from '../../wire/json-members.ts'
import type { RequestEdits } from '../byte-lane/relay.ts'
import type { Envelope } from '../canonical/envelope.ts'
import { attributionEdits } from './attribution-line.ts'
import { ownTraceEdits } from './cut-own-traces.ts'

export function editRequest({ body, members, outputCap = 0 }: Envelope, edits: RequestEdits): Uint8Array<ArrayBuffer> {
  const changes = ownTraceEdits(body, members)
  if (edits.rules.attributionLine === false) changes.push(...attributionEdits(body, members))
  const model = members.find('model')
  if (model) {
    const bytes = new TextEncoder().encode(JSON.stringify(edits.upstreamModel))
    changes.push({ start: model.valueStart, end: model.valueEnd, bytes })
  }
  const cap = members.find('max_tokens')
  const most = edits.outputCapMost
  if (cap && most !== undefined && outputCap > most) {
    changes.push({ start: cap.valueStart, end: cap.valueEnd, bytes: new TextEncoder().encode(String(most)) })
  }
  return spliceBytes(
    body,
    changes.sort((a, b) => a.start - b.start),
  )
}
