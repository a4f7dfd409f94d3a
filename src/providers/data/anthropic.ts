import type { ProviderData } from '../provider.ts'

// https://docs.claude.com/en/api/overview, 2026-11
export const anthropic: ProviderData = {
  id: 'anthropic',
  variable: 'ANTHROPIC_API_KEY',
  endpoints: [
    {
      dialect: 'anthropic-messages',
      baseUrl: 'https://api.anthropic.com',
      auth: 'x-api-key',
      // The later version takes no sampling settings at all, which models up to 4.6 do.
      rules: { dialectVersion: '2023-06-01' },
    },
  ],
}
