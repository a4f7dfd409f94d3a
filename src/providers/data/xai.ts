import type { ProviderData } from '../provider.ts'

// https://www.npmjs.com/package/@ai-sdk/xai/v/3.0.138, 2026-11. What reasoning models refuse is a rule of theirs; the
// Anthropic endpoint there is deprecated. Reasoning is reported beside completion_tokens and counts against the cap: a
// reply cut by its length had 1,187 and 860 tokens (evalstate/fast-agent#276, 2025-07).
export const xai: ProviderData = {
  id: 'xai',
  variable: 'XAI_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.x.ai/v1',
      auth: 'bearer',
      // The number of tools: anomalyco/opencode#28911, 2026-05.
      rules: { outputCapName: 'max_completion_tokens', systemRole: 'system', toolsMax: 200 },
    },
  ],
}
