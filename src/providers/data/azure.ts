import type { ProviderData } from '../provider.ts'
import { chatModels } from './openai.ts'

// https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle, 2026-11: one address without a version in
// the query, for both dialects. Models are deployments under names that their owner chose, so that the catalog has no
// routes here; an entry in the configuration file has.
export const azure: ProviderData = {
  id: 'azure',
  variable: 'AZURE_OPENAI_API_KEY',
  // https://NAME.openai.azure.com
  needs: ['AZURE_OPENAI_ENDPOINT'],
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: '{AZURE_OPENAI_ENDPOINT}/openai/v1',
      auth: 'api-key',
      // Deployments are mostly called as their models are.
      models: chatModels,
      // As for the same models elsewhere; who the end user is goes by the older name.
      rules: { outputCapName: 'max_completion_tokens', systemAsParts: true, reasoningMembers: false, toolsMax: 128 },
    },
    {
      dialect: 'openai-responses',
      baseUrl: '{AZURE_OPENAI_ENDPOINT}/openai/v1',
      auth: 'api-key',
      rules: { endUserIdName: 'user' },
    },
  ],
}
