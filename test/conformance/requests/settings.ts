// How to sample, how much to say, in which form, for whom and at what price.

import { absent, either, saying, some } from '../shape.ts'
import { hi, messagesTool, nowhere, type RequestFixture, unreasoned } from './request-fixture.ts'

const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const format = { type: 'json_schema', json_schema: { name: 'place', strict: true, schema } }
const five = ['A', 'B', 'C', 'D', 'E']
const mark = { type: 'ephemeral' }

/** A setting that has the same name and value everywhere it exists. */
const same = (feature: string, name: string, value: string | number | boolean): RequestFixture => ({
  feature,
  chat: { [name]: value },
  carried: { chat: { [name]: value }, messages: { [name]: value } },
})
const onBoth = (fixture: RequestFixture): RequestFixture => ({ ...fixture, messages: fixture.chat ?? {} })

export const settingFixtures: readonly RequestFixture[] = [
  {
    feature: 'Output cap',
    chat: { max_completion_tokens: 500 },
    messages: { max_tokens: 500 },
    carried: { chat: either({ max_tokens: 500 }, { max_completion_tokens: 500 }), messages: { max_tokens: 500 } },
  },
  {
    feature: 'Output cap above the model’s',
    chat: { max_completion_tokens: 9000 },
    messages: { max_tokens: 9000 },
    carried: { chat: either({ max_tokens: 9000 }, { max_completion_tokens: 9000 }), messages: { max_tokens: 9000 } },
  },
  {
    feature: 'No output cap',
    chat: {},
    // The model's default_max_tokens, which Messages cannot do without.
    carried: { chat: either({ max_tokens: 4096 }, { max_completion_tokens: 4096 }), messages: { max_tokens: 4096 } },
  },
  {
    feature: 'Stop sequences',
    chat: { stop: ['END'] },
    messages: { stop_sequences: ['END'] },
    carried: { chat: { stop: either('END', ['END']) }, messages: { stop_sequences: ['END'] } },
    // The gateway reads the answer for them itself.
    emulated: { chat: { stop: absent } },
  },
  {
    feature: 'More than four stop sequences',
    messages: { stop_sequences: five },
    carried: { chat: { stop: five }, messages: { stop_sequences: five } },
    emulated: { chat: { stop: either(absent, five.slice(0, 4)) } },
  },
  onBoth(same('Temperature', 'temperature', 0.5)),
  same('Temperature above 1', 'temperature', 1.5),
  onBoth(same('Top-p', 'top_p', 0.5)),
  onBoth(same('Top-k', 'top_k', 40)),
  same('Frequency penalty', 'frequency_penalty', 0.5),
  same('Presence penalty', 'presence_penalty', 0.5),
  same('Seed', 'seed', 7),
  {
    feature: 'Logit bias',
    chat: { logit_bias: { '50256': -100 } },
    carried: { chat: { logit_bias: { '50256': -100 } }, messages: { logit_bias: { '50256': -100 } } },
  },
  {
    feature: 'Output by JSON schema',
    chat: { response_format: format },
    messages: { output_config: { format: { type: 'json_schema', schema } } },
    carried: {
      chat: { response_format: { type: 'json_schema', json_schema: { schema } } },
      messages: { output_config: { format: { type: 'json_schema', schema } } },
    },
  },
  {
    feature: 'Output as any JSON object',
    chat: { response_format: { type: 'json_object' } },
    carried: {
      chat: { response_format: { type: 'json_object' } },
      messages: { output_config: { format: { type: 'json_object' } } },
    },
    emulated: { messages: { system: [{ type: 'text', text: saying('a single JSON object') }] } },
  },
  same('Verbosity', 'verbosity', 'low'),
  {
    feature: 'Cache marks on text',
    chat: {
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'A', prompt_cache_breakpoint: { mode: 'explicit' } }] },
        hi,
      ],
    },
    messages: { system: [{ type: 'text', text: 'A', cache_control: mark }] },
    carried: {
      chat: { messages: [{ content: [{ text: 'A', prompt_cache_breakpoint: { mode: 'explicit' } }] }, {}] },
      messages: { system: [{ type: 'text', text: 'A', cache_control: mark }] },
    },
  },
  {
    feature: 'Cache marks on tools',
    messages: { ...unreasoned, tools: [messagesTool('look', { cache_control: mark })] },
    carried: {
      chat: { tools: [either({ cache_control: mark }, { prompt_cache_breakpoint: { mode: 'explicit' } })] },
      messages: { tools: [{ name: 'look', cache_control: mark }] },
    },
  },
  {
    feature: 'Caching without marks',
    messages: { cache_control: mark },
    carried: {
      // Hosts that cache by themselves need not be asked.
      chat: { model: 'gpt-5.6' },
      messages: { cache_control: mark },
    },
  },
  {
    feature: 'Caching only marked content',
    chat: { prompt_cache_options: { mode: 'explicit' } },
    carried: {
      chat: { prompt_cache_options: { mode: 'explicit' } },
      // It never does anything else.
      messages: { cache_control: absent },
    },
  },
  same('Cache key', 'prompt_cache_key', 'k1'),
  {
    feature: 'End user’s id',
    chat: { safety_identifier: 'u1' },
    messages: { metadata: { user_id: 'u1' } },
    carried: { chat: either({ safety_identifier: 'u1' }, { user: 'u1' }), messages: { metadata: { user_id: 'u1' } } },
  },
  {
    feature: 'Faster processing at a higher price',
    chat: { service_tier: 'priority' },
    messages: { speed: 'fast' },
    carried: { chat: { service_tier: either('priority', 'fast') }, messages: { speed: 'fast' } },
  },
  {
    feature: 'Cheaper processing',
    chat: { service_tier: 'flex' },
    carried: { chat: { service_tier: 'flex' }, messages: { service_tier: 'flex' } },
  },
  {
    feature: 'Predicted output',
    chat: { prediction: { type: 'content', content: 'hi' } },
    carried: { chat: { prediction: { content: 'hi' } }, messages: { prediction: { content: 'hi' } } },
  },
  same('Storing the answer at the provider', 'store', true),
  same('Several choices', 'n', 2),
  same('Log probabilities', 'logprobs', true),
  {
    feature: 'Audio output',
    chat: { modalities: ['text', 'audio'], audio: { voice: 'ash', format: 'mp3' } },
    carried: { chat: { audio: { voice: 'ash' } }, messages: { audio: { voice: 'ash' } } },
  },
  {
    feature: 'Web search as a setting',
    chat: { web_search_options: { search_context_size: 'low' } },
    carried: { chat: { web_search_options: { search_context_size: 'low' } }, messages: { tools: some({}) } },
  },
  {
    feature: 'Moderation by the provider',
    chat: { moderation: { model: 'omni-moderation-latest' } },
    carried: {
      chat: { moderation: { model: 'omni-moderation-latest' } },
      messages: { moderation: { model: 'omni-moderation-latest' } },
    },
  },
  ...(
    [
      ['Data residency', 'inference_geo', 'us'],
      ['Editing the context at the provider', 'context_management', { edits: [] }],
      ['Containers and skills', 'container', { skills: [] }],
      ['MCP servers called by the provider', 'mcp_servers', [{ type: 'url', name: 'm', url: 'https://example.com' }]],
      ['Checks of actions by the provider (auto mode of Claude Code)', 'safeguards', { checks: ['actions'] }],
      ['Threads stored by the provider', 'thread', { type: 'create' }],
    ] as const
  ).map(
    ([feature, name, value]): RequestFixture => ({
      feature,
      messages: { [name]: value },
      carried: { chat: { [name]: (carried) => carried !== undefined }, messages: { [name]: (it) => it !== undefined } },
    }),
  ),
  ...[
    'Responses stored by the provider',
    'Conversations stored by the provider',
    'Prompts stored by the provider',
    'Background processing',
    'A limit on the provider’s tool calls',
    'Automatic truncation',
  ].map((feature) => ({ feature, carried: nowhere })),
  {
    feature: 'An unknown field',
    chat: { tomorrow: { option: 1 } },
    messages: { tomorrow: { option: 1 } },
    carried: { chat: { tomorrow: { option: 1 } }, messages: { tomorrow: { option: 1 } } },
  },
]
