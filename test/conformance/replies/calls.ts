// Answers with calls of tools.

import { callArguments, callOpening, chatBytes, wholeCall } from './chat-bytes.ts'
import { callBlock, messagesBytes, textBlock, thinkingBlock } from './messages-bytes.ts'
import { meaning, type ReplyFixture } from './reply-fixture.ts'

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

export const callFixtures: readonly ReplyFixture[] = [
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
    feature: 'A call of a custom tool with free text',
    says: meaning({ calls: [{ id: 'call_1', name: 'patch', arguments: '*** Begin "x" 🎉\n' }], stop: 'tool-calls' }),
    asks: {
      chat: { tools: [{ type: 'custom', custom: { name: 'patch' } }] },
      responses: { tools: [{ type: 'custom', name: 'patch' }] },
    },
    madeOf: ['messages', 'gemini'],
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
      responses: { text: { format: { type: 'json_schema', name: 'place', schema: placeSchema } } },
      gemini: { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: placeSchema } },
    },
    models: { messages: 'claude-opus-4-1' },
    madeOf: ['messages'],
    chat: chatBytes({ deltas: [{ content: oslo }], message: { content: oslo }, finish: 'stop' }),
    messages: messagesBytes({ blocks: [callBlock('call_1', 'json', oslo)], stop: 'tool_use' }),
  },
  {
    feature: 'Text after a call',
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
]
