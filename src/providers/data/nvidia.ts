import type { ProviderData } from '../provider.ts'

// https://docs.api.nvidia.com/nim/reference/llm-apis, 2026-06. Every model has a schema of its own there, and no effort
// is common to them.
export const nvidia: ProviderData = {
  id: 'nvidia',
  variable: 'NVIDIA_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://integrate.api.nvidia.com/v1',
      auth: 'bearer',
      rules: { outputCapName: 'max_tokens', systemRole: 'system', strictTools: false, efforts: [] },
    },
  ],
}
