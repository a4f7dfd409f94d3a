// Programs that serve models on the operator's own machine, each on its usual port. Their models are whatever is
// installed, so that none is named here.

import type { TargetRules } from '../../dialects/canonical/target-rules.ts'

export interface LocalServerData {
  readonly id: string
  readonly port: number
  /** What its list of models says as `owned_by`; set where other programs like the same port. */
  readonly ownedBy?: string
  readonly rules: TargetRules
}

const chat: TargetRules = { outputCapName: 'max_tokens', systemRole: 'system' }

export const localServers: readonly LocalServerData[] = [
  // https://www.developersdigest.tech/reference/api-compatibility/ollama, 2026-11
  { id: 'ollama', port: 11434, rules: { ...chat, logitBias: false } },
  // https://lmstudio.ai/docs/developer/openai-compat/chat-completions, 2026-06
  { id: 'lmstudio', port: 1234, rules: { ...chat, topK: true } },
  // https://www.developersdigest.tech/reference/api-compatibility/vllm, 2026-11
  { id: 'vllm', port: 8000, ownedBy: 'vllm', rules: { ...chat, topK: true } },
  // https://github.com/ggml-org/llama.cpp/tree/master/tools/server, 2025-12. An assistant message must have a content
  // that is a string (browser-use/browser-use#1635).
  { id: 'llamacpp', port: 8080, ownedBy: 'llamacpp', rules: { ...chat, topK: true, emptyContent: 'string' } },
]
