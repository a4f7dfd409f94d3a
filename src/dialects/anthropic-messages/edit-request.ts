// What changes in a Messages body on the way to a provider of the same dialect: the model's name, traces of the gateway
// itself in the history, a cap, a speed or another model that is not paid for, and, for hosts that have none, Anthropic's billing line.
// Everything else is forwarded byte for byte.

import { type ByteEdit, type JsonMember, spliceBytes } from '../../wire/json-members.ts'
import type { RequestEdits } from '../byte-lane/edits.ts'
import { capWarnings, cutMembers, dearerMember, sentCap, tierWarning, unpaidModels } from '../byte-lane/edits.ts'
import type { Envelope } from '../canonical/translation.ts'
import type { EditedRequest } from '../dialect.ts'
import { attributionEdits } from './attribution-line.ts'
import { ownTraceEdits } from './cut-own-traces.ts'

/** Processing for several times the price. */
const dearerSpeeds = ['fast']
/** What Anthropic tries when the model declines, and OpenRouter when it fails. */
const modelNames = ['fallbacks', 'fallback_credit_token', 'models', 'route']
const encoder = new TextEncoder()

export function editRequest(envelope: Envelope, edits: RequestEdits): EditedRequest {
  const { body, members, outputCap } = envelope
  const changes = ownTraceEdits(body, members)
  if (edits.rules.attributionLine === false) changes.push(...attributionEdits(body, members))
  const refused: string[] = []
  const model = members.find('model')
  if (model) changes.push(replaceValue(model, JSON.stringify(edits.upstreamModel)))
  const written = members.find('max_tokens')
  const cap = sentCap(envelope, edits)
  if (written && cap !== outputCap) changes.push(replaceValue(written, String(cap)))
  const warnings = capWarnings(envelope, edits, written)
  const speed = dearerMember(envelope, edits, 'speed', dearerSpeeds)
  if (speed) {
    // The flag that unlocks a speed says nothing without it, and may stay.
    refused.push(speed.name)
    warnings.push(tierWarning(speed))
  }
  const foreign = unpaidModels(envelope, edits, modelNames)
  if (foreign) {
    refused.push(...foreign.members)
    changes.push(...foreign.edits)
    warnings.push(...foreign.warnings)
  }
  if (refused.length > 0) changes.push(...cutMembers(members, refused))
  changes.sort((a, b) => a.start - b.start)
  return { body: spliceBytes(body, changes), warnings }
}

function replaceValue(member: JsonMember, jsonText: string): ByteEdit {
  return { start: member.valueStart, end: member.valueEnd, bytes: encoder.encode(jsonText) }
}
