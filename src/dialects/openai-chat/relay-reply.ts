// A whole Chat Completions reply on the byte lane: the provider's bytes with the model's name and the cost spliced in.

import { JsonFault, memberKind, readJsonMembers, spliceBytes } from '../../wire/json-members.ts'
import type { ProviderFault, RelayContext, RelayedReply } from '../dialect.ts'
import { replyFault } from '../provider-fault.ts'
import { costEdit, parseSpan, spanOf } from '../reply-edits.ts'
import { readErrorObject } from './failure.ts'
import { readUsage } from './usage.ts'

export function relayReply(
  body: Uint8Array<ArrayBuffer>,
  context: RelayContext,
): RelayedReply | { readonly fault: ProviderFault } {
  const members = readJsonMembers(body)
  if (members instanceof JsonFault) return { fault: replyFault(`a reply that is no JSON: ${members.message}`) }
  const error = members.find('error')
  if (error && memberKind(body, error) !== 'null') return { fault: readErrorObject(parseSpan(body, spanOf(error))) }
  const choices = members.find('choices')
  if (!choices || memberKind(body, choices) !== 'array') return { fault: replyFault('a reply without choices') }

  const model = members.find('model')
  const usageMember = members.find('usage')
  const usage = usageMember && readUsage(parseSpan(body, spanOf(usageMember)))
  const cost = usage && context.costOf(usage)
  const edits = []
  if (model) edits.push({ ...spanOf(model), bytes: new TextEncoder().encode(JSON.stringify(context.model)) })
  const costed = usageMember && cost !== undefined ? costEdit(body, spanOf(usageMember), cost) : undefined
  if (costed) edits.push(costed)
  return {
    body: spliceBytes(
      body,
      edits.sort((a, b) => a.start - b.start),
    ),
    usage,
  }
}
