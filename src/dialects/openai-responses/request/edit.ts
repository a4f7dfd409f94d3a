// Edits a Responses body for a provider of the same dialect. Everything that is not edited is forwarded byte for byte.

import { hasBytes } from '../../../wire/bytes.ts'
import { type ByteEdit, memberKind } from '../../../wire/json-members.ts'
import {
  BodyEdits,
  cutSpans,
  type EditedRequest,
  elementsOf,
  objectAt,
  type PaidMembers,
  type RequestEdits,
  textAt,
} from '../../byte-lane/edits.ts'
import type { Envelope } from '../../canonical/translation.ts'
import { isOwnContent, ownContentMark } from '../encrypted-content.ts'
import { reasons } from './context.ts'

const paid: PaidMembers = {
  tier: ['service_tier', 'priority', 'fast'],
  models: ['models', 'route', 'preset'],
}

const ownMark = Buffer.from(ownContentMark)

export function editRequest(envelope: Envelope, edits: RequestEdits): EditedRequest {
  const { members, body: bytes, outputCap } = envelope
  const body = new BodyEdits(envelope, edits)
  body.changes.push(...cutOwnReasoning(envelope))
  const written = members.find('max_output_tokens')
  const cap = body.cap(written)
  if (cap !== undefined && cap !== outputCap) {
    if (written) body.replace(written, String(cap))
    else body.add('max_output_tokens', String(cap))
  }
  body.cutUnpaid(paid)
  if (edits.rules.endUserId === false) body.cut('user', 'safety_identifier')
  // Nothing is stored on the operator's account, so the reasoning has to travel along, encrypted.
  const store = members.find('store')
  if (store && memberKind(bytes, store) !== 'false') body.replace(store, 'false')
  if (!store) body.add('store', 'false')
  if (!members.find('include') && reasons(edits.rules)) body.add('include', '["reasoning.encrypted_content"]')
  return body.finish()
}

/** Removes reasoning of other models, which only we can read. */
function cutOwnReasoning({ body, members }: Envelope): ByteEdit[] {
  if (!hasBytes(body, ownMark)) return []
  const items = elementsOf(body, members.find('input'))
  return cutSpans(items, (i) => {
    const item = items[i] && objectAt(body, items[i])
    return isOwnContent(textAt(body, item?.find('encrypted_content')))
  })
}
