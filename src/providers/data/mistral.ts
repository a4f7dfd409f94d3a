import type { ProviderData } from '../provider.ts'

// https://docs.mistral.ai/api/endpoint/chat, 2025-12
export const mistral: ProviderData = {
  id: 'mistral',
  variable: 'MISTRAL_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.mistral.ai/v1',
      auth: 'bearer',
      // A member it does not know is a 422: the cap's newer name (editor-code-assistant/eca#231), seed (it says
      // random_seed), logit_bias, stream_options (openai/openai-agents-python#442; usage comes without being asked for),
      // user, reasoning_content in a message (charmbracelet/crush#1590). Ids of tool calls and the turn after a result
      // are rules of its models.
      rules: {
        outputCapName: 'max_tokens',
        systemRole: 'system',
        seed: false,
        logitBias: false,
        streamUsage: false,
        endUserId: false,
        reasoningMembers: false,
      },
    },
  ],
}
