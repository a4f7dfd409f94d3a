// The answers of the suite as a provider of Responses gives them, by the names of their rows. What is missing it cannot
// say: it has no stop sequences, and its models all write JSON by schema.

import type { ProviderBytes } from './reply-fixture.ts'
import {
  callItem,
  customItem,
  messageItem,
  reasoningItem,
  refusalItem,
  responsesBytes,
  responsesUsage,
} from './responses-bytes.ts'

const bern = '{"z": 1.0, "city":"Zürich", "10":1, "n":12345678901234567890}'
const oslo = '{"city":"Oslo"}'
const sealed = 'gAAAAABo+/='

export const responsesReplies: Readonly<Record<string, ProviderBytes>> = {
  Text: responsesBytes({
    items: [messageItem(0, 'Grüße — 四', ' 🎉\n"quoted" \\ and', '\u2028gone.')],
  }),
  Reasoning: responsesBytes({ items: [reasoningItem(0, sealed, 'Two and ', 'two …'), messageItem(1, '4')] }),
  'Encrypted reasoning': responsesBytes({ items: [reasoningItem(0, sealed), messageItem(1, '4')] }),
  'An empty answer': responsesBytes({ items: [messageItem(0)] }),
  'Cut off by the output cap': responsesBytes({
    items: [messageItem(0, 'So long')],
    status: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
  }),
  'A refusal': responsesBytes({ items: [refusalItem(0, 'I cannot help ', 'with that.')] }),
  'Usage with cache reads and writes': responsesBytes({
    items: [messageItem(0, 'ok')],
    usage: {
      input_tokens: 1000,
      input_tokens_details: { cached_tokens: 900, cache_write_tokens: 40 },
      output_tokens: 20,
      total_tokens: 1020,
    },
  }),
  'Usage with reasoning tokens': responsesBytes({
    items: [messageItem(0, 'ok')],
    usage: { ...responsesUsage, output_tokens: 20, output_tokens_details: { reasoning_tokens: 15 }, total_tokens: 30 },
  }),
  'Keep-alives': responsesBytes({
    items: [messageItem(0, 'o', 'k')],
    hasKeepAlive: true,
  }),
  'A tool call': responsesBytes({ items: [callItem(0, 'call_1', 'look', bern.slice(0, 20), bern.slice(20))] }),
  'A tool call without arguments': responsesBytes({ items: [callItem(0, 'call_1', 'now', '{}')] }),
  'Text and parallel calls': responsesBytes({
    items: [messageItem(0, 'Looking.'), callItem(1, 'call_1', 'look', bern), callItem(2, 'call_2', 'look', oslo)],
  }),
  'Parallel calls, mixed': responsesBytes({
    items: [
      callItem(0, 'call_1', 'look', bern.slice(0, 9), bern.slice(9)),
      callItem(1, 'call_2', 'look', oslo.slice(0, 9), oslo.slice(9)),
    ],
    isMixed: true,
  }),
  'A call of a custom tool with free text': responsesBytes({
    items: [customItem(0, 'call_1', 'patch', '*** Begin ', '"x" 🎉\n')],
  }),
  'Text after a call': responsesBytes({
    items: [messageItem(0, 'One.'), callItem(1, 'call_2', 'look', oslo), messageItem(2, 'Two.')],
  }),
  'Reasoning before a call': responsesBytes({
    items: [reasoningItem(0, sealed, 'I must look.'), callItem(1, 'call_2', 'look', oslo)],
  }),
}
