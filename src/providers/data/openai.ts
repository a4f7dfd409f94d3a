import type { ProviderData } from '../provider.ts'

/**
 * All but those that only Responses serves: https://platform.openai.com/docs/models, 2026-11. What follows a colon is the
 * name that the owner of a fine-tune gave it.
 */
export const chatModels = /^(?!(ft:)?[^:]*(-pro\b|codex|deep-research))/

// https://platform.openai.com/docs/api-reference, 2026-11
export const openai: ProviderData = {
  id: 'openai',
  variable: 'OPENAI_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.openai.com/v1',
      auth: 'bearer',
      models: chatModels,
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
