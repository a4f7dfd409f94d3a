import type { ProviderData } from '../provider.ts'

// https://docs.z.ai/api-reference/llm/chat-completion, 2025-12; the address again 2026-06. The Anthropic endpoint there
// belongs to another plan.
export const zai: ProviderData = {
  id: 'zai',
  variable: 'ZAI_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.z.ai/api/paas/v4',
      auth: 'bearer',
      rules: {
        outputCapName: 'max_tokens',
        systemRole: 'system',
        // Of tool choices only auto, of stop words only one, of JSON only any object.
        forcedToolChoice: false,
        stopMax: 1,
        jsonOutput: 'object',
        temperatureMax: 1,
        penalties: false,
        logitBias: false,
        seed: false,
      },
    },
  ],
}
