// What callers of the two surfaces see of this provider's replies: its parser with their renderers.

import { describe, expect, test } from 'bun:test'
import { geminiTarget, issuer, record, said } from '../../../test/parts/gemini.ts'
import { context } from '../../../test/parts/reply-events.ts'
import { parseWhole, requestId } from '../../../test/parts/reply-notation.ts'
import { anthropicMessages } from '../anthropic-messages/index.ts'
import { readSignature } from '../canonical/signature.ts'
import type { Dialect } from '../dialect.ts'
import { openaiChat } from '../openai-chat/index.ts'
import { parseStream } from './reply/parse.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
const replyIn = (dialect: Dialect, stream: string): any =>
  JSON.parse(dialect.translation.renderReply(parseWhole(parseStream(geminiTarget(), requestId), stream), context))
const chat = (stream: string) => replyIn(openaiChat, stream).choices[0]
const message = (stream: string) => replyIn(anthropicMessages, stream)

describe('vector 66: two calls without ids', () => {
  const calls = said(
    [{ functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'S' }, { functionCall: { name: 'f', args: {} } }],
    'STOP',
  )
  const proof = { issuer, blob: '{"part":"call","id":"call_7_1","signature":"S"}' }

  test('on the chat surface', () => {
    const { message: said, finish_reason } = chat(calls)
    expect(finish_reason).toBe('tool_calls')
    expect(said.tool_calls.map((call: { id: string; function: object }) => [call.id, call.function])).toEqual([
      ['call_7_1', { name: 'f', arguments: '{"a":1}' }],
      ['call_7_2', { name: 'f', arguments: '{}' }],
    ])
    expect(readSignature(said.reasoning_details[0].signature)).toEqual(proof)
  })

  test('on the messages surface', () => {
    const { content, stop_reason } = message(calls)
    expect(stop_reason).toBe('tool_use')
    expect(content.map(({ type }: { type: string }) => type)).toEqual(['thinking', 'tool_use', 'tool_use'])
    expect(content[0].thinking).toBe('')
    expect(readSignature(content[0].signature)).toEqual(proof)
  })
})

test('vector 67: a blocked prompt', () => {
  const blocked = record({ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 4 } })
  expect(chat(blocked)).toMatchObject({
    finish_reason: 'content_filter',
    message: { refusal: 'prompt blocked: SAFETY' },
  })
  expect(message(blocked)).toMatchObject({
    stop_reason: 'refusal',
    stop_details: { explanation: 'prompt blocked: SAFETY' },
    usage: { input_tokens: 4 },
  })
})

test('vector 69: no content but a length', () => {
  const cut = record({ candidates: [{ finishReason: 'MAX_TOKENS' }], usageMetadata: { promptTokenCount: 4 } })
  expect(chat(cut)).toMatchObject({ finish_reason: 'length', message: { content: '' } })
  expect(message(cut)).toMatchObject({ stop_reason: 'max_tokens' })
})
