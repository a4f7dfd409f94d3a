// What holds a request that passes by span to what is paid for: no larger output cap than is held, and no processing at
// a higher price than the model's. Each dialect says under which names these stand.

import { type JsonMember, memberText } from '../../wire/json-members.ts'
import type { Envelope } from '../canonical/envelope.ts'
import type { Warning } from '../canonical/translation.ts'
import type { RequestEdits } from './relay.ts'

/** The cap that goes out; undefined = none. */
export function sentCap({ outputCap }: Envelope, edits: RequestEdits): number | undefined {
  const affordable = edits.outputCapMost ?? Number.POSITIVE_INFINITY
  const cap = Math.min(outputCap ?? edits.defaultOutputCap ?? affordable, affordable)
  // A host may refuse a cap that does not fit beside the prompt, so that none is added only to say what the model can.
  return cap === Number.POSITIVE_INFINITY ? undefined : Math.min(cap, edits.maxOutputTokens ?? cap)
}

/** What the caller is told of its cap at `member`, as a translation would tell it. */
export function capWarnings({ outputCap }: Envelope, edits: RequestEdits, member: JsonMember | undefined): Warning[] {
  const { outputCapMost = Number.POSITIVE_INFINITY, maxOutputTokens = Number.POSITIVE_INFINITY } = edits
  const isClamped = outputCap !== undefined && Math.min(outputCap, outputCapMost) > maxOutputTokens
  return isClamped && member ? [{ code: 'max_tokens_clamped', field: `/${member.name}` }] : []
}

/** The member under `name`, where it asks for processing at a higher price that nobody would pay for. */
export function dearerMember(
  { body, members }: Envelope,
  { rules, isOwn }: RequestEdits,
  name: string,
  dearer: readonly string[],
): JsonMember | undefined {
  const member = rules.fastTier === true || isOwn ? undefined : members.find(name)
  return member && dearer.includes(memberText(body, member) ?? '') ? member : undefined
}

export function tierWarning({ name }: JsonMember): Warning {
  return { code: 'service_tier_dropped', field: `/${name}` }
}
