import type { ProviderData } from '../provider.ts'

// https://docs.fireworks.ai/tools-sdks/openai-compatibility, 2026-11
// https://docs.fireworks.ai/tools-sdks/anthropic-compatibility, 2026-11
export const fireworks: ProviderData = {
  id: 'fireworks',
  variable: 'FIREWORKS_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.fireworks.ai/inference/v1',
      auth: 'bearer',
      // A larger cap without a stream is a 400: nullclaw/nullclaw#231, 2026-03.
      rules: { outputCapName: 'max_tokens', systemRole: 'system', topK: true, unstreamedOutputMax: 4096 },
    },
    {
      dialect: 'anthropic-messages',
      baseUrl: 'https://api.fireworks.ai/inference',
      auth: 'bearer',
      rules: { dialectVersion: '2023-06-01', attributionLine: false },
    },
  ],
}
