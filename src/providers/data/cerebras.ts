import type { ProviderData } from '../provider.ts'

// https://inference-docs.cerebras.ai/resources/openai, 2026-11
export const cerebras: ProviderData = {
  id: 'cerebras',
  variable: 'CEREBRAS_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.cerebras.ai/v1',
      auth: 'bearer',
      // Each of the three is a 400 there: https://hexdocs.pm/req_llm/cerebras.html, 2026-11.
      // So is reasoning in the history: Kilo-Org/kilocode#10375, 2026-09.
      rules: {
        outputCapName: 'max_completion_tokens',
        penalties: false,
        logitBias: false,
        parallelFlag: false,
        reasoningMembers: false,
      },
    },
  ],
}
