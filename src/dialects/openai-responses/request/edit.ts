// Edits a Responses body for a provider of the same dialect. Everything that is not edited is forwarded byte for byte.

import { hasBytes } from '../../../wire/bytes.ts'
import { memberKind } from '../../../wire/json.ts'
import {
  BodyEdits,
  type EditedRequest,
  elementsOf,
  objectAt,
  type PaidMembers,
  type RequestEdits,
  removeSpans,
  type ToolList,
  textAt,
} from '../../byte-lane/edits.ts'
import type { Envelope } from '../../canonical/translation.ts'
import { forgedContent, isOwnContent, ownContentMark, readEncrypted, reasons } from '../reasoning.ts'

const paid: PaidMembers = {
  tier: ['service_tier', 'priority', 'fast'],
  models: ['preset'],
  freeTools:
    /^$|^(function|custom|namespace|local_shell|shell|apply_patch|computer|computer_use_preview|tool_search|mcp)$/,
  // Codex.
  dropsSearches: true,
}

const additionalWord = Buffer.from('additional_tools')
const ownMark = Buffer.from(ownContentMark)

export function editRequest(envelope: Envelope, edits: RequestEdits): EditedRequest {
  const { members, body: bytes, outputCap } = envelope
  const body = new BodyEdits(envelope, edits)
  body.nameModel()
  cutOwnReasoning(envelope, body, edits)
  body.removeUnpaid(paid, edits.hostedTools && !edits.isOwn ? additionalTools(envelope) : [])
  // A compaction takes no settings.
  if (envelope.upstreamPath !== undefined) return body.finish()
  const written = members.find('max_output_tokens')
  const cap = body.cap(written)
  if (cap !== undefined && cap !== outputCap) {
    if (written) body.replace(written, String(cap))
    else body.add('max_output_tokens', String(cap))
  }
  body.editCacheKey()
  if (edits.rules.endUserId === false) body.remove('user', 'safety_identifier')
  // Nothing is stored on the operator's account at the provider, so the reasoning has to travel along, encrypted.
  const store = members.find('store')
  if (store && memberKind(bytes, store) !== 'false') {
    body.replace(store, 'false')
    if (memberKind(bytes, store) === 'true' && !envelope.isStored) body.warn('store_dropped', '/store')
  }
  if (!store) body.add('store', 'false')
  if (!members.find('include') && reasons(edits.rules)) body.add('include', '["reasoning.encrypted_content"]')
  return body.finish()
}

/** Codex sends the tools of some models in input items. */
function additionalTools({ body, members }: Envelope): ToolList[] {
  if (!hasBytes(body, additionalWord)) return []
  return elementsOf(body, members.find('input')).flatMap((span, i) => {
    const item = objectAt(body, span)
    const list = textAt(body, item?.find('type')) === 'additional_tools' ? item?.find('tools') : undefined
    return list ? [{ list, at: `input[${i}].tools` }] : []
  })
}

/** Removes reasoning of other models, which only we can read. */
function cutOwnReasoning({ body: bytes, members }: Envelope, body: BodyEdits, edits: RequestEdits): void {
  if (!hasBytes(bytes, ownMark)) return
  const items = elementsOf(bytes, members.find('input'))
  const contents = items.map((item) => textAt(bytes, objectAt(bytes, item)?.find('encrypted_content')))
  const isOwn = contents.map(isOwnContent)
  const tags = edits.contentTags
  const forged = contents.findIndex((content) => readEncrypted(content, '', tags) === 'forged')
  if (forged !== -1) body.refuse(forgedContent, `input[${forged}].encrypted_content`)
  const first = isOwn.indexOf(true)
  if (first === -1) return
  body.warn('thinking_dropped', `/input/${first}/encrypted_content`)
  body.changes.push(...removeSpans(items, (i) => isOwn[i] === true))
}
