import type { ProviderData } from '../provider.ts'

// https://console.groq.com/docs/openai, 2026-11
export const groq: ProviderData = {
  id: 'groq',
  variable: 'GROQ_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.groq.com/openai/v1',
      auth: 'bearer',
      // The older name of the cap is deprecated there; logit_bias is a 400, and so is a member of a message that it does
      // not know (tashfeenahmed/freellmapi#1070).
      rules: { outputCapName: 'max_completion_tokens', logitBias: false, reasoningMembers: false },
    },
  ],
}
