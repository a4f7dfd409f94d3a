// Whatever a provider sends, a parser answers with a well-formed reply or a failure, and what is made of it for the
// caller follows the grammar.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseStream as parseMessages } from '../../src/dialects/anthropic-messages/reply/parse.ts'
import { renderStream as renderMessages } from '../../src/dialects/anthropic-messages/reply/render.ts'
import type { ReplyEvent } from '../../src/dialects/canonical/reply.ts'
import type { StreamRenderer } from '../../src/dialects/canonical/translation.ts'
import { parseStream as parseChat } from '../../src/dialects/openai-chat/reply/parse.ts'
import { renderStream as renderChat } from '../../src/dialects/openai-chat/reply/render.ts'
import { type SseEvent, SseReader } from '../../src/wire/sse.ts'
import { chunk, done, record, target } from '../parts/chat-stream.ts'
import { event } from '../parts/messages-stream.ts'
import { context } from '../parts/reply-events.ts'
import { parseCut, parseWhole, requestId } from '../parts/reply-notation.ts'
import { checkChatStream } from './checker/grammar-chat.ts'
import { checkMessagesStream } from './checker/grammar-messages.ts'

const textIn = fc.constantFrom('', ' ', 'a', '\n', '{"x":1}', '{', '}', '"', '\ud83d', '<think>', '</think>')
const junk = fc.oneof(fc.constantFrom(null, undefined, 0, 7, true, [], {}), textIn)
const orJunk = <Value>(good: fc.Arbitrary<Value>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 6, arbitrary: good }, { weight: 1, arbitrary: junk })
const member = <Value>(good: fc.Arbitrary<Value>) => fc.option(orJunk(good), { nil: undefined })

const fragment = fc.record({
  index: member(fc.nat(2)),
  id: member(fc.constantFrom('', 'a', 'b')),
  type: member(fc.constant('function')),
  function: member(fc.record({ name: member(fc.constantFrom('', 'f', 'g')), arguments: member(textIn) })),
  custom: fc.option(fc.record({ name: member(fc.constant('p')), input: member(textIn) }), { nil: undefined, freq: 6 }),
})
const delta = fc.record({
  content: member(textIn),
  reasoning: member(textIn),
  reasoning_details: member(
    fc.array(fc.record({ type: fc.constant('reasoning.text'), text: member(textIn), data: member(textIn) }), {
      maxLength: 2,
    }),
  ),
  refusal: fc.option(textIn, { nil: undefined, freq: 8 }),
  tool_calls: member(fc.array(orJunk(fragment), { maxLength: 2 })),
})
const finish = fc.constantFrom(null, null, null, 'stop', 'length', 'tool_calls', 'content_filter')
const chatRecord = fc.oneof(
  { weight: 12, arbitrary: fc.tuple(delta, finish).map(([said, ends]) => chunk(said, ends)) },
  {
    weight: 1,
    arbitrary: orJunk(fc.record({ choices: orJunk(fc.array(junk, { maxLength: 1 })), usage: junk })).map(record),
  },
  { weight: 1, arbitrary: fc.constantFrom(': comment\n\n', 'data: {\n\n', 'data:\n\n', done) },
)

const block = fc.record({
  type: fc.constantFrom('text', 'thinking', 'redacted_thinking', 'tool_use', 'server_tool_use', 'tomorrow'),
  text: member(textIn),
  thinking: member(textIn),
  signature: member(textIn),
  data: member(textIn),
  id: member(fc.constantFrom('', 'a')),
  name: fc.constantFrom('f', 'g'),
  input: member(fc.constantFrom({}, { x: 1 })),
})
const blockDelta = fc.record({
  type: fc.constantFrom('text_delta', 'thinking_delta', 'signature_delta', 'input_json_delta', 'citations_delta'),
  text: member(textIn),
  thinking: member(textIn),
  signature: member(textIn),
  partial_json: member(textIn),
})
const index = fc.constantFrom(0, 1, 2, undefined)
const messagesRecord = fc.oneof(
  fc.tuple(index, block).map(([at, content]) => event('content_block_start', { index: at, content_block: content })),
  fc.tuple(index, blockDelta).map(([at, said]) => event('content_block_delta', { index: at, delta: said })),
  index.map((at) => event('content_block_stop', { index: at })),
  orJunk(fc.record({ stop_reason: orJunk(fc.constantFrom('end_turn', 'max_tokens', 'tool_use', 'refusal')) })).map(
    (said) => event('message_delta', { delta: said, usage: { output_tokens: 3 } }),
  ),
  fc.constantFrom(
    event('ping'),
    event('tomorrow'),
    'event: ping\n\n',
    'data: {\n\n',
    event('message_start', { message: { id: 'msg_1' } }),
    event('message_stop'),
  ),
)

/** The rules of canonical replies, checked in one pass. */
function checkReply(events: readonly ReplyEvent[]): void {
  const seen = events.filter(({ type }) => type !== 'keep-alive')
  const last = seen.at(-1)
  expect(['reply-end', 'reply-failure']).toContain(String(last?.type))
  expect(seen.filter(({ type }) => type === 'reply-end' || type === 'reply-failure')).toHaveLength(1)
  const starts = seen.filter(({ type }) => type === 'reply-start')
  expect(starts).toEqual(seen[0]?.type === 'reply-failure' ? [] : [seen[0] as ReplyEvent])
  let open: string | undefined
  const deltas: Record<string, string[]> = {
    'text-delta': ['text', 'refusal'],
    'thinking-delta': ['thinking'],
    signature: ['thinking'],
    'arguments-delta': ['tool-call'],
  }
  for (const each of seen) {
    if (each.type === 'block-start') {
      expect(open).toBeUndefined()
      open = each.block.kind
    } else if (each.type === 'block-end') {
      expect(open).toBeDefined()
      open = undefined
    } else if (deltas[each.type]) expect(deltas[each.type]).toContain(String(open))
  }
  if (last?.type === 'reply-end') expect(open).toBeUndefined()
}

function sseOf(renderer: StreamRenderer, events: readonly ReplyEvent[]): SseEvent[] {
  const stream = events.map((each) => renderer.render(each)).join('') + renderer.terminal
  return new SseReader().push(new TextEncoder().encode(stream))
}

/** A model that writes bad JSON is not ours to mend. */
const beyondArguments = ({ rule }: { rule: string }): boolean => rule !== 'tool-json'

function checkRendered(events: readonly ReplyEvent[]): void {
  if (events.at(-1)?.type !== 'reply-end') return
  expect(checkChatStream(sseOf(renderChat(context), events), { wantsUsage: true }).filter(beyondArguments)).toEqual([])
  expect(checkMessagesStream(sseOf(renderMessages(context), events)).filter(beyondArguments)).toEqual([])
}

const cutsOf = (length: number, places: readonly number[]): number[] =>
  places.map((place) => place % (length + 1)).sort((a, b) => a - b)

test('a Chat Completions provider may send anything', () => {
  const isTagged = fc.boolean()
  fc.assert(
    fc.property(
      fc.array(chatRecord, { maxLength: 12 }),
      fc.array(fc.nat(), { maxLength: 6 }),
      isTagged,
      (records, places, thinkTags) => {
        const bytes = new TextEncoder().encode(records.join('') + done)
        const parser = () => parseChat({ ...target, rules: { thinkTags } }, requestId)
        const events = parseWhole(parser(), bytes)
        checkReply(events)
        checkRendered(events)
        expect(parseCut(parser(), bytes, cutsOf(bytes.length, places))).toEqual(events)
      },
    ),
    { numRuns: 600 },
  )
})

test('thinking in tags is the same for any chunking where reasoning details follow', () => {
  const details = (detail: object) => ({ reasoning_details: [{ type: 'reasoning.text', ...detail }] })
  const deltas = [{ content: '<think>x' }, { ...details({}), refusal: 'no' }, details({ data: 'opaque' })]
  const bytes = new TextEncoder().encode(deltas.map((delta) => chunk(delta)).join('') + done)
  const parser = () => parseChat({ ...target, rules: { thinkTags: true } }, requestId)
  const events = parseWhole(parser(), bytes)
  for (let at = 1; at < bytes.length; at++) expect(parseCut(parser(), bytes, [at])).toEqual(events)
})

test('a Messages provider may send anything', () => {
  const start = event('message_start', { message: { id: 'msg_1', usage: { input_tokens: 3, output_tokens: 1 } } })
  fc.assert(
    fc.property(
      fc.array(messagesRecord, { maxLength: 12 }),
      fc.array(fc.nat(), { maxLength: 6 }),
      (records, places) => {
        const bytes = new TextEncoder().encode(start + records.join('') + event('message_stop'))
        const events = parseWhole(parseMessages(target, requestId), bytes)
        checkReply(events)
        checkRendered(events)
        expect(parseCut(parseMessages(target, requestId), bytes, cutsOf(bytes.length, places))).toEqual(events)
      },
    ),
    { numRuns: 600 },
  )
})
