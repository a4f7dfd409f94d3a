import type { ProviderData } from '../provider.ts'

// https://www.developersdigest.tech/reference/api-compatibility/openrouter, 2026-11
// https://openrouter.ai/docs/api/api-reference/anthropic-messages/create-messages, 2026-06
export const openrouter: ProviderData = {
  id: 'openrouter',
  variable: 'OPENROUTER_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://openrouter.ai/api/v1',
      auth: 'bearer',
      // `user` is refused above 128 characters (maximhq/bifrost#1000).
      rules: { outputCapName: 'max_tokens', endUserIdMax: 128, topK: true },
    },
    {
      dialect: 'anthropic-messages',
      baseUrl: 'https://openrouter.ai/api',
      auth: 'bearer',
      rules: { dialectVersion: '2023-06-01' },
    },
  ],
}
