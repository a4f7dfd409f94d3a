import type { ProviderData } from '../provider.ts'

// https://platform.minimax.io/docs/api-reference/text-anthropic-api, 2026-11
// https://www.developersdigest.tech/reference/api-compatibility/minimax, 2026-11
export const minimax: ProviderData = {
  id: 'minimax',
  variable: 'MINIMAX_API_KEY',
  endpoints: [
    // First, because reasoning and text come apart only here.
    {
      dialect: 'anthropic-messages',
      baseUrl: 'https://api.minimax.io/anthropic',
      auth: 'bearer',
      // stop_sequences and top_k were ignored there (2025-12), so that stops are matched here; documents are not taken.
      rules: { dialectVersion: '2023-06-01', stopMax: 0, topK: false, documents: false, attributionLine: false },
    },
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.minimax.io/v1',
      auth: 'bearer',
      // Penalties and logit_bias were ignored (2025-12); models up to M3 think aloud in <think> tags.
      rules: { outputCapName: 'max_tokens', penalties: false, logitBias: false, thinkTags: true },
    },
  ],
}
