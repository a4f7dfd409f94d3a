import type { ProviderData } from '../provider.ts'

// https://huggingface.co/docs/inference-providers/en/tasks/chat-completion, 2026-06. A router: whoever it passes a
// request on to decides what else is taken.
export const huggingface: ProviderData = {
  id: 'huggingface',
  variable: 'HF_TOKEN',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://router.huggingface.co/v1',
      auth: 'bearer',
      rules: { outputCapName: 'max_tokens', systemRole: 'system' },
    },
  ],
}
