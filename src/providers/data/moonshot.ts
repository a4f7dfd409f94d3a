import type { ProviderData } from '../provider.ts'

// https://www.developersdigest.tech/reference/api-compatibility/moonshot, 2026-11
export const moonshot: ProviderData = {
  id: 'moonshot',
  variable: 'MOONSHOT_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.moonshot.ai/v1',
      auth: 'bearer',
      rules: {
        outputCapName: 'max_tokens',
        systemRole: 'system',
        strictTools: false,
        // A 400: https://github.com/gHashTag/BrowserOS/pull/1, 2026-05.
        parallelFlag: false,
        // `required` is not known, and temperatures end at 1: https://docs.litellm.ai/docs/providers/moonshot, 2026-10.
        forcedToolChoice: false,
        temperatureMax: 1,
      },
    },
    {
      dialect: 'anthropic-messages',
      baseUrl: 'https://api.moonshot.ai/anthropic',
      auth: 'bearer',
      rules: { dialectVersion: '2023-06-01', attributionLine: false },
    },
  ],
}
