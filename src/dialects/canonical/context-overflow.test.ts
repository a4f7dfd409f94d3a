import { expect, test } from 'bun:test'
import type { ContextOverflow } from '../../kernel/failure.ts'
import { readOverflow } from './context-overflow.ts'
import { faultFromError } from './provider-fault.ts'

/** One sentence of each kind, as hosts write it, and what it tells. */
const told: readonly [message: string, counts: ContextOverflow][] = [
  ['prompt is too long: 210000 tokens > 200000 maximum', { tokens: 210_000, limit: 200_000 }],
  [
    'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    { tokens: 209_573, limit: 200_000, outputCap: 21_333 },
  ],
  [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
    { tokens: 130_000, limit: 128_000 },
  ],
  [
    "This model's maximum context length is 65536 tokens. However, you requested 66434 tokens (58242 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
    { tokens: 66_434, limit: 65_536, outputCap: 8192 },
  ],
  [
    "This endpoint's maximum context length is 204800 tokens. However, you requested about 309977 tokens (309000 of text input, 977 in the output). Please reduce the length of either one.",
    { tokens: 309_977, limit: 204_800, outputCap: 977 },
  ],
  [
    "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains at least 262145 input tokens, for a total of at least 262145 tokens.",
    { tokens: 262_145, limit: 262_144, outputCap: 0 },
  ],
  [
    "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 100 input tokens (5000 > 4096 - 100).",
    { tokens: 5100, limit: 4096, outputCap: 5000 },
  ],
  [
    'Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 300,100 tokens. Please reduce the length of the messages.',
    { tokens: 300_100, limit: 272_000 },
  ],
  ['Your input exceeds the context window of this model. Please adjust your input and try again.', {}],
  [
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    { tokens: 537_812, limit: 131_072 },
  ],
  [
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).',
    { tokens: 1_196_265, limit: 1_048_576 },
  ],
  [
    'request (9123 tokens) exceeds the available context size (8192 tokens), try increasing it',
    { tokens: 9123, limit: 8192 },
  ],
  ['the request exceeds the available context size. try increasing the context size', {}],
  ["Input length (265330) exceeds model's maximum context length (262144).", { tokens: 265_330, limit: 262_144 }],
  [
    'Input length 131393 exceeds the maximum allowed input length of 131040 tokens.',
    { tokens: 131_393, limit: 131_040 },
  ],
  [
    "The input (345516 tokens) is longer than the model's context length (262144 tokens).",
    { tokens: 345_516, limit: 262_144 },
  ],
  ['Your request exceeded model token limit: 262144 (requested: 566084)', { tokens: 566_084, limit: 262_144 }],
  [
    'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    { tokens: 40_000, limit: 32_768 },
  ],
  ['Input is too long for requested model.', {}],
  [
    'The model returned the following errors: prompt is too long: 227255 tokens > 200000 maximum',
    { tokens: 227_255, limit: 200_000 },
  ],
  ['messages.0.content: too many total text bytes: 30000000 > 25000000', {}],
  ['litellm.BadRequestError: context_length_exceeded', {}],
]

test.each(told)('%s', (message, counts) => {
  expect(readOverflow(faultFromError(400, undefined, { message }))).toEqual(counts)
})

test.each(['context_length_exceeded', 'exceed_context_size_error'])('%s as a code or type is enough', (word) => {
  expect(readOverflow(faultFromError(400, undefined, { message: 'Too much.', code: word }))).toEqual({})
  expect(readOverflow(faultFromError(400, undefined, { message: 'Too much.', type: word }))).toEqual({})
})

const others = [
  'messages: text content blocks must be non-empty',
  'max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5',
  'Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.',
  'Too many tokens, please wait before trying again.',
  'Invalid value: tool_choice. Set the context length in your server settings.',
]

test.each(others)('something else: %s', (message) => {
  expect(readOverflow(faultFromError(400, undefined, { message }))).toBeUndefined()
})
