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
      // The older name of the cap is deprecated there; logit_bias is a 400. No reasoning is echoed: an unknown member
      // of a message is an error (tashfeenahmed/freellmapi#1070), and no echo is the rule unless one is set.
      rules: { outputCapName: 'max_completion_tokens', logitBias: false },
    },
  ],
}
