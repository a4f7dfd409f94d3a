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
} from '../../../../test/parts/reply-events.ts'
import { faultFromError } from '../../canonical/faults.ts'
import type { ReplyEvent } from '../../canonical/reply.ts'
import { renderReply, renderStream } from './render.ts'

function rendered(events: readonly ReplyEvent[], within = context): string {
  const renderer = renderStream(within)
  return events.map((event) => renderer.render(event)).join('') + renderer.terminal
}

type Data = Record<string, unknown>
/** The data of all records; their names are checked on the way. */
const recordsOf = (stream: string): Data[] =>
  stream
    .split('\n\n')
    .filter((record) => record.startsWith('event: '))
    .map((record) => {
      const [name = '', json = ''] = record.split('\n')
      const data: Data = JSON.parse(json.slice('data: '.length))
      expect(`event: ${data.type}`).toBe(name)
      return data
    })
/** The events between the start and the end. */
const body = (...events: ReplyEvent[]): Data[] =>
  recordsOf(rendered([started, ...events])).filter(({ type }) => String(type).startsWith('content_block'))
const opened = (index: number, content_block: object): Data => ({ type: 'content_block_start', index, content_block })
const delta = (index: number, type: string, member: string, value: string): Data => ({
  type: 'content_block_delta',
  index,
  delta: { type, [member]: value },
})
const closed = (index: number): Data => ({ type: 'content_block_stop', index })
const emptyText = { type: 'text', text: '', citations: null }
const direct = { type: 'direct' }
const toolCalls = ended({ unified: 'tool-calls', raw: 'tool_calls' })
const messageDelta = (...events: ReplyEvent[]): Data | undefined =>
  recordsOf(rendered([started, ...events])).find(({ type }) => type === 'message_delta')

test('a reply is written record by record, as Anthropic writes it', () => {
  const usage = (input: number, output: number): string =>
    `"input_tokens":${input},"cache_creation_input_tokens":null,"cache_read_input_tokens":null,"output_tokens":${output},"output_tokens_details":null,"server_tool_use":null`
  const rest = '"cache_creation":null,"service_tier":null,"inference_geo":null,"speed":null'
  expect(rendered([started, ...text('Hi'), ended(undefined, usageOf({ cacheReported: 'none' }))])).toBe(
    [
      `event: message_start\ndata: {"type":"message_start","message":{"id":"msg_up-1","type":"message","role":"assistant","model":"acme/large","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"container":null,"diagnostics":null,"usage":{${usage(42, 0)},${rest}}}}`,
      'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":null}}',
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}',
      'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}',
      `event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,"container":null},"usage":{${usage(10, 5)},"cost":0.000012345}}`,
      'event: message_stop\ndata: {"type":"message_stop"}',
      '',
    ].join('\n\n'),
  )
})

describe('the start', () => {
  const startUsage = (events: ReplyEvent[], within = context): unknown =>
    (recordsOf(rendered(events, within))[0] as { message: Data }).message.usage

  test('pitfall 103: has input tokens above 0, whatever was estimated', () => {
    expect(startUsage([started])).toMatchObject({ input_tokens: 42, output_tokens: 0 })
    expect(startUsage([started], { ...context, estimatedInputTokens: 0 })).toMatchObject({ input_tokens: 1 })
  })

  test('vector 81: has an estimate, the true count comes with the end', () => {
    expect(startUsage([started])).toMatchObject({ input_tokens: 42 })
    const usage = usageOf({ inputTokens: 10, cacheReadTokens: 70, cacheWriteTokens: 20, reasoningTokens: 3 })
    expect(messageDelta(...text('a'), ended(undefined, usage))?.usage).toEqual({
      input_tokens: 10,
      cache_creation_input_tokens: 20,
      cache_read_input_tokens: 70,
      output_tokens: 5,
      output_tokens_details: { thinking_tokens: 3 },
      server_tool_use: null,
      cost: 0.000012345,
    })
  })

  test('takes what the provider reported up front', () => {
    const reported: ReplyEvent = {
      type: 'reply-start',
      id: 'msg_7',
      usage: usageOf({ inputTokens: 0, cacheReadTokens: 9, outputTokens: 1 }),
    }
    expect(startUsage([reported])).toMatchObject({ input_tokens: 0, cache_read_input_tokens: 9, output_tokens: 1 })
    expect(rendered([reported])).toContain('"id":"msg_7"')
  })

  test('pitfall 131: comes once, also after an early one', () => {
    const early: ReplyEvent = { type: 'reply-start', id: undefined, usage: undefined }
    const records = recordsOf(rendered([early, started, ...text('a'), ended()]))
    expect(records.filter(({ type }) => type === 'message_start')).toHaveLength(1)
    expect(records[0]).toMatchObject({ message: { id: 'msg_req_01ABC' } })
  })

  test('pitfall 135: is waited for with comments, pings follow it', () => {
    expect(rendered([{ type: 'keep-alive' }])).toBe(': keep-alive\n\n')
    expect(rendered([started, { type: 'keep-alive' }]).endsWith('event: ping\ndata: {"type":"ping"}\n\n')).toBe(true)
  })
})

describe('blocks', () => {
  test('pitfall 62: are numbered without holes, each with one start and one stop', () => {
    expect(body(...text('a'), ...call('t1', 'f', '{"x"', ':1}'), ...text('b'), toolCalls)).toEqual([
      opened(0, emptyText),
      delta(0, 'text_delta', 'text', 'a'),
      closed(0),
      opened(1, { type: 'tool_use', id: 't1', name: 'f', input: {}, caller: direct }),
      delta(1, 'input_json_delta', 'partial_json', '{"x"'),
      delta(1, 'input_json_delta', 'partial_json', ':1}'),
      closed(1),
      opened(2, emptyText),
      delta(2, 'text_delta', 'text', 'b'),
      closed(2),
    ])
  })

  test('pitfall 132: have one start for many deltas', () => {
    expect(body(...text('a', 'b', 'c'), ended()).filter(({ type }) => type === 'content_block_start')).toHaveLength(1)
  })

  test('pitfall 77: of thinking begin with an empty signature and end with a signature_delta', () => {
    expect(body(...thinking(['h', 'm'], 'tg1.x'), ended())).toEqual([
      opened(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, 'thinking_delta', 'thinking', 'h'),
      delta(0, 'thinking_delta', 'thinking', 'm'),
      delta(0, 'signature_delta', 'signature', 'tg1.x'),
      closed(0),
    ])
  })

  test('a thinking block that was signed twice has the later signature, once', () => {
    const events: ReplyEvent[] = [
      { type: 'block-start', block: { kind: 'thinking' } },
      { type: 'signature', signature: 's1' },
      { type: 'signature', signature: 's2' },
      { type: 'block-end' },
    ]
    expect(body(...events, ended())).toEqual([
      opened(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, 'signature_delta', 'signature', 's2'),
      closed(0),
    ])
  })

  test('a sealed thinking block arrives whole', () => {
    expect(body(...sealed('Emw='), ended())).toEqual([
      opened(0, { type: 'redacted_thinking', data: 'Emw=' }),
      closed(0),
    ])
  })

  test('pitfall 69: with nothing in them are not opened', () => {
    expect(
      body(...text(''), ...thinking([]), ...call('t', 'f', '{}'), ...text(), toolCalls).map(({ type, index }) => [
        type,
        index,
      ]),
    ).toEqual([
      ['content_block_start', 0],
      ['content_block_delta', 0],
      ['content_block_stop', 0],
    ])
  })

  test('vector 83: are one empty text where there is nothing at all', () => {
    expect(body(ended())).toEqual([opened(0, emptyText), closed(0)])
  })

  test('a refusal becomes text', () => {
    expect(
      body(...block({ kind: 'refusal' }, ['No.']), ended({ unified: 'refusal', raw: 'stop', explanation: 'No.' })),
    ).toEqual([opened(0, emptyText), delta(0, 'text_delta', 'text', 'No.'), closed(0)])
  })
})

describe('arguments', () => {
  const partial = (...pieces: string[]): string =>
    body(...call('t', 'f', ...pieces), toolCalls)
      .map((data) => (data.delta as { partial_json?: string } | undefined)?.partial_json ?? '')
      .join('')
  const cases: [pieces: string[], json: string][] = [
    [[], ''],
    [[' '], ''],
    [['{"n":', '12345678901234567890}'], '{"n":12345678901234567890}'],
    [['[1', ',2]'], '{"value":[1,2]}'],
    [['"{\\"a\\":1}"'], '{"a":1}'],
    [['oh ', 'no'], '{"raw_arguments":"oh no"}'],
    [['{"cut'], '{"cut'],
    // There at once and no JSON: official clients would fail on it.
    [['{"a":1,}'], '{"raw_arguments":"{\\"a\\":1,}"}'],
    [['{"path":"C:\\dir"}'], '{"raw_arguments":"{\\"path\\":\\"C:\\\\dir\\"}"}'],
    [[' ', '{"a":"b\nc"}', ''], '{"raw_arguments":" {\\"a\\":\\"b\\nc\\"}"}'],
    [['{"a":{"b":"}"}}'], '{"a":{"b":"}"}}'],
  ]
  test.each(cases)('pitfall 54: %j become the text of an object where that can still be done', (pieces, json) => {
    expect(partial(...pieces)).toBe(json)
  })

  test('the input of a custom tool becomes its one argument', () => {
    const json = (...pieces: string[]): string =>
      body(...custom('t', 'p', ...pieces), toolCalls)
        .map((data) => (data.delta as { partial_json?: string } | undefined)?.partial_json ?? '')
        .join('')
    expect(json('a"\n', 'b\ud83d', '\ude00')).toBe('{"input":"a\\"\\nb😀"}')
    expect(json()).toBe('{"input":""}')
  })
})

describe('the end', () => {
  const refusalDetails = (explanation: string | null): object => ({ type: 'refusal', category: null, explanation })
  const stops: [stop: Parameters<typeof ended>[0], reason: string, sequence: string | null, details: object | null][] =
    [
      [{ unified: 'end', raw: 'stop' }, 'end_turn', null, null],
      [{ unified: 'length', raw: 'length' }, 'max_tokens', null, null],
      [{ unified: 'stop-sequence', raw: 'stop', sequence: 'END' }, 'stop_sequence', 'END', null],
      [{ unified: 'stop-sequence', raw: 'stop' }, 'end_turn', null, null],
      [{ unified: 'tool-calls', raw: 'stop' }, 'tool_use', null, null],
      [{ unified: 'refusal', raw: 'content_filter' }, 'refusal', null, refusalDetails(null)],
      [{ unified: 'refusal', raw: 'stop', explanation: 'No.' }, 'refusal', null, refusalDetails('No.')],
      [{ unified: 'pause', raw: 'x' }, 'pause_turn', null, null],
    ]
  test.each(stops)('pitfall 118: of %j says so in the dialect’s words', (stop, reason, sequence, details) => {
    expect(messageDelta(...text('a'), ended(stop))?.delta).toEqual({
      stop_reason: reason,
      stop_sequence: sequence,
      stop_details: details,
      container: null,
    })
  })

  test('pitfall 114: has the output tokens that were reported', () => {
    expect(messageDelta(...text('a'), ended())?.usage).toMatchObject({ input_tokens: 10, output_tokens: 5 })
  })

  test('pitfall 141: is never made up: a failure has no message_stop', () => {
    const fault = faultFromError(undefined, undefined, { message: 'x' })
    const stream = rendered([started, ...text('a').slice(0, 2), { type: 'reply-failure', fault }])
    expect(stream).not.toContain('message_stop')
    expect(stream).not.toContain('message_delta')
  })
})

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

test('pitfall 102: a count that was not reported is null, and a reported zero is 0', () => {
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
