// Rules of all other models, as far as they differ from the usual: mostly open weights that many hosts
// serve. A fact of one host, such as a field it refuses from anybody, does not belong here.

import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import { bareFamily, family, type RuleRow } from './rule-table.ts'

const chat = 'openai-chat'
const messages = 'anthropic-messages'
const checked = '2026-11-15'

const deepseek = 'https://api-docs.deepseek.com/guides/thinking_mode'
const kimi = 'https://java.agentscope.io/v2/en/integration/model/kimi'
/** Its data says which effort words a model takes at its creator. */
const levels = 'https://www.npmjs.com/package/@earendil-works/pi-ai/v/1.5.0'
const grok = 'https://docs.x.ai/developers/model-capabilities/text/reasoning'

// Its own API speaks both dialects. The reasoning is demanded back of turns that called tools and ignored elsewhere;
// reports say that it is missed elsewhere, too (Zoo-Code-Org/Zoo-Code#201), so that it always goes along.
const deepseekThinking: TargetRules = {
  efforts: ['low', 'high', 'max'],
  thinksByDefault: true,
  forcedToolChoice: false,
}

/** The second is its own name for the newest small one. */
const deepseekModels = 'deepseek-v[4-9]|deepseek-flash'
const mistral = '(?:open-)?mi[sx]tral|ministral|magistral|codestral|devstral|pixtral'

export const otherModels: readonly RuleRow[] = [
  {
    dialect: chat,
    models: bareFamily(deepseekModels),
    rules: {
      ...deepseekThinking,
      sampling: 'without-reasoning',
      reasoningEcho: { field: 'reasoning_content', when: 'always' },
    },
    source: deepseek,
    checked,
  },
  {
    dialect: chat,
    models: bareFamily(deepseekModels),
    // Strict tools are only to be had under another base URL.
    rules: { jsonOutput: 'object', strictTools: false },
    source: 'https://api-docs.deepseek.com/guides/json_mode',
    checked,
  },
  {
    dialect: messages,
    models: bareFamily(deepseekModels),
    rules: { ...deepseekThinking, thinking: ['enabled', 'disabled'] },
    source: deepseek,
    checked,
  },
  {
    dialect: chat,
    models: bareFamily('kimi-k[2-9](?:\\.\\d+)?'),
    rules: {
      sampling: 'none',
      efforts: [],
      thinksByDefault: true,
      strictTools: false,
      reasoningEcho: { field: 'reasoning_content', when: 'tool-turns' },
    },
    source: kimi,
    checked,
  },
  {
    dialect: chat,
    models: bareFamily('kimi-k3(?:\\.\\d+)?'),
    rules: { efforts: ['low', 'high', 'max'] },
    source: kimi,
    checked,
  },
  {
    dialect: chat,
    models: family('gpt-oss'),
    rules: { efforts: ['low', 'medium', 'high'], thinksByDefault: true },
    source: 'https://github.com/BerriAI/litellm/pull/38263',
    checked,
  },
  {
    dialect: chat,
    models: family(mistral),
    rules: { toolIdPattern: /^[A-Za-z0-9]{9}$/, toolIdMax: 9, assistantAfterTool: true, efforts: [] },
    source: 'https://github.com/anomalyco/opencode/issues/1680',
    checked,
  },
  {
    dialect: chat,
    models: family('mistral-small-(?:latest|2603|4)|mistral-medium-(?:3[.-]5|2604)'),
    rules: { efforts: ['none', 'high'], thinksByDefault: false },
    source: 'https://github.com/pydantic/pydantic-ai/issues/5285',
    checked,
  },
  {
    dialect: chat,
    models: family('mistral-large-4'),
    rules: { efforts: ['low', 'medium', 'high'], thinksByDefault: true },
    source: levels,
    checked,
  },
  {
    dialect: chat,
    models: family('magistral'),
    rules: { thinksByDefault: true },
    source: 'https://github.com/pydantic/pydantic-ai/issues/5285',
    checked,
  },
  {
    dialect: chat,
    models: family('grok-(?:3-mini|4(?:[.-]\\d+)?|code)'),
    rules: { efforts: [], penalties: false, stopMax: 0, thinksByDefault: true },
    source: grok,
    checked,
  },
  {
    dialect: chat,
    models: family('grok-3-mini'),
    rules: { efforts: ['low', 'high'] },
    source: grok,
    checked,
  },
  {
    dialect: chat,
    // 4.20 came before 4.3 and has no such dial.
    models: family('grok-4\\.[3-9]'),
    rules: { efforts: ['none', 'low', 'medium', 'high'] },
    source: `${grok}#effort-levels`,
    checked,
  },
  {
    dialect: chat,
    // The values that both sources agree on: `none` is refused there by one of them, and `xhigh` is not in the other.
    models: family('grok-4\\.[5-9]'),
    rules: { efforts: ['low', 'medium', 'high'] },
    source: levels,
    checked,
  },
  {
    dialect: chat,
    models: family('(?:zai-)?glm-5[.p-]2'),
    rules: { efforts: ['none', 'high', 'max'], thinksByDefault: true },
    source: levels,
    checked,
  },
  {
    dialect: chat,
    models: family('(?:zai-)?glm-5[.p-]3'),
    rules: { efforts: ['low', 'high', 'max'], thinksByDefault: true },
    source: levels,
    checked,
  },
  {
    dialect: chat,
    models: family('qwen-?3\\.8-27b'),
    rules: { efforts: ['none', 'low', 'medium', 'high'], thinksByDefault: true },
    source: levels,
    checked,
  },
  {
    dialect: chat,
    models: family('grok-3(?!-mini)|grok-4[a-z0-9.-]*-non-reasoning'),
    rules: { efforts: [], penalties: true, stopMax: 4, thinksByDefault: false },
    source: grok,
    checked,
  },
  {
    dialect: chat,
    // Hosts that part the reasoning from the text themselves leave no tag to be found.
    models: family('deepseek-r1|qwq|qwen3(?!-coder)(?![a-z0-9.:-]*instruct)|glm-4\\.[5-9]|minimax-m2(?:\\.\\d+)?'),
    rules: { thinkTags: true },
    source: 'https://docs.vllm.ai/en/latest/features/reasoning_outputs/',
    checked,
  },
]
