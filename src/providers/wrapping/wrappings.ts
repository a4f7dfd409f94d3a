// The host-specific forms of a dialect by id, and the one of Vertex AI: the model and the verb are in the path, the version
// in the body; replies are unchanged.
// https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude, 2026-11

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

export const wrappings: Readonly<Record<WrappingId, Wrapping>> = {
  'invoke-model': invokeModel,
  'raw-predict': rawPredict,
  'invoke-embedding': invokeEmbedding,
  'predict-embedding': predictEmbedding,
}
