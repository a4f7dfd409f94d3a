import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { block, call, context, ended, started, text, thinking } from '../../../test/parts/reply-events.ts'
import { noted } from '../../../test/parts/reply-notation.ts'
import { collectReply } from '../canonical/collect-reply.ts'
import type { ReplyEvent } from '../canonical/reply-event.ts'
import type { ReplyUndo } from '../canonical/translation.ts'
import { UsageMeter } from './meter-usage.ts'
import { UndoStages } from './undo-stages.ts'

const nothing: ReplyUndo = {
  toolNames: new Map(),
  customTools: new Set(),
  jsonTool: undefined,
  stop: [],
  singleToolCall: false,
}
const toolCalls = ended({ unified: 'tool-calls', raw: 'tool_use' })

function undone(undo: Partial<ReplyUndo>, ...events: (ReplyEvent | ReplyEvent[])[]): ReplyEvent[] {
  const stages = new UndoStages({ ...nothing, ...undo })
  return [started, ...events.flat()].flatMap((event) => stages.push(event))
}
/** Without the start. */
const read = (...args: Parameters<typeof undone>): string[] => noted(undone(...args)).slice(1)

test('a reply whose request was not changed passes untouched', () => {
  const events = [...thinking(['t'], 's'), ...text('a'), ...call('c', 'f', '{}'), toolCalls]
  expect(undone({}, events)).toEqual([started, ...events])
})

describe('tool names', () => {
  test('are the caller’s again, and others stay', () => {
    const toolNames = new Map([['a_b_1f', 'a.b']])
    expect(read({ toolNames }, call('1', 'a_b_1f', '{}'), call('2', 'other', '{}'), toolCalls)).toEqual([
      'call 1 a.b',
      '+{}',
      '.',
      'call 2 other',
      '+{}',
      '.',
      'end tool-calls tool_use',
    ])
  })
})

describe('names of arguments', () => {
  const fields = new Map([['_x_1f', '$x']])

  test('are the caller’s again, by the upstream name of the tool', () => {
    const undo = { toolNames: new Map([['a_b_1f', 'a.b']]), argumentNames: new Map([['a_b_1f', fields]]) }
    expect(read(undo, call('1', 'a_b_1f', '{"_x_1f":1}'), call('2', 'g', '{"_x_1f":1}'), toolCalls)).toEqual([
      ...['call 1 a.b', '+{"$x":1}', '.'],
      ...['call 2 g', '+{"_x_1f":1}', '.'],
      'end tool-calls tool_use',
    ])
  })

  test('are so in an answer that came by a tool', () => {
    const undo = { jsonTool: 'json', argumentNames: new Map([['json', fields]]) }
    expect(collectReply(undone(undo, call('1', 'json', '{"_x_1f":1}'), toolCalls)).blocks).toEqual([
      { kind: 'text', text: '{"$x":1}' },
    ])
  })
})

describe('custom tools', () => {
  const undo = { toolNames: new Map([['patch_1f', 'patch!']]), customTools: new Set(['patch!']) }

  test('vector 38: are called with their bare input again, by the caller’s name', () => {
    expect(read(undo, call('1', 'patch_1f', '{"input":"x"}'), toolCalls)).toEqual([
      'custom 1 patch!',
      '+x',
      '.',
      'end tool-calls tool_use',
    ])
  })

  test('stream their input while it comes', () => {
    const stages = new UndoStages({ ...nothing, customTools: new Set(['p']) })
    const push = (piece: string): string[] => noted(stages.push({ type: 'arguments-delta', text: piece }))
    stages.push({ type: 'block-start', block: { kind: 'tool-call', id: '1', name: 'p', custom: false } })
    expect(push(' {"inp')).toEqual([])
    expect(push('ut" : "a\\n')).toEqual(['+a\n'])
    expect(push('b\\')).toEqual(['+b'])
    expect(push('"c\\u00')).toEqual(['+"c'])
    expect(push('e9"')).toEqual(['+é'])
    expect(push(', "more": "x"}')).toEqual([])
    expect(noted(stages.push({ type: 'block-end' }))).toEqual(['.'])
  })

  test('give any text back, cut anywhere', () => {
    const cuts = fc.array(fc.nat(60), { maxLength: 5 })
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), cuts, fc.constantFrom(undefined, 1), (input, places, indent) => {
        const json = JSON.stringify({ input }, null, indent)
        const at = [...new Set(places.filter((place) => place < json.length))].sort((a, b) => a - b)
        const pieces = [...at, json.length].map((cut, i) => json.slice(i === 0 ? 0 : at[i - 1], cut))
        const reply = collectReply(undone({ customTools: new Set(['p']) }, call('1', 'p', ...pieces), toolCalls))
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
    ['', ''],
  ]
  test.each(odd)('take what a model writes instead: %s', (json, input) => {
    const reply = collectReply(undone({ customTools: new Set(['p']) }, call('1', 'p', json), toolCalls))
    expect(reply.blocks).toMatchObject([{ kind: 'tool-call', custom: true, arguments: input }])
  })
})

describe('the hidden tool of a JSON format', () => {
  const undo = { jsonTool: 'json' }

  test('pitfall 125: becomes text, and the reply just ends', () => {
    expect(read(undo, thinking(['t'], 's'), call('1', 'json', '{"a"', ':1}'), toolCalls)).toEqual([
      'thinking',
      '+t',
      'signed s',
      '.',
      'text',
      '+{"a"',
      '+:1}',
      '.',
      'end end tool_use',
    ])
  })

  test('pitfall 125: leaves the caller’s own tools alone', () => {
    expect(read(undo, text('so'), call('1', 'mine', '{}'), toolCalls)).toEqual([
      'text',
      '+so',
      '.',
      'call 1 mine',
      '+{}',
      '.',
      'end tool-calls tool_use',
    ])
    expect(read(undo, call('1', 'mine', '{}'), call('2', 'json', '{}'), toolCalls).at(-1)).toBe(
      'end tool-calls tool_use',
    )
  })

  test('without arguments is an empty object', () => {
    expect(read(undo, call('1', 'json'), toolCalls)).toEqual(['text', '+{}', '.', 'end end tool_use'])
  })

  test('is all the text there is: words around it would spoil the JSON', () => {
    expect(
      read(undo, text('Here:'), call('1', 'json', '{}'), text('Done.'), call('2', 'json', '{"b":2}'), toolCalls),
    ).toEqual(['text', '+{}', '.', 'end end tool_use'])
  })

  test('that was not called leaves the text as the answer', () => {
    expect(read(undo, text('I ', 'cannot.'), ended())).toEqual(['text', '+I ', '+cannot.', '.', 'end end stop'])
  })

  test('keeps a length stop', () => {
    expect(read(undo, call('1', 'json', '{"a'), ended({ unified: 'length', raw: 'max_tokens' }))).toEqual([
      'text',
      '+{"a',
      '.',
      'end length max_tokens',
    ])
  })
})

describe('one call at a time', () => {
  test('keeps the first and all the text', () => {
    expect(
      read({ singleToolCall: true }, text('a'), call('1', 'f', '{}'), call('2', 'g', '{"x":1}'), text('b'), toolCalls),
    ).toEqual(['text', '+a', '.', 'call 1 f', '+{}', '.', 'text apart', '+b', '.', 'end tool-calls tool_use'])
  })
})

describe('stop sequences matched here', () => {
  const stop = ['END', '\n\nHuman:', 'ab']

  test('vector 50: cut the text, end the reply, name the match and ask for the cancelling', () => {
    const stages = new UndoStages({ ...nothing, stop })
    const push = (piece: string): string[] => noted(stages.push({ type: 'text-delta', text: piece }))
    stages.push({ type: 'block-start', block: { kind: 'text' } })
    expect(push('one E')).toEqual(['+one '])
    expect(push('Nd, ')).toEqual(['+ENd, '])
    expect(push('two\n\nHum')).toEqual(['+two'])
    expect(stages.isCut).toBe(false)
    expect(push('an: three')).toEqual(['.', 'end stop-sequence stop_sequence \n\nHuman:'])
    expect(stages.isCut).toBe(true)
    expect(push(' four')).toEqual([])
    expect(stages.push(ended())).toEqual([])
  })

  test('pitfall 15: let go of what was no match', () => {
    expect(read({ stop }, text('EN'), text('D', 'a'), ended())).toEqual([
      'text',
      '+EN',
      '.',
      'text',
      '+D',
      '+a',
      '.',
      'end end stop',
    ])
  })

  test('are matched in text only', () => {
    const events = [...thinking(['END'], 's'), ...call('1', 'f', '{"a":"END"}')]
    expect(read({ stop }, events, toolCalls)).toEqual([...noted(events), 'end tool-calls tool_use'])
  })

  test('end a reply that has called for the calls: nobody would run them otherwise', () => {
    const events = [...call('1', 'f', '{}'), ...text('so END and more')]
    expect(read({ stop }, events, toolCalls)).toEqual([
      'call 1 f',
      '+{}',
      '.',
      'text',
      '+so ',
      '.',
      'end tool-calls stop_sequence',
    ])
  })

  test('match the same however the text is cut', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 12 })
    const sequences = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 3,
    })
    fc.assert(
      fc.property(letters, sequences, (written, list) => {
        const whole = collectReply(undone({ stop: list }, text(written), ended()))
        const single = collectReply(undone({ stop: list }, text(...written), ended()))
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
    const events = undone({ stop }, text('12345678END'), ended()).flatMap((event) => meter.push(event))
    expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 42, outputTokens: 2, source: 'estimated' } })
  })
})

test('all stages together read one reply', () => {
  const undo = {
    toolNames: new Map([['p1', 'patch']]),
    customTools: new Set(['patch']),
    jsonTool: 'json',
    stop: ['END'],
    singleToolCall: true,
  }
  const failure: ReplyEvent = {
    type: 'reply-failure',
    fault: {
      status: undefined,
      type: undefined,
      code: undefined,
      message: 'x',
      param: undefined,
      details: undefined,
      retryAfterMs: undefined,
    },
  }
  expect(
    read(
      undo,
      call('1', 'p1', '{"input":"END"}'),
      call('2', 'p1', '{}'),
      block({ kind: 'refusal' }, ['END']),
      { type: 'keep-alive' },
      failure,
    ),
  ).toEqual(['custom 1 patch', '+END', '.', 'refusal', '+END', '.', '~', 'fail x'])
})
