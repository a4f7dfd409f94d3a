import type { ProviderData } from '../provider.ts'

// https://platform.openai.com/docs/api-reference, 2026-11
export const openai: ProviderData = {
  id: 'openai',
  variable: 'OPENAI_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.openai.com/v1',
      auth: 'bearer',
      // https://platform.openai.com/docs/models, 2026-11: these are only served by the other one.
      models: /^(?!.*(-pro\b|codex|deep-research))/,
      rules: {
        // max_tokens is deprecated there and refused by every reasoning model.
        outputCapName: 'max_completion_tokens',
        systemAsParts: true,
        endUserIdName: 'safety_identifier',
        // It gives none away here and wants none back; members that it does not know are a 400.
        reasoningMembers: false,
      },
    },
    // For models that the other one does not have, and those that refuse tools there while they reason.
    {
      dialect: 'openai-responses',
      baseUrl: 'https://api.openai.com/v1',
      auth: 'bearer',
      rules: { endUserIdName: 'safety_identifier' },
    },
  ],
}
