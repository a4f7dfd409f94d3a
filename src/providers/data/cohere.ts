import type { ProviderData } from '../provider.ts'

// https://docs.cohere.com/docs/compatibility-api, 2026-11
export const cohere: ProviderData = {
  id: 'cohere',
  variable: 'COHERE_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.cohere.ai/compatibility/v1',
      auth: 'bearer',
      // Its page named logit_bias and parallel_tool_calls as not supported (2025-12), and effort for reasoning models
      // alone (2026-06).
      rules: { outputCapName: 'max_tokens', logitBias: false, parallelFlag: false, efforts: [] },
    },
  ],
}
