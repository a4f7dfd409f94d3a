import type { ProviderData } from '../provider.ts'

// https://ai.google.dev/api/generate-content, 2026-11
export const google: ProviderData = {
  id: 'google',
  variable: 'GEMINI_API_KEY',
  endpoints: [
    {
      dialect: 'gemini',
      baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
      auth: 'x-goog-api-key',
      // Flex and priority are served for money: https://ai.google.dev/gemini-api/docs/flex-inference, 2026-11.
      rules: { fastTier: true },
    },
  ],
}
