// Every answer of the conformance suite, in the order of the page.

import { callArguments, callOpening, chatBytes, chatUsage, wholeCall } from './chat-bytes.ts'
import { callBlock, messagesBytes, messagesUsage, sealedBlock, textBlock, thinkingBlock } from './messages-bytes.ts'
import { meaning, type ReplyFixture } from './reply-fixture.ts'

const hello = 'Grüße — 四 🎉\n"quoted" \\ and\u2028gone.'
const pieces = ['Grüße — 四', ' 🎉\n"quoted" \\ and', '\u2028gone.'] as const
/** Key order, spacing and digits that no parser of JSON would give back. */
const bern = '{"z": 1.0, "city":"Zürich", "10":1, "n":12345678901234567890}'
const oslo = '{"city":"Oslo"}'
const calls = [
  { id: 'call_1', name: 'look', arguments: bern },
  { id: 'call_2', name: 'look', arguments: oslo },
]
const chatCalls = [wholeCall('call_1', 'look', bern), wholeCall('call_2', 'look', oslo)]
const placeSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const signature = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/8Ug=='

export const replyFixtures: readonly ReplyFixture[] = [
  {
    feature: 'Text',
    says: meaning({ text: hello }),
    chat: chatBytes({ deltas: pieces.map((content) => ({ content })), message: { content: hello }, finish: 'stop' }),
    messages: messagesBytes({ blocks: [textBlock(...pieces)], stop: 'end_turn' }),
  },
  {
    feature: 'A tool call',
    says: meaning({ calls: calls.slice(0, 1), stop: 'tool-calls' }),
    chat: chatBytes({
      deltas: [callOpening(0, 'call_1', 'look'), callArguments(0, bern.slice(0, 20)), callArguments(0, bern.slice(20))],
      message: { tool_calls: chatCalls.slice(0, 1) },
      finish: 'tool_calls',
    }),
    messages: messagesBytes({
      blocks: [callBlock('call_1', 'look', bern.slice(0, 20), bern.slice(20))],
      stop: 'tool_use',
    }),
  },
  {
    feature: 'A tool call without arguments',
    says: meaning({ calls: [{ id: 'call_1', name: 'now', arguments: '{}' }], stop: 'tool-calls' }),
    chat: chatBytes({
      deltas: [callOpening(0, 'call_1', 'now'), callArguments(0, '{}')],
      message: { tool_calls: [wholeCall('call_1', 'now', '{}')] },
      finish: 'tool_calls',
    }),
    messages: messagesBytes({ blocks: [callBlock('call_1', 'now')], stop: 'tool_use' }),
  },
  {
    feature: 'Text and parallel calls',
    says: meaning({ text: 'Looking.', calls, stop: 'tool-calls' }),
    chat: chatBytes({
      deltas: [
        { content: 'Looking.' },
        callOpening(0, 'call_1', 'look'),
        callArguments(0, bern),
        callOpening(1, 'call_2', 'look'),
        callArguments(1, oslo),
      ],
      message: { content: 'Looking.', tool_calls: chatCalls },
      finish: 'tool_calls',
    }),
    messages: messagesBytes({
      blocks: [textBlock('Looking.'), callBlock('call_1', 'look', bern), callBlock('call_2', 'look', oslo)],
      stop: 'tool_use',
    }),
  },
  {
    feature: 'Parallel calls, mixed',
    says: meaning({ calls, stop: 'tool-calls' }),
    untidy: true,
    chat: chatBytes({
      deltas: [
        callOpening(0, 'call_1', 'look'),
        callOpening(1, 'call_2', 'look'),
        callArguments(0, bern.slice(0, 9)),
        callArguments(1, oslo.slice(0, 9)),
        callArguments(0, bern.slice(9)),
        callArguments(1, oslo.slice(9)),
      ],
      message: { tool_calls: chatCalls },
      finish: 'tool_calls',
    }),
  },
  {
    feature: 'A call of a tool for free text',
    says: meaning({ calls: [{ id: 'call_1', name: 'patch', arguments: '*** Begin "x" 🎉\n' }], stop: 'tool-calls' }),
    asks: { chat: { tools: [{ type: 'custom', custom: { name: 'patch' } }] } },
    madeOf: 'messages',
    beyondAccumulators: true,
    chat: chatBytes({
      deltas: [
        { tool_calls: [{ index: 0, id: 'call_1', type: 'custom', custom: { name: 'patch', input: '' } }] },
        { tool_calls: [{ index: 0, custom: { input: '*** Begin "x" 🎉\n' } }] },
      ],
      message: {
        tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'patch', input: '*** Begin "x" 🎉\n' } }],
      },
      finish: 'tool_calls',
    }),
    messages: messagesBytes({
      blocks: [callBlock('call_1', 'patch', '{"input": "*** Begin ', '\\"x\\" \\ud83c', '\\udf89\\n"}')],
      stop: 'tool_use',
    }),
  },
  {
    feature: 'An answer by JSON schema, from a model that has none',
    says: meaning({ text: oslo }),
    asks: {
      chat: { response_format: { type: 'json_schema', json_schema: { name: 'place', schema: placeSchema } } },
      messages: { output_config: { format: { type: 'json_schema', schema: placeSchema } } },
    },
    models: { messages: 'claude-opus-4-1' },
    madeOf: 'messages',
    chat: chatBytes({ deltas: [{ content: oslo }], message: { content: oslo }, finish: 'stop' }),
    messages: messagesBytes({ blocks: [callBlock('call_1', 'json', oslo)], stop: 'tool_use' }),
  },
  {
    feature: 'Text behind a call',
    says: meaning({ text: 'One.\n\nTwo.', calls: calls.slice(1), stop: 'tool-calls' }),
    chat: chatBytes({
      deltas: [{ content: 'One.' }, callOpening(0, 'call_2', 'look', oslo), { content: '\n\nTwo.' }],
      message: { content: 'One.\n\nTwo.', tool_calls: chatCalls.slice(1) },
      finish: 'tool_calls',
    }),
    messages: messagesBytes({
      blocks: [textBlock('One.'), callBlock('call_2', 'look', oslo), textBlock('Two.')],
      stop: 'tool_use',
    }),
  },
  {
    feature: 'Reasoning',
    says: meaning({ text: '4', reasoning: 'Two and two …' }),
    chat: chatBytes({
      deltas: [{ reasoning_content: 'Two and ' }, { reasoning_content: 'two …' }, { content: '4' }],
      message: { content: '4', reasoning_content: 'Two and two …' },
      finish: 'stop',
    }),
    messages: messagesBytes({
      blocks: [thinkingBlock(signature, 'Two and ', 'two …'), textBlock('4')],
      stop: 'end_turn',
    }),
  },
  {
    feature: 'Reasoning before a call',
    says: meaning({ reasoning: 'I must look.', calls: calls.slice(1), stop: 'tool-calls' }),
    chat: chatBytes({
      deltas: [{ reasoning_content: 'I must look.' }, callOpening(0, 'call_2', 'look', oslo)],
      message: { reasoning_content: 'I must look.', tool_calls: chatCalls.slice(1) },
      finish: 'tool_calls',
    }),
    messages: messagesBytes({
      blocks: [thinkingBlock(signature, 'I must look.'), callBlock('call_2', 'look', oslo)],
      stop: 'tool_use',
    }),
  },
  {
    feature: 'Sealed reasoning',
    says: meaning({ text: '4' }),
    chat: chatBytes({
      deltas: [
        { content: '4' },
        {
          reasoning_details: [
            { type: 'reasoning.encrypted', data: 'gAAAAABo', format: 'openai-responses-v1', index: 0 },
          ],
        },
      ],
      message: {
        content: '4',
        reasoning_details: [{ type: 'reasoning.encrypted', data: 'gAAAAABo', format: 'openai-responses-v1', index: 0 }],
      },
      finish: 'stop',
    }),
    messages: messagesBytes({ blocks: [sealedBlock('EmwKAhgB'), textBlock('4')], stop: 'end_turn' }),
  },
  {
    feature: 'An empty answer',
    says: meaning({}),
    chat: chatBytes({ deltas: [], message: { content: '' }, finish: 'stop' }),
    messages: messagesBytes({ blocks: [textBlock()], stop: 'end_turn' }),
  },
  {
    feature: 'Cut off by the output cap',
    says: meaning({ text: 'So long', stop: 'length' }),
    chat: chatBytes({ deltas: [{ content: 'So long' }], message: { content: 'So long' }, finish: 'length' }),
    messages: messagesBytes({ blocks: [textBlock('So long')], stop: 'max_tokens' }),
  },
  {
    feature: 'A stop sequence, by name',
    says: meaning({ text: 'One, ', stopSequence: 'END' }),
    chat: chatBytes({
      deltas: [{ content: 'One, ' }],
      message: { content: 'One, ' },
      finish: 'stop',
      ending: { stop_reason: 'END' },
    }),
    messages: messagesBytes({ blocks: [textBlock('One, ')], stop: 'stop_sequence', sequence: 'END' }),
  },
  {
    feature: 'A refusal',
    says: meaning({ refusal: 'I cannot help with that.', stop: 'refusal' }),
    chat: chatBytes({
      deltas: [{ refusal: 'I cannot help ' }, { refusal: 'with that.' }],
      message: { refusal: 'I cannot help with that.' },
      finish: 'stop',
    }),
    messages: messagesBytes({
      blocks: [textBlock()],
      stop: 'refusal',
      details: { type: 'refusal', category: null, explanation: 'I cannot help with that.' },
    }),
  },
  {
    feature: 'Usage with cached and written tokens',
    // 60 × 1.00 + 900 × 0.10 + 40 × 1.25 + 20 × 2.00 = 240 per million
    says: meaning({
      text: 'ok',
      usage: { input: 60, cacheRead: 900, cacheWrite: 40, output: 20, reasoning: undefined, cost: 0.00024 },
    }),
    chat: chatBytes({
      deltas: [{ content: 'ok' }],
      message: { content: 'ok' },
      finish: 'stop',
      usage: {
        prompt_tokens: 1000,
        completion_tokens: 20,
        total_tokens: 1020,
        prompt_tokens_details: { cached_tokens: 900, cache_write_tokens: 40, audio_tokens: 0 },
      },
    }),
    messages: messagesBytes({
      blocks: [textBlock('ok')],
      stop: 'end_turn',
      usage: {
        input_tokens: 60,
        cache_read_input_tokens: 900,
        cache_creation_input_tokens: 40,
        cache_creation: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 0 },
        output_tokens: 20,
      },
    }),
  },
  {
    feature: 'Usage with reasoning tokens',
    says: meaning({
      text: 'ok',
      usage: { input: 10, cacheRead: 0, cacheWrite: 0, output: 20, reasoning: 15, cost: 0.00005 },
    }),
    chat: chatBytes({
      deltas: [{ content: 'ok' }],
      message: { content: 'ok' },
      finish: 'stop',
      usage: {
        ...chatUsage,
        completion_tokens: 20,
        total_tokens: 30,
        completion_tokens_details: { reasoning_tokens: 15, audio_tokens: 0 },
      },
    }),
    messages: messagesBytes({
      blocks: [textBlock('ok')],
      stop: 'end_turn',
      usage: { ...messagesUsage, output_tokens: 20, output_tokens_details: { thinking_tokens: 15 } },
    }),
  },
  {
    feature: 'Signs of life and records of tomorrow',
    says: meaning({ text: 'ok' }),
    chat: chatBytes({
      deltas: [': OPENROUTER PROCESSING\n\n', { content: 'o' }, ': OPENROUTER PROCESSING\n\n', { content: 'k' }],
      message: { content: 'ok' },
      finish: 'stop',
    }),
    messages: messagesBytes({
      blocks: [textBlock('o', 'k')],
      stop: 'end_turn',
      between: 'event: ping\ndata: {"type": "ping"}\n\n',
    }),
  },
]
