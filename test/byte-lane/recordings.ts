// The recorded upstream replies of test/fixtures, and what the byte lane may change in each: literal spans, worked out by
// hand, with how often each occurs. The expected bytes are made from these by text replacement alone.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { anthropicMessages } from '../../src/dialects/anthropic-messages/index.ts'
import type { Dialect } from '../../src/dialects/dialect.ts'
import { gemini } from '../../src/dialects/gemini/index.ts'
import { openaiChat } from '../../src/dialects/openai-chat/index.ts'
import type { Usage } from '../../src/kernel/usage.ts'
import { tokenCounts } from '../parts/token-counts.ts'

export type Surface = 'chat' | 'messages' | 'gemini'

export const surfaces: Record<Surface, { readonly dialect: Dialect; readonly model: string }> = {
  chat: { dialect: openaiChat, model: 'test/chat' },
  messages: { dialect: anthropicMessages, model: 'test/messages' },
  gemini: { dialect: gemini, model: 'test/gemini' },
}

/** A named span: what stands in the recording, what the client gets for it, and how often. */
export interface Span {
  readonly from: string
  readonly to: string
  readonly times: number
}

export interface Recording {
  /** `SURFACE/FILE`, under test/fixtures. */
  readonly file: string
  readonly spans: readonly Span[]
  /** The record that only a caller who asked for usage gets, as it stands after the spans were replaced. */
  readonly usageRecord?: string
  readonly usage: Usage
  /** At $1.00 in, $2.00 out, $0.10 read, $1.25 written, $2.00 written for an hour, each per million. */
  readonly cost: string
}

function recording(file: string, usage: Usage, cost: string, spans: readonly Span[], usageRecord?: string): Recording {
  return { file, usage, cost, spans, ...(usageRecord !== undefined && { usageRecord }) }
}

function span(from: string, to: string, times = 1): Span {
  return { from, to, times }
}

/** Input, cache read, cache write, cache write for an hour, output, reasoning; undefined = not reported. */
function used(
  input: number,
  read: number | undefined,
  write: number | undefined,
  long: number,
  output: number,
  reasoning?: number,
): Usage {
  return {
    ...tokenCounts(input, output, read ?? 0, write ?? 0, long),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
    ...(write === undefined ? { cacheReported: read === undefined ? 'none' : 'reads' } : {}),
    source: 'reported',
  }
}

const openaiHead =
  'data: {"id":"chatcmpl-D9aVqk2Yw1nQ7sLrT0uJ3xPzE5bHc","object":"chat.completion.chunk","created":1794700811,"model":"test/chat","service_tier":"default","system_fingerprint":"fp_8a1c90d2e7"'

const lastUsage =
  '"candidatesTokenCount": 9,"totalTokenCount": 38,"cachedContentTokenCount": 5,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 21}],"thoughtsTokenCount": 8}'

export const streams: readonly Recording[] = [
  // 21 + 34
  recording(
    'chat/openai-text.sse',
    { ...used(21, 0, 0, 0, 17, 8), tier: 'standard' },
    '0.000055',
    [
      span('"model":"gpt-5.6-mini-2026-07-09"', '"model":"test/chat"', 9),
      span('"rejected_prediction_tokens":0}},"obf', '"rejected_prediction_tokens":0},"cost":0.000055},"obf'),
    ],
    `${openaiHead},"choices":[],"usage":{"prompt_tokens":21,"completion_tokens":17,"total_tokens":38,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":8,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0},"cost":0.000055},"obfuscation":"Lr7cQ2"}\n\n`,
  ),
  // 56 + 25.6 + 125 + 126
  recording(
    'chat/openai-tools.sse',
    { ...used(56, 256, 100, 0, 63, 0), tier: 'standard' },
    '0.0003326',
    [
      span('"model":"gpt-5.6-2026-07-09"', '"model":"test/chat"', 17),
      span('"reasoning_tokens":0}},', '"reasoning_tokens":0},"cost":0.0003326},'),
    ],
    'data: {"id":"chatcmpl-Tq81","object":"chat.completion.chunk","created":1794700900,"model":"test/chat","service_tier":"default","choices":[],"usage":{"prompt_tokens":412,"completion_tokens":63,"total_tokens":475,"prompt_tokens_details":{"cached_tokens":256,"cache_write_tokens":100},"completion_tokens_details":{"reasoning_tokens":0},"cost":0.0003326},"obfuscation":""}\n\n',
  ),
  // 11 + 10
  recording(
    'chat/azure.sse',
    used(11, 0, undefined, 0, 5, 0),
    '0.000021',
    [
      span('"model":""', '"model":"test/chat"'),
      span('"model":"gpt-4o-2024-11-20"', '"model":"test/chat"', 7),
      span('"total_tokens":16}}', '"total_tokens":16,"cost":0.000021}}'),
    ],
    'data: {"choices":[],"created":1794701000,"id":"chatcmpl-Az5","model":"test/chat","object":"chat.completion.chunk","system_fingerprint":"fp_b705f0c291","usage":{"completion_tokens":5,"completion_tokens_details":{"accepted_prediction_tokens":0,"audio_tokens":0,"reasoning_tokens":0,"rejected_prediction_tokens":0},"prompt_tokens":11,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":0},"total_tokens":16,"cost":0.000021}}\n\n',
  ),
  // Usage comes in a chunk with a choice in it, so it is no extra record, and with a cost of the host's own.
  // Cost: 20 + 1 + 88
  recording('chat/openrouter.sse', used(20, 10, undefined, 0, 44, 32), '0.000109', [
    span('"model":"moonshotai/kimi-k3"', '"model":"test/chat"', 8),
    span('"cost":0.0001234', '"cost":0.000109'),
  ]),
  // 5 + 3.2 + 40
  recording('chat/deepseek.sse', used(5, 32, undefined, 0, 20, 12), '0.0000482', [
    span('"model":"deepseek-chat"', '"model":"test/chat"', 9),
    span('"prompt_cache_miss_tokens":5}', '"prompt_cache_miss_tokens":5,"cost":0.0000482}'),
  ]),
  // 8 + 6
  recording(
    'chat/crlf.sse',
    used(8, undefined, undefined, 0, 3),
    '0.000014',
    [
      span('"model":"llama-4-70b"', '"model":"test/chat"', 4),
      span('"completion_tokens":3}', '"completion_tokens":3,"cost":0.000014}'),
      span('retry: 3000\r\n\r\n', ''),
      span('id: 0\r\n', ''),
      span('id:1\r\nretry: 10\r\n', ''),
      span('id\r\ndata', 'data'),
      span('id: 3\r\n\r\n', ''),
      span('id: 4\r\n', ''),
      span('id: 5\r\n', ''),
    ],
    'data: {"id":"c-7","object":"chat.completion.chunk","created":1794701300,"model":"test/chat","choices":[],"usage":{"prompt_tokens":8,"total_tokens":11,"completion_tokens":3,"cost":0.000014}}\r\n\r\n',
  ),
  // A byte order mark, spaces, numbers in odd spellings, other members called model and usage, no end of the last line.
  // Cost: 12 + 8
  recording(
    'chat/odd-json.sse',
    used(12, undefined, undefined, 0, 4),
    '0.00002',
    [
      span('{ "model" : "odd/model:1.0" ,', '{ "model" : "test/chat" ,'),
      span('"1":2,"model":"odd/model:1.0"', '"1":2,"model":"test/chat"'),
      span('"choices":[],"model":"odd/model:1.0"', '"choices":[],"model":"test/chat"'),
      // Every chunk names the model, also where the provider's does not.
      span('{"choices":[{"delta":{},', '{"model":"test/chat","choices":[{"delta":{},'),
      span('"extra":1e3 }', '"extra":1e3,"cost":0.00002 }'),
      // Without its blank line a client that keeps to the standard would never see the end.
      span('data: [DONE]', 'data: [DONE]\n\n'),
    ],
    'data: {"usage":{ "completion_tokens" : 4.0 , "prompt_tokens":1.2e1,"total_tokens":16, "extra":1e3,"cost":0.00002 },"choices":[],"model":"test/chat"}\n\n',
  ),
  // 25 + 204.8 + 640 + 188
  recording('messages/thinking.sse', { ...used(25, 2048, 512, 0, 94, 61), tier: 'standard' }, '0.0010578', [
    span('"model":"claude-opus-5-5-20261014"', '"model":"test/messages"'),
    span('{"thinking_tokens":61}}', '{"thinking_tokens":61},"cost":0.0010578}'),
  ]),
  // 310 + 242
  recording('messages/tools.sse', { ...used(310, 0, 0, 0, 121), tier: 'standard' }, '0.000552', [
    span('"message":{"model":"claude-opus-5-5-20261014"', '"message":{"model":"test/messages"'),
    span('"usage":{"output_tokens":121}', '"usage":{"output_tokens":121,"cost":0.000552}'),
  ]),
  // 10450 + 424; at the pause 1200 + 80
  recording('messages/server-tools.sse', { ...used(10450, 0, 0, 0, 212), webSearches: 1 }, '0.010874', [
    span('"message":{"model":"claude-opus-5-5-20261014"', '"message":{"model":"test/messages"'),
    span('"usage":{"output_tokens":40}', '"usage":{"output_tokens":40,"cost":0.00128}'),
    span(
      '"server_tool_use":{"web_search_requests":1,"web_fetch_requests":0}}',
      '"server_tool_use":{"web_search_requests":1,"web_fetch_requests":0},"cost":0.010874}',
    ),
  ]),
  // 14 + 12
  recording('messages/crlf.sse', used(14, undefined, undefined, 0, 6), '0.000026', [
    span('"model" : "claude-haiku-5-5"', '"model" : "test/messages"'),
    span('"output_tokens": 6 }', '"output_tokens": 6,"cost":0.000026 }'),
    span('retry: 2500\r\n\r\n', ''),
    span('id: 1\r\n', ''),
    span('id:2\r\n', ''),
    span('id: 3\r\n', ''),
    span('retry: 1\r\n', ''),
    span('id: 4\r\n\r\n', ''),
    span('id: 9\r\n', ''),
  ]),
  // 9 + 125 + 400 + 14
  recording('messages/late-cache-counts.sse', used(9, 0, 100, 200, 7), '0.000548', [
    span('"model":"anthropic.claude-sonnet-5-5-v1:0"', '"model":"test/messages"'),
    span('"output_tokens":7}', '"output_tokens":7,"cost":0.000548}'),
  ]),
  // 16 + 0.5 + 34: cached tokens are a part of the prompt, and thoughts are output beside the candidates.
  recording('gemini/text.sse', used(16, 5, undefined, 0, 17, 8), '0.0000505', [
    span('"modelVersion": "gemini-3.8-flash"', '"modelVersion": "test/gemini"', 4),
    // The last record alone counts 9 candidates.
    span(lastUsage, lastUsage.replace('8}', '8,"cost":0.0000505}')),
  ]),
  // 310 + 242
  recording('gemini/tools.sse', { ...used(310, undefined, undefined, 0, 121), tier: 'standard' }, '0.000552', [
    span('"modelVersion":"gemini-3.8-flash"', '"modelVersion":"test/gemini"', 2),
    span('"serviceTier":"standard" }', '"serviceTier":"standard","cost":0.000552 }'),
  ]),
]

export const wholeReplies: readonly Recording[] = [
  // 10 + 7 + 25 + 10
  recording('chat/whole.json', { ...used(10, 70, 20, 0, 5, 3), tier: 'standard' }, '0.000052', [
    span('\n  "model": "gpt-5.6-2026-07-09",\n  "choices"', '\n  "model": "test/chat",\n  "choices"'),
    span(
      '{ "reasoning_tokens": 3, "audio_tokens": 0 }',
      '{ "reasoning_tokens": 3, "audio_tokens": 0 },"cost":0.000052',
    ),
  ]),
  // 5 + 3.2 + 20
  recording('chat/whole-tools.json', used(5, 32, undefined, 0, 10), '0.0000282', [
    span('"model":"deepseek-chat"', '"model":"test/chat"'),
    span('"cost":99', '"cost":0.0000282'),
  ]),
  // 40 + 100 + 125 + 400 + 100
  recording('messages/whole.json', { ...used(40, 1000, 100, 200, 50), tier: 'standard' }, '0.000765', [
    span('{"model":"claude-opus-5-5-20261014","id"', '{"model":"test/messages","id"'),
    span('"service_tier":"standard"}', '"service_tier":"standard","cost":0.000765}'),
  ]),
  // 12 + 16
  recording('messages/whole-spaced.json', used(12, undefined, undefined, 0, 8), '0.000028', [
    span('    : "claude-haiku-5-5"', '    : "test/messages"'),
    span('"output_tokens" : 8 }', '"output_tokens" : 8,"cost":0.000028 }'),
  ]),
  // 40 + 100
  recording('gemini/whole.json', used(40, undefined, undefined, 0, 50), '0.00014', [
    span('"modelVersion": "gemini-3.8-flash"', '"modelVersion": "test/gemini"'),
    span('"totalTokenCount": 90', '"totalTokenCount": 90,"cost":0.00014'),
  ]),
  // 12
  recording('gemini/whole-blocked.json', used(12, undefined, undefined, 0, 0), '0.000012', [
    span('"modelVersion":"gemini-3.8-flash"', '"modelVersion":"test/gemini"'),
    span('"totalTokenCount":12', '"totalTokenCount":12,"cost":0.000012'),
  ]),
]

export function surfaceOf(recording: Recording): Surface {
  return recording.file.slice(0, recording.file.indexOf('/')) as Surface
}

export function recordedBytes(recording: Recording): Buffer<ArrayBuffer> {
  return Buffer.from(readFileSync(join(import.meta.dir, '../fixtures', recording.file)))
}

/** The recording with its spans replaced; throws where a span does not occur exactly as often as it says. */
export function expectedBytes(recording: Recording, wantsUsage: boolean): Buffer {
  let text = recordedBytes(recording).toString('utf8')
  for (const { from, to, times } of recording.spans) text = replaced(text, from, to, times)
  if (recording.usageRecord !== undefined && !wantsUsage) text = replaced(text, recording.usageRecord, '', 1)
  return Buffer.from(text, 'utf8')
}

function replaced(text: string, from: string, to: string, times: number): string {
  const parts = text.split(from)
  if (parts.length !== times + 1) throw new Error(`${parts.length - 1} of ${times} times in the recording: ${from}`)
  return parts.join(to)
}
