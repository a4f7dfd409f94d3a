import type { ProviderData } from '../provider.ts'
import { family } from '../rules/rule-table.ts'

// https://console.groq.com/docs/openai, 2026-11
export const groq: ProviderData = {
  id: 'groq',
  variable: 'GROQ_API_KEY',
  endpoints: [
    {
      dialect: 'openai-chat',
      baseUrl: 'https://api.groq.com/openai/v1',
      auth: 'bearer',
      // The older name of the cap is deprecated there; logit_bias is a 400, and so is a member of a message that it does
      // not know (tashfeenahmed/freellmapi#1070).
      rules: {
        outputCapName: 'max_completion_tokens',
        logitBias: false,
        reasoningMembers: false,
        efforts: [],
        // gsd-build/gsd-2#4376, 2026-04
        toolsMax: 128,
      },
      // An effort is a 400 for every other model; Qwen is only turned off, since `default` is no effort
      // (https://console.groq.com/docs/reasoning, 2026-09, by way of ENTERPILOT/GoModel#946).
      modelRules: [
        { models: family('gpt-oss(?:-safeguard)?'), rules: { efforts: ['low', 'medium', 'high'] } },
        { models: family('qwen-?3(?:\\.\\d+)?'), rules: { efforts: ['none'], thinksByDefault: true } },
      ],
    },
  ],
}
