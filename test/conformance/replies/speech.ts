// Answers in words: what is said and thought, how it ends, and what it costs.

import { chatBytes, chatUsage } from './chat-bytes.ts'
import { messagesBytes, messagesUsage, sealedBlock, textBlock, thinkingBlock } from './messages-bytes.ts'
import { meaning, type ReplyFixture } from './reply-fixture.ts'

const hello = 'Grüße — 四 🎉\n"quoted" \\ and\u2028gone.'
const pieces = ['Grüße — 四', ' 🎉\n"quoted" \\ and', '\u2028gone.'] as const
const signature = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/8Ug=='

export const speechFixtures: readonly ReplyFixture[] = [
  {
    feature: 'Text',
    says: meaning({ text: hello }),
    chat: chatBytes({ deltas: pieces.map((content) => ({ content })), message: { content: hello }, finish: 'stop' }),
    messages: messagesBytes({ blocks: [textBlock(...pieces)], stop: 'end_turn' }),
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
    feature: 'Encrypted reasoning',
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
    feature: 'Usage with cache reads and writes',
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
    feature: 'Keep-alives',
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
