// The host-specific forms of a dialect by id, and those of Vertex AI; its replies are those of the dialect. Claude: the model
// and the verb are in the path, the version in the body. Gemini: the service tier is in a header.
// https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude, 2026-11

import { hasBytes } from '../../wire/bytes.ts'
import { JsonEdits, JsonFault, readJson } from '../../wire/json.ts'
import type { WrappingId } from '../provider.ts'
import { invokeEmbedding, predictEmbedding } from './embeddings.ts'
import { invokeModel } from './invoke-model.ts'
import { messagesPath, readMessagesCall, type Wrapping, withoutDialectHeaders } from './messages-call.ts'

const version = { anthropic_version: 'vertex-2023-10-16' }
const countPath = `${messagesPath}/count_tokens`

export const rawPredict: Wrapping = {
  wrap({ path, headers, body }, endpoint) {
    const call = readMessagesCall(body, headers, endpoint)
    const { warnings } = call
    const plain = withoutDialectHeaders(headers)
    const sent = call.betas.length > 0 ? { ...plain, 'anthropic-beta': call.betas.join(',') } : plain
    if (path === countPath) {
      return { path: '/models/count-tokens:rawPredict', headers: sent, body: call.bodyWith(version, []), warnings }
    }
    if (path !== messagesPath) return undefined
    const verb = call.isStreamed ? 'streamRawPredict' : 'rawPredict'
    const model = encodeURIComponent(call.model)
    return { path: `/models/${model}:${verb}`, headers: sent, body: call.bodyWith(version, ['model']), warnings }
  },
  unwrap: (response) => response,
}

const tierMember = Buffer.from('"serviceTier"')

/**
 * `dedicated` is the capacity that the project has bought. Without it, such capacity is used first, whatever else is asked for.
 * https://docs.cloud.google.com/vertex-ai/generative-ai/docs/priority-paygo and /flex-paygo, 2026-11
 */
const tierHeader = (word: string): string =>
  word === 'dedicated' ? 'x-vertex-ai-llm-request-type' : 'x-vertex-ai-llm-shared-request-type'

export const vertexTiers: Wrapping = {
  wrap({ path, headers, body }) {
    const root = hasBytes(body, tierMember) ? readJson(body) : undefined
    const member = root === undefined || root instanceof JsonFault ? undefined : root.get('serviceTier')
    if (member === undefined) return { path, headers, body, warnings: [] }
    const edits = new JsonEdits(body)
    edits.remove(member)
    // What is no visible text would break the header, and means nothing to the host.
    const word = /^[\w-]{1,64}$/.exec(member.string ?? '')?.[0]
    const asked = word === undefined ? headers : { ...headers, [tierHeader(word)]: word }
    return { path, headers: asked, body: edits.apply(), warnings: [] }
  },
  unwrap: (response) => response,
}

export const wrappings: Readonly<Record<WrappingId, Wrapping>> = {
  'invoke-model': invokeModel,
  'raw-predict': rawPredict,
  'tier-header': vertexTiers,
  'invoke-embedding': invokeEmbedding,
  'predict-embedding': predictEmbedding,
}
