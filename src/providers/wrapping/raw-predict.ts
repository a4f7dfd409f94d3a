// Messages on Vertex AI: the model and the verb stand in the path, the version in the body; replies are as they are.
// https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude, 2026-11

import { messagesPath, readMessagesCall, withoutDialectHeaders } from './messages-call.ts'
import type { Wrapping } from './wrapping.ts'

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
