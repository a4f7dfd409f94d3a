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
import { tokenCounts } from '../../../../test/parts/token-counts.ts'
import { Failure } from '../../../kernel/failure.ts'
import { faultFromError } from '../../canonical/faults.ts'
import type { ReplyEvent } from '../../canonical/reply.ts'
import { writeSignature } from '../../canonical/signature.ts'
import type { RenderContext } from '../../canonical/translation.ts'
import { renderStreamFailure } from '../errors.ts'
import { renderReply, renderStream } from './render.ts'

const quiet: RenderContext = { ...context, wantsStreamUsage: false }

function rendered(events: readonly ReplyEvent[], within = quiet): string {
  const renderer = renderStream(within)
  return events.map((event) => renderer.render(event)).join('') + renderer.terminal
}

interface Chunk {
  readonly choices: { readonly delta: Record<string, unknown>; readonly finish_reason: string | null }[]
  readonly [member: string]: unknown
}
const chunksOf = (stream: string): Chunk[] =>
  stream
    .split('\n\n')
    .filter((record) => record.startsWith('data: {'))
    .map((record) => JSON.parse(record.slice(6)))
/** The deltas between the role and the finish. */
const deltas = (...events: ReplyEvent[]): unknown[] =>
  chunksOf(rendered([started, ...events]))
    .flatMap(({ choices }) => choices)
    .slice(1, -1)
    .map(({ delta }) => delta)
const toolCalls = ended({ unified: 'tool-calls', raw: 'tool_use' })
const callDelta = (...members: object[]): object => ({ tool_calls: members })

test('a reply is written record by record, as OpenAI writes it', () => {
  const head = '"id":"chatcmpl-up-1","object":"chat.completion.chunk","created":1794700000,"model":"acme/large"'
  const chunk = (delta: string, finish: string): string =>
    `data: {${head},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}],"usage":null}\n\n`
  const usage =
    '{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"cost":0.000012345}'
  expect(rendered([started, ...text('Hi'), ended()], context)).toBe(
    chunk('{"role":"assistant","content":""}', 'null') +
      chunk('{"content":"Hi"}', 'null') +
      chunk('{}', '"stop"') +
      `data: {${head},"choices":[],"usage":${usage}}\n\n` +
      'data: [DONE]\n\n',
  )
})

describe('the frame', () => {
  test('vector 74: has usage null on all chunks and the usage on one more, if asked for; else no such key', () => {
    const chunks = chunksOf(rendered([started, ...text('a'), ended()], context))
    expect(chunks.map(({ usage }) => usage)).toEqual([null, null, null, expect.objectContaining({ cost: 0.000012345 })])
    expect(chunks.at(-1)?.choices).toEqual([])
    expect(rendered([started, ...text('a'), ended()])).not.toContain('usage')
  })

  test('pitfall 66: begins with the role and an empty content, once, even if a fallback provider starts again', () => {
    const chunks = chunksOf(rendered([started, { ...started, id: 'up-2' } as ReplyEvent, ...text('a'), ended()]))
    expect(chunks.map(({ choices }) => choices[0]?.delta)).toEqual([
      { role: 'assistant', content: '' },
      { content: 'a' },
      {},
    ])
    expect(new Set(chunks.map(({ id }) => id))).toEqual(new Set(['chatcmpl-up-1']))
  })

  test('is named after the request where the provider gave no id', () => {
    const early: ReplyEvent = { type: 'reply-start', id: undefined, usage: undefined }
    expect(chunksOf(rendered([early, started, ...text('a'), ended()]))[0]?.id).toBe('chatcmpl-req_01ABC')
  })

  test('vector 73: is kept alive by a comment and a blank line, nothing else', () => {
    expect(rendered([{ type: 'keep-alive' }])).toBe(': keep-alive\n\n')
    expect(rendered([started, { type: 'keep-alive' }]).endsWith('\n\n: keep-alive\n\n')).toBe(true)
  })

  test('vector 75: of a reply that fails has no finish and no [DONE]; the error is the failure table’s', () => {
    const fault = faultFromError(529, undefined, { message: 'Overloaded' })
    const stream = rendered([started, ...text('a').slice(0, 2), { type: 'reply-failure', fault }])
    expect(chunksOf(stream).map(({ choices }) => choices[0]?.finish_reason)).toEqual([null, null])
    expect(stream).not.toContain('[DONE]')
    const last = new TextDecoder().decode(renderStreamFailure(new Failure('STREAM_INTERRUPTED', 'broke off')))
    expect(last).toBe(
      'data: {"error":{"message":"broke off","type":"api_error","param":null,"code":"STREAM_INTERRUPTED"}}\n\n',
    )
  })
})

describe('texts', () => {
  test('touch where their blocks touch, and are paragraphs where something stands between', () => {
    const apart = block({ kind: 'text', apart: true }, ['d'])
    expect(deltas(...text('a'), ...text('b'), ...call('1', 'f', '{}'), ...text('', 'c'), ...apart, toolCalls)).toEqual([
      { content: 'a' },
      { content: 'b' },
      callDelta({ index: 0, id: '1', type: 'function', function: { name: 'f', arguments: '' } }),
      callDelta({ index: 0, function: { arguments: '{}' } }),
      { content: '\n\nc' },
      { content: '\n\nd' },
    ])
  })

  test('vector 86: of halved characters are written whole, each record valid by itself', () => {
    const emoji = '😀'
    expect(deltas(...text('a\ud83d', '\ude00b'), ended())).toEqual([{ content: 'a' }, { content: `${emoji}b` }])
    expect(deltas(...text('a\ud83d'), ended())).toEqual([{ content: 'a' }, { content: '\ufffd' }])
    expect(deltas(...call('1', 'f', '{"a":"\ud83d', '\ude00"}'), toolCalls).slice(1)).toEqual([
      callDelta({ index: 0, function: { arguments: '{"a":"' } }),
      callDelta({ index: 0, function: { arguments: `${emoji}"}` } }),
    ])
  })

  test('puts a refusal into `refusal`; one without text gets a sentence', () => {
    const refusal = { unified: 'refusal', raw: 'refusal' } as const
    expect(deltas(...block({ kind: 'refusal' }, ['No', '.']), ended(refusal))).toEqual([
      { refusal: 'No' },
      { refusal: '.' },
    ])
    expect(deltas(...text('a'), ended({ ...refusal, explanation: 'Not this.' }))).toEqual([
      { content: 'a' },
      { refusal: 'Not this.' },
    ])
    expect(deltas(ended(refusal))).toEqual([{ refusal: 'The model declined to answer this request.' }])
  })
})

describe('calls', () => {
  test('pitfall 68: are numbered from 0 without holes, whatever their place among blocks', () => {
    const indexes = deltas(
      ...thinking(['t']),
      ...call('1', 'f', '{}'),
      ...text('a'),
      ...call('2', 'g', '{}'),
      toolCalls,
    )
      .flatMap((delta) => (delta as { tool_calls?: { index: number }[] }).tool_calls ?? [])
      .map(({ index }) => index)
    expect(indexes).toEqual([0, 0, 1, 1])
  })

  test('pitfall 65: carry id, type and name once', () => {
    expect(deltas(...call('1', 'f', '{"a"', ':1}'), toolCalls)).toEqual([
      callDelta({ index: 0, id: '1', type: 'function', function: { name: 'f', arguments: '' } }),
      callDelta({ index: 0, function: { arguments: '{"a"' } }),
      callDelta({ index: 0, function: { arguments: ':1}' } }),
    ])
  })

  test.each([[[]], [['']], [[' ', '\n']]])('vector 71: without arguments have {}: %j', (pieces) => {
    const fragments = deltas(...call('1', 'f', ...pieces), toolCalls).map(
      (delta) => (delta as { tool_calls: { function: { arguments: string } }[] }).tool_calls[0]?.function.arguments,
    )
    expect(fragments.join('').trim()).toBe('{}')
  })

  test('are one call in the older form for callers of that form', () => {
    const events = [started, ...call('1', 'f', '{"a"', ':1}'), ...call('2', 'g', '{}'), toolCalls]
    const choices = chunksOf(rendered(events, { ...quiet, legacyCalls: true })).flatMap((chunk) => chunk.choices)
    expect(choices.map(({ delta }) => delta)).toEqual([
      { role: 'assistant', content: '' },
      { function_call: { name: 'f', arguments: '' } },
      { function_call: { arguments: '{"a"' } },
      { function_call: { arguments: ':1}' } },
      {},
    ])
    expect(choices.at(-1)?.finish_reason).toBe('function_call')
  })

  test('calls of custom tools carry their plain input, and an empty one stays empty', () => {
    expect(deltas(...custom('1', 'p', 'x'), ...custom('2', 'p'), toolCalls)).toEqual([
      callDelta({ index: 0, id: '1', type: 'custom', custom: { name: 'p', input: '' } }),
      callDelta({ index: 0, custom: { input: 'x' } }),
      callDelta({ index: 1, id: '2', type: 'custom', custom: { name: 'p', input: '' } }),
    ])
  })
})

describe('reasoning', () => {
  test('vector 77: streams as text, and comes once more, whole and signed, just before the finish', () => {
    expect(deltas(...thinking(['h', 'm'], 'sig'), ...text('a'), ended())).toEqual([
      { reasoning_content: 'h' },
      { reasoning_content: 'm' },
      { content: 'a' },
      {
        reasoning_details: [
          { type: 'reasoning.text', text: 'hm', signature: 'sig', format: 'anthropic-claude-v1', index: 0 },
        ],
      },
    ])
  })

  test('pitfall 72: of several blocks keeps their order and places, sealed ones included', () => {
    const said = deltas(
      ...thinking(['t1'], 's1'),
      ...call('1', 'f', '{}'),
      ...sealed('Emw='),
      ...thinking([], 's2'),
      ...thinking(['t3']),
      toolCalls,
    )
    expect(said.at(-1)).toEqual({
      reasoning_details: [
        { type: 'reasoning.text', text: 't1', signature: 's1', format: 'anthropic-claude-v1', index: 0 },
        { type: 'reasoning.encrypted', data: 'Emw=', format: 'anthropic-claude-v1', index: 2 },
        { type: 'reasoning.text', text: '', signature: 's2', format: 'anthropic-claude-v1', index: 3 },
        { type: 'reasoning.text', text: 't3', index: 4 },
      ],
    })
    expect(said.filter((delta) => Object.hasOwn(delta as object, 'reasoning_content'))).toEqual([
      { reasoning_content: 't1' },
      { reasoning_content: '\n\nt3' },
    ])
  })

  test('pitfall 80: the proof of the thinking right before a call stands on the call, too', () => {
    const proof = writeSignature({ issuer: 'google/gemini/g', blob: '{"part":"call","id":"1","signature":"S1"}' })
    const onlyToRead = writeSignature({ issuer: 'google/gemini/g', blob: undefined })
    const said = deltas(
      ...thinking([], proof),
      ...call('1', 'f', '{}'),
      ...call('2', 'f', '{}'),
      ...thinking(['t'], onlyToRead),
      ...call('3', 'f', '{}'),
      ...thinking(['t'], 'sig'),
      ...call('4', 'f', '{}'),
      toolCalls,
    )
    const openings = said
      .flatMap((delta) => (delta as { tool_calls?: { id?: string; extra_content?: unknown }[] }).tool_calls ?? [])
      .filter(({ id }) => id !== undefined)
    expect(openings.map(({ id, extra_content }) => [id, extra_content])).toEqual([
      ['1', { google: { thought_signature: proof } }],
      ['2', undefined],
      ['3', undefined],
      ['4', undefined],
    ])
  })

  test('pitfall 79: that another issuer signed is not said to be Anthropic’s', () => {
    expect(JSON.stringify(deltas(...thinking(['t'], 'tg1.abc'), ended()))).toContain(
      '"signature":"tg1.abc","format":"unknown"',
    )
  })
})

describe('the finish', () => {
  const stops: [stop: Parameters<typeof ended>[0], finish: object][] = [
    [{ unified: 'end', raw: 'end_turn' }, { finish_reason: 'stop' }],
    [{ unified: 'length', raw: 'max_tokens' }, { finish_reason: 'length' }],
    [
      { unified: 'stop-sequence', raw: 'stop_sequence', sequence: 'END' },
      { finish_reason: 'stop', stop_reason: 'END' },
    ],
    [{ unified: 'tool-calls', raw: 'tool_use' }, { finish_reason: 'tool_calls' }],
    [{ unified: 'refusal', raw: 'refusal' }, { finish_reason: 'content_filter' }],
    [
      { unified: 'pause', raw: 'pause_turn' },
      { finish_reason: 'stop', native_finish_reason: 'pause_turn' },
    ],
  ]
  test.each(stops)('pitfall 118: of %j is one that clients know', (stop, finish) => {
    const last = chunksOf(rendered([started, ...text('a'), ended(stop)])).at(-1)?.choices[0]
    expect(last).toEqual({ index: 0, delta: {}, logprobs: null, ...finish } as never)
  })
})

test('pitfall 101: usage counts cached tokens into the prompt, and the sum is right', () => {
  const usage = usageOf({
    ...tokenCounts(10, 8, 70, 15, 5),
    reasoningTokens: 3,
  })
  expect(chunksOf(rendered([started, ...text('a'), ended(undefined, usage)], context)).at(-1)?.usage).toEqual({
    prompt_tokens: 100,
    completion_tokens: 8,
    total_tokens: 108,
    prompt_tokens_details: { cached_tokens: 70, cache_write_tokens: 20 },
    completion_tokens_details: { reasoning_tokens: 3 },
    cost: 0.000012345,
  })
})

test('sound is shown as a part of the prompt and of the answer, where there was any', () => {
  const usage = usageOf({
    ...{ inputTokens: 10, cacheReadTokens: 7, outputTokens: 8, cacheReported: 'none' },
    ...{ audioInputTokens: 4, audioCacheReadTokens: 2, audioOutputTokens: 3 },
  })
  expect(chunksOf(rendered([started, ...text('a'), ended(undefined, usage)], context)).at(-1)?.usage).toMatchObject({
    prompt_tokens_details: { audio_tokens: 6 },
    completion_tokens_details: { audio_tokens: 3 },
  })
})

test('pitfall 102: cache counts that were not reported are omitted', () => {
  const details = (cacheReported?: 'none' | 'reads') => {
    const usage = usageOf(cacheReported ? { cacheReported } : {})
    const shown = chunksOf(rendered([started, ...text('a'), ended(undefined, usage)], context)).at(-1)?.usage
    return (shown as { prompt_tokens_details?: object }).prompt_tokens_details
  }
  expect(details('none')).toBeUndefined()
  expect(details('reads')).toEqual({ cached_tokens: 0 })
  expect(details()).toEqual({ cached_tokens: 0, cache_write_tokens: 0 })
})

test('pitfall 110: cached and written tokens stand where clients look for them', () => {
  const usage = usageOf({ cacheReadTokens: 7, cacheWriteTokens: 8 })
  const shown = chunksOf(rendered([started, ...text('a'), ended(undefined, usage)], context)).at(-1)?.usage
  expect(shown).toMatchObject({ prompt_tokens_details: { cached_tokens: 7, cache_write_tokens: 8 } })
})

test('the cost is written with the digits it was given, however small', () => {
  const tiny = rendered([started, ...text('a'), ended()], { ...context, quotedUsd: () => '0.000000001' })
  expect(tiny).toContain('"cost":0.000000001}')
})

const reply = (...events: ReplyEvent[]) => JSON.parse(renderReply([started, ...events], context))
const message = (...events: ReplyEvent[]) => reply(...events).choices[0].message

test('a whole reply has every member that clients read', () => {
  expect(reply(...text('Hi'), ended())).toEqual({
    id: 'chatcmpl-up-1',
    object: 'chat.completion',
    created: 1794700000,
    model: 'acme/large',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hi', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
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

  test('has no format for reasoning without a proof', () => {
    const details = message(...sealed(''), ...thinking(['a'], ''), ...text('c'), ended()).reasoning_details
    expect(details.map(({ format }: { format?: string }) => format)).toEqual([undefined, undefined])
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
