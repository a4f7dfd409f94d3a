import type { ProviderData } from '../provider.ts'

// https://api-docs.deepseek.com/ and https://api-docs.deepseek.com/guides/anthropic_api, 2026-11
export const deepseek: ProviderData = {
  id: 'deepseek',
  variable: 'DEEPSEEK_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.deepseek.com',
      auth: 'bearer',
      // The number of tools: https://api-docs.deepseek.com/api/create-chat-completion, 2025-12.
      rules: { outputCapName: 'max_tokens', systemRole: 'system', toolsMax: 128 },
    },
    {
      dialect: 'anthropic-messages',
      baseUrl: 'https://api.deepseek.com/anthropic',
      auth: 'x-api-key',
      // Blocks of documents were named there as not supported (2025-12).
      rules: { dialectVersion: '2023-06-01', documents: false, attributionLine: false },
    },
  ],
}
