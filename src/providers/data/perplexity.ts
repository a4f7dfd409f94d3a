import type { ProviderData } from '../provider.ts'

// https://docs.perplexity.ai/api-reference/chat-completions-post, 2025-12. The catalog has none of its models: each
// call costs a fee besides its tokens, which a price per token cannot say. An entry in the configuration file can.
export const perplexity: ProviderData = {
  id: 'perplexity',
  variable: 'PERPLEXITY_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.perplexity.ai',
      auth: 'bearer',
      rules: { outputCapName: 'max_tokens', systemRole: 'system' },
    },
  ],
}
