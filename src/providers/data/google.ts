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
      // Flex is cheaper than the standard (https://ai.google.dev/gemini-api/docs/flex-inference, 2026-11). Priority is
      // dearer, and no price in the catalog covers it.
      rules: { economyTier: true },
    },
  ],
}
