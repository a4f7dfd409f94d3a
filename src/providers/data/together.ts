import type { ProviderData } from '../provider.ts'

// https://www.developersdigest.tech/reference/api-compatibility/together, 2026-11
export const together: ProviderData = {
  id: 'together',
  variable: 'TOGETHER_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.together.ai/v1',
      auth: 'bearer',
      rules: { outputCapName: 'max_tokens', systemRole: 'system', strictTools: false, topK: true },
    },
  ],
}
