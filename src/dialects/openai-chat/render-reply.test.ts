import { describe, expect, test } from 'bun:test'
import {
  block,
  call,
  context,
  custom,
  ended,
  sealed,
  started,
  text,
  thinking,
} from '../../../test/parts/reply-events.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import { writeSignature } from '../canonical/signature.ts'
import { renderReply } from './render-reply.ts'

const toolCalls = ended({ unified: 'tool-calls', raw: 'tool_use' })
const reply = (...events: ReplyEvent[]) => JSON.parse(renderReply([started, ...events], context))
const message = (...events: ReplyEvent[]) => reply(...events).choices[0].message

test('a whole reply has every member that clients read', () => {
  expect(reply(...text('Hi'), ended())).toEqual({
    id: 'chatcmpl-up-1',
    object: 'chat.completion',
    created: 1794700000,
    model: 'acme/large',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'Hi', refusal: null }, logprobs: null, finish_reason: 'stop' },
    ],
    usage: {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      cost: 0.000012345,
    },
  })
})

describe('the message', () => {
  test('vector 58: joins texts, keeps reasoning and all calls', () => {
    const said = reply(
      ...thinking(['t'], 's'),
      ...text('a'),
      ...text('b'),
      ...call('1', 'f', '{"x":1}'),
      ...text('c'),
      toolCalls,
    )
    expect(said.choices[0]).toEqual({
      index: 0,
      message: {
        role: 'assistant',
        content: 'ab\n\nc',
        refusal: null,
        reasoning_content: 't',
        reasoning_details: [
          { type: 'reasoning.text', text: 't', signature: 's', format: 'anthropic-claude-v1', index: 0 },
        ],
        tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }],
      },
      logprobs: null,
      finish_reason: 'tool_calls',
    })
  })

  test('vector 59: is an empty text where there is nothing, null beside calls', () => {
    expect(message(ended())).toEqual({ role: 'assistant', content: '', refusal: null })
    expect(message(...call('1', 'f'), toolCalls)).toEqual({
      role: 'assistant',
      content: null,
      refusal: null,
      tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    })
  })

  test('vector 62: of a refusal has its words, and the text so far', () => {
    const refused = ended({ unified: 'refusal', raw: 'refusal', explanation: 'Not this.' })
    expect(message(refused)).toEqual({ role: 'assistant', content: null, refusal: 'Not this.' })
    expect(message(...text('Well'), refused)).toEqual({ role: 'assistant', content: 'Well', refusal: 'Not this.' })
    expect(reply(refused).choices[0].finish_reason).toBe('content_filter')
  })

  test('pitfall 58: has all calls, custom ones with their bare input', () => {
    expect(
      message(...call('1', 'f', '{"a":12345678901234567890}'), ...custom('2', 'p', 'x\ny'), toolCalls).tool_calls,
    ).toEqual([
      { id: '1', type: 'function', function: { name: 'f', arguments: '{"a":12345678901234567890}' } },
      { id: '2', type: 'custom', custom: { name: 'p', input: 'x\ny' } },
    ])
  })

  test('pitfall 80: has the proof of the thinking right before a call on the call, too', () => {
    const proof = writeSignature({ issuer: 'google/gemini/g', blob: 'S1' })
    const [first, second] = message(
      ...thinking([], proof),
      ...call('1', 'f', '{}'),
      ...call('2', 'f', '{}'),
      toolCalls,
    ).tool_calls
    expect([first.extra_content, second.extra_content]).toEqual([{ google: { thought_signature: proof } }, undefined])
  })

  test('has reasoning of several blocks as paragraphs, and sealed reasoning in the details only', () => {
    const said = message(...thinking(['a'], 's'), ...sealed('d'), ...thinking(['', 'b'], 's'), ...text('c'), ended())
    expect(said.reasoning_content).toBe('a\n\nb')
    expect(said.reasoning_details.map(({ type, index }: { type: string; index: number }) => [type, index])).toEqual([
      ['reasoning.text', 0],
      ['reasoning.encrypted', 1],
      ['reasoning.text', 2],
    ])
  })

  test('pitfall 72: numbers reasoning by the blocks that the message has when it comes back', () => {
    const places = (...events: ReplyEvent[]) =>
      message(...events).reasoning_details.map(({ index }: { index: number }) => index)
    const t = thinking(['t'], 's')
    expect(places(...t, ...text('a'), ...t, ...call('1', 'f'), ...t, ...call('2', 'f'), toolCalls)).toEqual([0, 2, 4])
    // Two texts become one, and an empty one none.
    expect(places(...t, ...text('a'), ...text('b'), ...t, ...call('1', 'f'), toolCalls)).toEqual([0, 2])
    expect(places(...t, ...text(''), ...t, ...call('1', 'f'), toolCalls)).toEqual([0, 1])
    // Words that are only ours come back, too.
    const refused = ended({ unified: 'refusal', raw: 'refusal' })
    expect(places(...call('1', 'f'), ...t, refused)).toEqual([2])
  })

  test('has one call in the older form for callers of that form', () => {
    const { choices } = JSON.parse(
      renderReply([started, ...call('1', 'f', '{"x":1}'), ...call('2', 'g'), toolCalls], {
        ...context,
        legacyCalls: true,
      }),
    )
    expect(choices[0].message).toEqual({
      role: 'assistant',
      content: null,
      refusal: null,
      function_call: { name: 'f', arguments: '{"x":1}' },
    })
    expect(choices[0].finish_reason).toBe('function_call')
  })

  test('has a text and no call for callers of the older form, where nothing is called', () => {
    const { choices } = JSON.parse(renderReply([started, ...text('a'), ended()], { ...context, legacyCalls: true }))
    expect(choices[0]).toMatchObject({ message: { content: 'a' }, finish_reason: 'stop' })
    expect(choices[0].message).not.toHaveProperty('function_call')
  })

  test('vector 86: is whole characters', () => {
    expect(message(...text('\ud83d', '\ude00'), ended()).content).toBe('😀')
    expect(message(...block({ kind: 'refusal' }, ['\ud83d']), ended({ unified: 'refusal', raw: '' })).refusal).toBe(
      '\ufffd',
    )
  })
})
