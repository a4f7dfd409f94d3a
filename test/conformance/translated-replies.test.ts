// Whatever a canonical reply holds, each dialect's stream and whole reply are well-formed and say the same.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseStream as parseMessages } from '../../src/dialects/anthropic-messages/reply/parse.ts'
import {
  renderStream as renderMessages,
  renderReply as renderMessagesReply,
} from '../../src/dialects/anthropic-messages/reply/render.ts'
import type { ReplyEvent } from '../../src/dialects/canonical/reply.ts'
import type { StreamRenderer } from '../../src/dialects/canonical/translation.ts'
import { parseStream as parseChat } from '../../src/dialects/openai-chat/reply/parse.ts'
import {
  renderStream as renderChat,
  renderReply as renderChatReply,
} from '../../src/dialects/openai-chat/reply/render.ts'
import { type SseEvent, SseReader } from '../../src/wire/sse.ts'
import { type CollectedBlock, collectReply } from '../parts/collect-reply.ts'
import { anyReply, context } from '../parts/reply-events.ts'
import { parseWhole, requestId } from '../parts/reply-notation.ts'
import { target as messagesTarget } from '../parts/translation.ts'
import { checkChatReply, checkChatStream } from './checker/grammar-chat.ts'
import { checkMessagesReply, checkMessagesStream } from './checker/grammar-messages.ts'

type Json = Record<string, unknown>

function streamOf(renderer: StreamRenderer, events: readonly ReplyEvent[]): string {
  return events.map((event) => renderer.render(event)).join('') + renderer.terminal
}

function sseOf(stream: string): SseEvent[] {
  const reader = new SseReader()
  return [...reader.push(new TextEncoder().encode(stream)), ...reader.end()]
}

/** The message that a client would put together from the chunks, as far as it differs from the whole reply. */
function collectChat(events: readonly SseEvent[]): { message: Json; usage: unknown; finish: unknown } {
  const message: Json = { role: 'assistant', content: '', refusal: null }
  const calls: Json[] = []
  let usage: unknown
  let finish: unknown
  for (const { data } of events.slice(0, -1)) {
    const chunk = JSON.parse(data)
    usage = chunk.usage
    for (const { delta, finish_reason } of chunk.choices) {
      finish = finish_reason
      for (const name of ['content', 'refusal', 'reasoning_content']) {
        if (name in delta) message[name] = `${message[name] ?? ''}${delta[name]}`
      }
      if (delta.reasoning_details) message.reasoning_details = delta.reasoning_details
      for (const { index, ...call } of delta.tool_calls ?? []) {
        const known = calls[index]
        if (!known) calls[index] = call
        else if (call.custom) (known.custom as Json).input += call.custom.input
        else (known.function as Json).arguments += call.function.arguments
      }
    }
  }
  if (calls.length > 0) message.tool_calls = calls
  // A stream cannot know that no text will come.
  if (message.content === '' && (calls.length > 0 || message.refusal !== null)) message.content = null
  return { message, usage, finish }
}

function collectMessages(events: readonly SseEvent[]): Json {
  let message: Json = {}
  const content: Json[] = []
  const inputs: string[] = []
  for (const { data } of events) {
    const record = JSON.parse(data)
    const block = content.at(-1) ?? {}
    if (record.type === 'message_start') message = record.message
    if (record.type === 'content_block_start') {
      content.push(record.content_block)
      inputs.push('')
    }
    if (record.type === 'content_block_delta') {
      const { type, ...delta } = record.delta
      if (type === 'signature_delta') block.signature = delta.signature
      else if (type === 'input_json_delta') inputs[content.length - 1] += delta.partial_json
      else for (const [name, text] of Object.entries(delta)) block[name] += String(text)
    }
    if (record.type === 'message_delta') {
      message = { ...message, ...record.delta, usage: { ...(message.usage as Json), ...record.usage } }
    }
  }
  for (const [at, block] of content.entries()) if (inputs[at]) block.input = JSON.parse(inputs[at])
  return { ...message, content }
}

/** Blank arguments may be written as any blank JSON; the object is what counts. */
const withoutBlanks = (message: Json): Json =>
  JSON.parse(JSON.stringify(message), (name, value) => (name === 'arguments' ? value.trim() : value))

describe('chat completions', () => {
  test('pitfall 113: a stream follows the grammar and says what the whole reply says', () => {
    fc.assert(
      fc.property(anyReply, (events) => {
        const sse = sseOf(streamOf(renderChat(context), events))
        expect(checkChatStream(sse, { wantsUsage: true })).toEqual([])
        const whole = JSON.parse(renderChatReply(events, context))
        expect(checkChatReply(whole)).toEqual([])
        const { message, usage, finish } = collectChat(sse)
        expect(withoutBlanks(message)).toEqual(withoutBlanks(whole.choices[0].message))
        expect([usage, finish]).toEqual([whole.usage, whole.choices[0].finish_reason])
        const quiet = { ...context, wantsStreamUsage: false }
        expect(checkChatStream(sseOf(streamOf(renderChat(quiet), events)), { wantsUsage: false })).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  test('a rendered reply is parsed to the same text, calls and stop reason', () => {
    const target = {
      upstreamModel: 'm',
      issuer: 'i',
      rules: {},
      defaultOutputCap: undefined,
      maxOutputTokens: undefined,
    }
    fc.assert(
      fc.property(anyReply, (events) => {
        const { message } = collectChat(sseOf(streamOf(renderChat(context), events)))
        const again = collectReply(parseWhole(parseChat(target, requestId), streamOf(renderChat(context), events)))
        const texts = again.blocks.filter(({ kind }) => kind === 'text')
        const said = texts.map((block) => ('text' in block ? block.text : '')).join('')
        // Blank text that no word follows is not worth a block.
        expect(said.trimEnd()).toBe(String(message.content ?? '').trimEnd())
        expect(callsOf(again.blocks)).toEqual(callsOf(collectReply(events).blocks))
        expect(again.stop.unified).toBe(collectReply(events).stop.unified)
      }),
      { numRuns: 300 },
    )
  })
})

const callsOf = (blocks: readonly CollectedBlock[]): unknown[] =>
  blocks.flatMap((block) =>
    block.kind === 'tool-call'
      ? [{ ...block, arguments: block.custom ? block.arguments : block.arguments.trim() || '{}' }]
      : [],
  )

describe('messages', () => {
  test('a stream follows the grammar and says what the whole reply says', () => {
    fc.assert(
      fc.property(anyReply, (events) => {
        const sse = sseOf(streamOf(renderMessages(context), events))
        expect(checkMessagesStream(sse)).toEqual([])
        const whole = JSON.parse(renderMessagesReply(events, context))
        expect(checkMessagesReply(whole)).toEqual([])
        expect(collectMessages(sse)).toEqual(whole)
      }),
      { numRuns: 300 },
    )
  })

  test('a rendered reply is parsed to the same blocks', () => {
    fc.assert(
      fc.property(anyReply, (events) => {
        const original = collectReply(events)
        const again = collectReply(
          parseWhole(parseMessages(messagesTarget(), requestId), streamOf(renderMessages(context), events)),
        )
        const said = original.blocks.filter(
          (block) => !('text' in block && block.text === '' && block.kind !== 'thinking'),
        )
        const wanted = said.map((block) => {
          if (block.kind !== 'tool-call') return block
          const text = block.custom ? JSON.stringify({ input: block.arguments }) : block.arguments.trim()
          return { ...block, custom: false, arguments: text }
        })
        expect(again.blocks).toEqual(wanted.length > 0 ? wanted : [{ kind: 'text', text: '' }])
        expect(again.stop).toMatchObject({ unified: original.stop.unified })
      }),
      { numRuns: 300 },
    )
  })
})
