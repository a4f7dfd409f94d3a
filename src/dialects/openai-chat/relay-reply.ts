// A whole Chat Completions reply on the byte lane: the provider's bytes with the model's name and the cost spliced in.

import { openBracket } from '../../wire/ascii.ts'
import { JsonSpans } from '../../wire/json-spans.ts'
import type { RelayContext, RelayedReply } from '../byte-lane/relay.ts'
import { costEdit, isObject, isPresent, parseSpan, spliceReply } from '../byte-lane/reply-edits.ts'
import type { ProviderFault } from '../canonical/provider-fault.ts'
import { replyFault } from '../canonical/provider-fault.ts'
import { readErrorObject } from './failure.ts'
import { readUsage } from './usage.ts'

/** A scratch pad: filled and read within one call, never between two. */
const spans = new JsonSpans(['model', 'choices', 'usage', 'error'])

export function relayReply(
  body: Uint8Array<ArrayBuffer>,
  context: RelayContext,
): RelayedReply | { readonly fault: ProviderFault } {
  if (!spans.read(body, 0, body.length))
    return { fault: replyFault('a reply that is no JSON object, or not all of it') }
  const { model, choices, usage: usageSpan, error } = spans.of
  if (isPresent(body, error)) return { fault: readErrorObject(parseSpan(body, error)) }
  if (choices.start < 0 || body[choices.start] !== openBracket) return { fault: replyFault('a reply without choices') }
  const usage = isObject(body, usageSpan) ? readUsage(parseSpan(body, usageSpan)) : undefined
  const cost = usage && context.costOf(usage)
  const edit = cost === undefined ? undefined : costEdit(body, usageSpan, cost)
  return { body: spliceReply(body, model, context.modelJson, edit), usage }
}
