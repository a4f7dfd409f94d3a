// Edits a Responses body for a provider of the same dialect. Everything that is not edited is forwarded byte for byte.

import { hasBytes } from '../../../wire/bytes.ts'
import type { JsonNode } from '../../../wire/json.ts'
import {
  BodyEdits,
  type EditedRequest,
  type PaidMembers,
  type RequestEdits,
  type ToolList,
  textIn,
} from '../../byte-lane/edits.ts'
import { responsesHostTiers } from '../../canonical/tiers.ts'
import type { SentRequest } from '../../canonical/translation.ts'
import { forgedContent, isOwnContent, ownContentMark, readCompacted, readEncrypted, reasons } from '../reasoning.ts'

const paid: PaidMembers = {
  models: ['preset'],
  freeTools:
    /^$|^(function|custom|namespace|local_shell|shell|apply_patch|computer|computer_use_preview|tool_search|mcp)$/,
  // Codex.
  dropsSearches: true,
}

const additionalWord = Buffer.from('additional_tools')
const ownMark = Buffer.from(ownContentMark)

export function editRequest(sent: SentRequest, edits: RequestEdits): EditedRequest {
  const body = new BodyEdits(sent, edits)
  const { root } = body
  body.nameModel()
  if (hasBytes(sent.body, ownMark)) removeOwnReasoning(body, edits)
  const hasMoreTools = edits.hostedTools && !edits.isOwn && hasBytes(sent.body, additionalWord)
  body.removeUnpaid(paid, hasMoreTools ? additionalTools(root) : [])
  // A compaction takes no settings.
  if (sent.envelope.upstreamPath !== undefined) {
    if (root.get('service_tier')) body.warn('service_tier_dropped', '/service_tier')
    body.removeMembers(['service_tier'])
    return body.finish()
  }
  body.editTier('service_tier', responsesHostTiers)
  const cap = body.cap(root.get('max_output_tokens') && '/max_output_tokens')
  if (cap !== undefined && cap !== sent.envelope.outputCap) body.put(root, 'max_output_tokens', String(cap))
  body.editCacheKey()
  if (edits.rules.endUserId === false) body.removeMembers(['user', 'safety_identifier'])
  // Nothing is stored on the operator's account at the provider, so the reasoning has to travel along, encrypted.
  const store = root.get('store')?.kind
  if (store !== 'false') body.put(root, 'store', 'false')
  if (store === 'true' && !sent.envelope.isStored) body.warn('store_dropped', '/store')
  const include = root.get('include')
  if (!include && reasons(edits.rules)) body.add(root, 'include', `[${encryptedWord}]`)
  // A caller that counts on storage does not ask for it.
  else if (include?.kind === 'array' && store !== 'false' && reasons(edits.rules)) includeEncrypted(body, include)
  return body.finish()
}

const encryptedWord = '"reasoning.encrypted_content"'

function includeEncrypted(body: BodyEdits, include: JsonNode): void {
  const parts = include.elements() ?? []
  if (parts.some((part) => part.text === encryptedWord)) return
  body.set(include, `[${[...parts.map((part) => part.text), encryptedWord].join(',')}]`)
}

/** Codex sends the tools of some models in input items. */
function additionalTools(root: JsonNode): ToolList[] {
  return (root.get('input')?.elements() ?? []).flatMap((item, i) => {
    const list = textIn(item, 'type') === 'additional_tools' ? item.get('tools') : undefined
    return list ? [{ list, at: `input[${i}].tools` }] : []
  })
}

function messageOf(text: string): string {
  return JSON.stringify({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })
}

/** Removes reasoning of other models, which only we can read, and puts the summaries that we made in their places. */
function removeOwnReasoning(body: BodyEdits, { contentTags }: RequestEdits): void {
  const all = body.root.get('input')?.elements() ?? []
  const compacted = all.map((item) => readCompacted(textIn(item, 'encrypted_content'), contentTags))
  const forgedSummary = compacted.indexOf('forged')
  if (forgedSummary !== -1) body.refuse(forgedContent, `input[${forgedSummary}].encrypted_content`)
  for (const [i, found] of compacted.entries()) {
    const item = all[i]
    if (item && found && found !== 'forged') body.set(item, messageOf(found.summary))
  }
  const items = all.map((item, i) => (compacted[i] === undefined ? item : undefined))
  const contents = items.map((item) => (item ? textIn(item, 'encrypted_content') : ''))
  const forged = contents.findIndex((content) => readEncrypted(content, '', contentTags) === 'forged')
  if (forged !== -1) body.refuse(forgedContent, `input[${forged}].encrypted_content`)
  const isOwn = contents.map(isOwnContent)
  if (isOwn.includes(true)) body.warn('thinking_dropped', `/input/${isOwn.indexOf(true)}/encrypted_content`)
  for (const [i, item] of items.entries()) if (item && isOwn[i]) body.remove(item)
}
