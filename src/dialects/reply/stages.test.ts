import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { collectReply } from '../../../test/parts/collect-reply.ts'
import { block, call, context, ended, started, text, thinking, usageOf } from '../../../test/parts/reply-events.ts'
import { noted, steps } from '../../../test/parts/reply-notation.ts'
import type { Usage } from '../../kernel/usage.ts'
import { faultFromError } from '../canonical/faults.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import type { ReplyMapping } from '../canonical/translation.ts'
import { ReplyMapper, RestoreCalls, UsageMeter } from './stages.ts'

const nothing: ReplyMapping = {
  toolNames: new Map(),
  customTools: new Set(),
  jsonTool: undefined,
  stop: [],
  singleToolCall: false,
}
const toolCalls = ended({ unified: 'tool-calls', raw: 'tool_use' })

function mapped(mapping: Partial<ReplyMapping>, ...events: (ReplyEvent | ReplyEvent[])[]): ReplyEvent[] {
  const stages = new ReplyMapper({ ...nothing, ...mapping })
  return [started, ...events.flat()].flatMap((event) => stages.push(event))
}
/** Without the start. */
const read = (...args: Parameters<typeof mapped>): string[] => noted(mapped(...args)).slice(1)

test('a reply whose request was not changed passes untouched', () => {
  const events = [...thinking(['t'], 's'), ...text('a'), ...call('c', 'f', '{}'), toolCalls]
  expect(mapped({}, events)).toEqual([started, ...events])
})

describe('tool names', () => {
  test('are the caller’s again, and others stay', () => {
    const toolNames = new Map([['a_b_1f', 'a.b']])
    expect(read({ toolNames }, call('1', 'a_b_1f', '{}'), call('2', 'other', '{}'), toolCalls)).toEqual(steps`
      call 1 a.b | +{} | . | call 2 other | +{} | . | end tool-calls tool_use
    `)
  })
})

describe('names of arguments', () => {
  const fields = new Map([['_x_1f', '$x']])

  test('are the caller’s again, by the upstream name of the tool', () => {
    const mapping = { toolNames: new Map([['a_b_1f', 'a.b']]), argumentNames: new Map([['a_b_1f', fields]]) }
    expect(read(mapping, call('1', 'a_b_1f', '{"_x_1f":1}'), call('2', 'g', '{"_x_1f":1}'), toolCalls)).toEqual([
      ...['call 1 a.b', '+{"$x":1}', '.'],
      ...['call 2 g', '+{"_x_1f":1}', '.'],
      'end tool-calls tool_use',
    ])
  })

  test('are so in an answer that came by a tool', () => {
    const mapping = { jsonTool: 'json', argumentNames: new Map([['json', fields]]) }
    expect(collectReply(mapped(mapping, call('1', 'json', '{"_x_1f":1}'), toolCalls)).blocks).toEqual([
      { kind: 'text', text: '{"$x":1}' },
    ])
  })
})

describe('custom tools', () => {
  const mapping = { toolNames: new Map([['patch_1f', 'patch!']]), customTools: new Set(['patch!']) }

  test('vector 38: are called with their bare input again, by the caller’s name', () => {
    expect(read(mapping, call('1', 'patch_1f', '{"input":"x"}'), toolCalls)).toEqual(steps`
      custom 1 patch! | +x | . | end tool-calls tool_use
    `)
  })

  test('get their input at the end of the call; it counts as output before', () => {
    const stages = new ReplyMapper({ ...nothing, customTools: new Set(['p']) })
    stages.push({ type: 'block-start', block: { kind: 'tool-call', id: '1', name: 'p', custom: false } })
    expect(stages.push({ type: 'arguments-delta', text: ' {"input" : "a\\n' })).toEqual([])
    expect(stages.push({ type: 'arguments-delta', text: 'é", "more": "x"}' })).toEqual([])
    // 16 and 17 bytes.
    expect(stages.heldBytes).toBe(33)
    expect(noted(stages.push({ type: 'block-end' }))).toEqual(['+a\né', '.'])
    // Four bytes are in the events now.
    expect(stages.heldBytes).toBe(29)
  })

  test('give any text back, cut anywhere', () => {
    const cuts = fc.array(fc.nat(60), { maxLength: 5 })
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), cuts, fc.constantFrom(undefined, 1), (input, places, indent) => {
        const json = JSON.stringify({ input }, null, indent)
        const at = [...new Set(places.filter((place) => place < json.length))].sort((a, b) => a - b)
        const pieces = [...at, json.length].map((cut, i) => json.slice(i === 0 ? 0 : at[i - 1], cut))
        const reply = collectReply(mapped({ customTools: new Set(['p']) }, call('1', 'p', ...pieces), toolCalls))
        expect(reply.blocks).toMatchObject([{ custom: true, arguments: input.toWellFormed() }])
      }),
    )
  })

  const odd: [json: string, input: string][] = [
    ['{"why":"w","input":"x"}', 'x'],
    ['{"input":7}', '{"input":7}'],
    ['no JSON at all', 'no JSON at all'],
    ['{"input":"line\nbreak \\x"}', 'line\nbreak \\x'],
    ['{"input":"cut of', 'cut of'],
    [' \n', ''],
    ['[1]', '[1]'],
    ['', ''],
  ]
  test.each(odd)('take what a model writes instead: %s', (json, input) => {
    const reply = collectReply(mapped({ customTools: new Set(['p']) }, call('1', 'p', json), toolCalls))
    expect(reply.blocks).toMatchObject([{ kind: 'tool-call', custom: true, arguments: input }])
  })
})

describe('the hidden tool of a JSON format', () => {
  const mapping = { jsonTool: 'json' }

  test('pitfall 125: becomes text, and the reply just ends', () => {
    expect(read(mapping, thinking(['t'], 's'), call('1', 'json', '{"a"', ':1}'), toolCalls)).toEqual(steps`
      thinking | +t | signed s | . | text | +{"a" | +:1} | . | end end tool_use
    `)
  })

  test('pitfall 125: leaves the caller’s own tools alone', () => {
    expect(read(mapping, text('so'), call('1', 'mine', '{}'), toolCalls)).toEqual(steps`
      text | +so | . | call 1 mine | +{} | . | end tool-calls tool_use
    `)
    expect(read(mapping, call('1', 'mine', '{}'), call('2', 'json', '{}'), toolCalls).at(-1)).toBe(
      'end tool-calls tool_use',
    )
  })

  test('without arguments is an empty object', () => {
    expect(read(mapping, call('1', 'json'), toolCalls)).toEqual(steps`text | +{} | . | end end tool_use`)
  })

  test('is all the text there is: words around it would spoil the JSON', () => {
    expect(
      read(mapping, text('Here:'), call('1', 'json', '{}'), text('Done.'), call('2', 'json', '{"b":2}'), toolCalls),
    ).toEqual(steps`text | +{} | . | end end tool_use`)
  })

  test('that was not called leaves the text as the answer', () => {
    expect(read(mapping, text('I ', 'cannot.'), ended())).toEqual(steps`text | +I  | +cannot. | . | end end stop`)
  })

  test('keeps a length stop', () => {
    expect(read(mapping, call('1', 'json', '{"a'), ended({ unified: 'length', raw: 'max_tokens' }))).toEqual(steps`
      text | +{"a | . | end length max_tokens
    `)
  })
})

describe('one call at a time', () => {
  test('keeps the first and all the text', () => {
    expect(
      read({ singleToolCall: true }, text('a'), call('1', 'f', '{}'), call('2', 'g', '{"x":1}'), text('b'), toolCalls),
    ).toEqual(steps`text | +a | . | call 1 f | +{} | . | text apart | +b | . | end tool-calls tool_use`)
  })
})

describe('stop sequences matched here', () => {
  const stop = ['END', '\n\nHuman:', 'ab']

  test('vector 50: cut the text, end the reply, name the match and ask for the cancelling', () => {
    const stages = new ReplyMapper({ ...nothing, stop })
    const push = (piece: string): string[] => noted(stages.push({ type: 'text-delta', text: piece }))
    stages.push({ type: 'block-start', block: { kind: 'text' } })
    expect(push('one E')).toEqual(['+one '])
    expect(push('Nd, ')).toEqual(['+ENd, '])
    expect(push('two\n\nHum')).toEqual(['+two'])
    expect(stages.isStoppedEarly).toBe(false)
    expect(push('an: three')).toEqual(['.', 'end stop-sequence stop_sequence \n\nHuman:'])
    expect(stages.isStoppedEarly).toBe(true)
    expect(push(' four')).toEqual([])
    expect(stages.push(ended())).toEqual([])
  })

  test('pitfall 15: let go of what was no match', () => {
    expect(read({ stop }, text('EN'), text('D', 'a'), ended())).toEqual(steps`
      text | +EN | . | text | +D | +a | . | end end stop
    `)
  })

  test('are matched in text only', () => {
    const events = [...thinking(['END'], 's'), ...call('1', 'f', '{"a":"END"}')]
    expect(read({ stop }, events, toolCalls)).toEqual([...noted(events), 'end tool-calls tool_use'])
  })

  test('a reply with tool calls stops with tool-calls, because callers check for that to run them', () => {
    const events = [...call('1', 'f', '{}'), ...text('so END and more')]
    expect(read({ stop }, events, toolCalls)).toEqual(steps`
      call 1 f | +{} | . | text | +so  | . | end tool-calls stop_sequence
    `)
  })

  test('match the same however the text is cut', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 12 })
    const sequences = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 3,
    })
    fc.assert(
      fc.property(letters, sequences, (written, list) => {
        const whole = collectReply(mapped({ stop: list }, text(written), ended()))
        const single = collectReply(mapped({ stop: list }, text(...written), ended()))
        expect(single.stop).toEqual(whole.stop)
        expect(single.blocks).toEqual(whole.blocks)
        // By hand: generation stops at the first character that completes a sequence.
        const end = [...written].findIndex((_, at) =>
          list.some((sequence) => written.slice(0, at + 1).endsWith(sequence)),
        )
        const matched = list
          .filter((sequence) => written.slice(0, end + 1).endsWith(sequence))
          .sort((a, b) => b.length - a.length)[0]
        expect(whole.stop.sequence).toBe(end < 0 ? undefined : matched)
        expect(whole.blocks).toMatchObject([
          { text: end < 0 ? written : written.slice(0, end + 1 - (matched ?? '').length) },
        ])
      }),
      { numRuns: 500 },
    )
  })

  test('leave the usage to be estimated, since the provider is cut off before it reports', () => {
    const meter = new UsageMeter(context)
    const events = mapped({ stop }, text('12345678END'), ended()).map((event) => meter.measure(event))
    expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 42, outputTokens: 2, source: 'estimated' } })
  })
})

test('all stages together read one reply', () => {
  const mapping = {
    toolNames: new Map([['p1', 'patch']]),
    customTools: new Set(['patch']),
    jsonTool: 'json',
    stop: ['END'],
    singleToolCall: true,
  }
  const failure: ReplyEvent = {
    type: 'reply-failure',
    fault: faultFromError(undefined, undefined, { message: 'x' }),
  }
  expect(
    read(
      mapping,
      call('1', 'p1', '{"input":"END"}'),
      call('2', 'p1', '{}'),
      block({ kind: 'refusal' }, ['END']),
      { type: 'keep-alive' },
      failure,
    ),
  ).toEqual(steps`custom 1 patch | +END | . | refusal | +END | . | ~ | fail x`)
})

const tools = new Map([['f', new Map([['_filter_1', '$fil"ter']])]])

/** The caller's view of a call whose arguments come in these pieces. */
function restored(name: string, pieces: readonly string[]): string {
  const stage = new RestoreCalls({ argumentNames: tools, toolNames: new Map(), customTools: new Set() })
  const events: ReplyEvent[] = [
    { type: 'block-start', block: { kind: 'tool-call', id: 't', name, custom: false } },
    ...pieces.map((text) => ({ type: 'arguments-delta', text }) as const),
    { type: 'block-end' },
  ]
  const passed = events.flatMap((event) => [...stage.push(event)])
  expect([passed[0]?.type, passed.at(-1)?.type]).toEqual(['block-start', 'block-end'])
  return passed.flatMap((event) => (event.type === 'arguments-delta' ? [event.text] : [])).join('')
}

test('names at the root are the caller’s again, however the arguments are cut; nothing else changes', () => {
  const written =
    '{ "_filter_1" : "_filter_1", "a":["_filter_1",{"_filter_1":1.0}],"b\\"":{"_filter_1":"},\\"_filter_1\\":"},\n"_filter_1":[]}'
  const wanted =
    '{ "$fil\\"ter" : "_filter_1", "a":["_filter_1",{"_filter_1":1.0}],"b\\"":{"_filter_1":"},\\"_filter_1\\":"},\n"$fil\\"ter":[]}'
  for (let cut = 0; cut <= written.length; cut++) {
    expect(restored('f', [written.slice(0, cut), written.slice(cut)])).toBe(wanted)
  }
  expect(restored('f', [...written])).toBe(wanted)
  expect(restored('g', [written])).toBe(written)
})

test('arguments that are no object, or break off, pass as they are', () => {
  for (const written of ['', '"_filter_1"', '["_filter_1"]', '{"_filt', '{"a":"_filter_1', 'nonsense, "_filter_1"']) {
    expect(restored('f', [written])).toBe(written)
  }
})

const unreported: ReplyEvent = { type: 'reply-end', stop: { unified: 'end', raw: '' }, usage: undefined }

function metered(...events: ReplyEvent[]): UsageMeter {
  const meter = new UsageMeter(context)
  for (const event of events) meter.measure(event)
  return meter
}

test('uses the usage that the provider reports at the end', () => {
  expect(metered(started, ...text('a'), ended(undefined, usageOf({ outputTokens: 99 }))).usage?.outputTokens).toBe(99)
})

test('vector 82: usage that was not reported is estimated at four bytes per token and added to the end', () => {
  const meter = metered(started, ...text('1234', 'é'), ...call('1', 'now', '{}'))
  // 4 + 2 bytes of text, 3 of the name, 2 of arguments: 11.
  expect(meter.outputBytes).toBe(11)
  const estimate: Usage = {
    ...usageOf({ inputTokens: 42, outputTokens: 3, cacheReported: 'none' }),
    source: 'estimated',
  }
  expect(meter.measure(unreported)).toEqual({ ...unreported, usage: estimate })
  expect(meter.usage).toEqual(estimate)
})

test('input that was reported up front is not estimated again', () => {
  const start: ReplyEvent = {
    type: 'reply-start',
    id: 'x',
    usage: usageOf({ inputTokens: 7, cacheReadTokens: 5, outputTokens: 1 }),
  }
  const { usage } = metered(start, ...text('123456789'), unreported)
  const estimate = { ...usageOf({ inputTokens: 7, cacheReadTokens: 5, outputTokens: 3 }), source: 'estimated' as const }
  expect(usage).toEqual({ ...estimate, inputReported: true })
  expect(metered(start, unreported).usage?.outputTokens).toBe(1)
})
