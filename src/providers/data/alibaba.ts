import type { ProviderData } from '../provider.ts'

// https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope, 2026-10. Keys belong to a
// region, and this is Singapore's. New workspaces have addresses of their own; a provider of the configuration file
// with this id and such an address replaces this one. `max_tokens` covers the answer alone on models before
// qwen4-max-preview (https://www.alibabacloud.com/help/en/model-studio/api-compatibility-upgrade-notice, 2026-11).
export const alibaba: ProviderData = {
  id: 'alibaba',
  variable: 'DASHSCOPE_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
      auth: 'bearer',
      rules: { outputCapName: 'max_tokens', capExcludesReasoning: true, systemRole: 'system' },
    },
  ],
}
