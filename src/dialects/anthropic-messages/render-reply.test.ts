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
  usageOf,
} from '../../../test/parts/reply-events.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import { renderReply } from './render-reply.ts'

const toolCalls = ended({ unified: 'tool-calls', raw: 'tool_calls' })
const reply = (...events: ReplyEvent[]) => JSON.parse(renderReply([started, ...events], context))
const content = (...events: ReplyEvent[]) => reply(...events).content

test('a whole reply has every member that the official types declare', () => {
  expect(reply(...text('Hi'), ended(undefined, usageOf({ cacheReported: 'none' })))).toEqual({
    id: 'msg_up-1',
    type: 'message',
    role: 'assistant',
    model: 'acme/large',
    content: [{ type: 'text', text: 'Hi', citations: null }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: {
      input_tokens: 10,
      cache_creation_input_tokens: null,
      cache_read_input_tokens: null,
      cache_creation: null,
      output_tokens: 5,
      output_tokens_details: null,
      server_tool_use: null,
      service_tier: null,
      inference_geo: null,
      speed: null,
      cost: 0.000012345,
    },
  })
})

describe('the content', () => {
  test('keeps blocks in their order', () => {
    const said = content(
      ...thinking(['h', 'm'], 'tg1.x'),
      ...sealed('Emw='),
      ...text('a'),
      ...call('t1', 'f', '{"x":1}'),
      ...block({ kind: 'refusal' }, ['No']),
      toolCalls,
    )
    expect(said).toEqual([
      { type: 'thinking', thinking: 'hm', signature: 'tg1.x' },
      { type: 'redacted_thinking', data: 'Emw=' },
      { type: 'text', text: 'a', citations: null },
      { type: 'tool_use', id: 't1', name: 'f', input: { x: 1 }, caller: { type: 'direct' } },
      { type: 'text', text: 'No', citations: null },
    ])
  })

  test('vector 83: is one empty text where there is nothing', () => {
    expect(content(...text(''), ended())).toEqual([{ type: 'text', text: '', citations: null }])
  })

  const inputs: [text: string, input: string][] = [
    ['', '{}'],
    [' \n', '{}'],
    [' {"n":12345678901234567890,"1":1.0} ', '{"n":12345678901234567890,"1":1.0}'],
    ['[1]', '{"value":[1]}'],
    ['null', '{"value":null}'],
    ['"{\\"a\\":1}"', '{"a":1}'],
    ['"text"', '{"value":"text"}'],
    ['{bad', '{"raw_arguments":"{bad"}'],
  ]
  test.each(inputs)('vector 65: makes an object of the arguments %j, spelt as the model spelt it', (written, input) => {
    const json = renderReply([started, ...call('t', 'f', written), toolCalls], context)
    expect(json).toContain(`"name":"f","input":${input},"caller":{"type":"direct"}}`)
    expect(() => JSON.parse(json)).not.toThrow()
  })

  test('gives a custom tool’s text as its one argument', () => {
    expect(content(...custom('t', 'p', 'a "b"\n'), toolCalls)[0].input).toEqual({ input: 'a "b"\n' })
  })
})

test('pitfall 102: a count that nobody reported is null, one that was reported as zero is 0', () => {
  const cache = (cacheReported?: 'none' | 'reads') => {
    const { usage } = reply(...text('Hi'), ended(undefined, usageOf(cacheReported ? { cacheReported } : {})))
    return [usage.cache_read_input_tokens, usage.cache_creation_input_tokens]
  }
  expect(cache('none')).toEqual([null, null])
  expect(cache('reads')).toEqual([0, null])
  expect(cache()).toEqual([0, 0])
})

test('pitfall 102: usage tells the cached tokens apart, and nothing is counted twice', () => {
  const usage = usageOf({
    inputTokens: 10,
    cacheReadTokens: 70,
    cacheWriteTokens: 15,
    cacheWriteLongTokens: 5,
    reasoningTokens: 2,
  })
  expect(reply(...text('a'), ended(undefined, usage)).usage).toMatchObject({
    input_tokens: 10,
    cache_read_input_tokens: 70,
    cache_creation_input_tokens: 20,
    cache_creation: { ephemeral_5m_input_tokens: 15, ephemeral_1h_input_tokens: 5 },
    output_tokens: 5,
    output_tokens_details: { thinking_tokens: 2 },
  })
})
