// The replies of this provider as callers of the two surfaces see them, and what
// comes back when they are sent again.

import { describe, expect, test } from 'bun:test'
import { context } from '../../../test/parts/reply-events.ts'
import { parseWhole, requestId } from '../../../test/parts/reply-notation.ts'
import {
  completed,
  created,
  done,
  functionCall,
  gpts,
  incomplete,
  message,
  outputText,
  reasoning,
  recorded,
  responsesTarget,
} from '../../../test/parts/responses.ts'
import { messagesEnvelope } from '../../../test/parts/translation.ts'
import { Failure } from '../../kernel/failure.ts'
import { anthropicMessages } from '../anthropic-messages/index.ts'
import type { SentRequest } from '../canonical/translation.ts'
import type { Dialect } from '../dialect.ts'
import { openaiChat } from '../openai-chat/index.ts'
import { openaiResponses } from './index.ts'
import { parseStream } from './reply/parse.ts'
import { renderRequest } from './request/render.ts'

const target = responsesTarget(gpts.o3)

// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
const replyIn = (dialect: Dialect, stream: string): any =>
  JSON.parse(dialect.translation.renderReply(parseWhole(parseStream(target, requestId), stream), context))
const chat = (stream: string) => replyIn(openaiChat, stream).choices[0]
const messages = (stream: string) => replyIn(anthropicMessages, stream)

/** The body that the provider gets for a caller's body. */
const sentOn = (dialect: Dialect, envelope: SentRequest) => {
  const parsed = dialect.translation.parseRequest(envelope)
  if (parsed instanceof Failure) throw new Error(parsed.message)
  const request = renderRequest(parsed.conversation, target)
  if (request instanceof Failure) throw new Error(request.message)
  return { body: JSON.parse(new TextDecoder().decode(request.body)), warnings: request.warnings }
}

const chatEnvelope = (body: object): SentRequest => {
  const bytes = new TextEncoder().encode(JSON.stringify({ model: 'a/b', ...body }))
  const envelope = openaiChat.readEnvelope(bytes, new Headers())
  if (envelope instanceof Failure) throw new Error(envelope.message)
  return envelope
}

/** Two pieces of reasoning, one for the message and one for the call behind it. */
const interleaved = [
  created,
  done(0, reasoning(0, ['Looking.', 'Found.'], 'S0')),
  done(1, message(1, outputText('Wait.'))),
  done(2, reasoning(2, [], 'S2')),
  done(3, functionCall(3, 'f', '{"a":1}')),
  completed(),
].join('')
const replayed = [
  { role: 'user', content: 'u' },
  {
    type: 'reasoning',
    id: 'rs_0',
    summary: [
      { type: 'summary_text', text: 'Looking.' },
      { type: 'summary_text', text: 'Found.' },
    ],
    encrypted_content: 'S0',
  },
  { role: 'assistant', content: 'Wait.', phase: 'commentary' },
  { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'S2' },
  { type: 'function_call', call_id: 'call_3', name: 'f', arguments: '{"a":1}' },
  { type: 'function_call_output', call_id: 'call_3', output: 'ok' },
]

describe('vectors 46 and 89: reasoning makes the round', () => {
  test('through the chat surface', () => {
    const said = chat(interleaved).message
    expect(said.reasoning_content).toBe('Looking.\n\nFound.')
    const answer = { role: 'tool', tool_call_id: 'call_3', content: 'ok' }
    const { body, warnings } = sentOn(
      openaiChat,
      chatEnvelope({ messages: [{ role: 'user', content: 'u' }, said, answer] }),
    )
    expect(body.input).toEqual(replayed)
    expect(warnings).toEqual([])
  })

  test('through the messages surface', () => {
    const { content } = messages(interleaved)
    expect(content.map(({ type }: { type: string }) => type)).toEqual(['thinking', 'text', 'thinking', 'tool_use'])
    const answer = { type: 'tool_result', tool_use_id: 'call_3', content: 'ok' }
    const turns = [
      { role: 'user', content: 'u' },
      { role: 'assistant', content },
      { role: 'user', content: [answer] },
    ]
    const { body, warnings } = sentOn(anthropicMessages, messagesEnvelope({ messages: turns }))
    expect(body.input).toEqual(replayed)
    expect(warnings).toEqual([])
  })
})

test('a reply is the same on chat and messages', () => {
  expect(chat(recorded)).toMatchObject({
    finish_reason: 'tool_calls',
    message: {
      content: 'Grüße 👋',
      reasoning_content: 'Looking.\n\nFound.',
      tool_calls: [{ id: 'call_2', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
    },
  })
  expect(messages(recorded)).toMatchObject({
    stop_reason: 'tool_use',
    content: [
      { type: 'thinking', thinking: 'Looking.\n\nFound.' },
      { type: 'text', text: 'Grüße 👋' },
      { type: 'tool_use', id: 'call_2', name: 'f', input: { a: 1 } },
    ],
    usage: { input_tokens: 10, cache_read_input_tokens: 70, cache_creation_input_tokens: 20, output_tokens: 5 },
  })
})

test('vector 70: a cap that was reached', () => {
  expect(chat(created + incomplete('max_output_tokens'))).toMatchObject({ finish_reason: 'length' })
  expect(messages(created + incomplete('max_output_tokens'))).toMatchObject({ stop_reason: 'max_tokens' })
})

test('a refusal is emitted as a refusal', () => {
  const refused = [created, done(0, message(0, { type: 'refusal', refusal: 'No.' })), completed()].join('')
  expect(chat(refused)).toMatchObject({ finish_reason: 'content_filter', message: { refusal: 'No.' } })
  expect(messages(refused)).toMatchObject({ stop_reason: 'refusal', stop_details: { explanation: 'No.' } })
})

test('messages that touch are paragraphs on the chat surface', () => {
  const two = [created, done(0, message(0, outputText('a'))), done(1, message(1, outputText('b'))), completed()].join(
    '',
  )
  expect(chat(two).message.content).toBe('a\n\nb')
})

test.each([openaiChat, anthropicMessages, openaiResponses])(
  'a whole reply with its usage does not count the tokens of the prompt: $id',
  (dialect) => {
    const uncounted = {
      ...context,
      get estimatedInputTokens(): number {
        throw new Error('the prompt was counted')
      },
    }
    const text = dialect.translation.renderReply(parseWhole(parseStream(target, requestId), recorded), uncounted)
    expect(text).toContain('Grüße 👋')
  },
)
