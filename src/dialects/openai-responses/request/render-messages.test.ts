import { describe, expect, test } from 'bun:test'
import { gpts, refusedBy, rendered } from '../../../../test/parts/responses.ts'
import { assistant, call, result, system, text, user } from '../../../../test/parts/translation.ts'
import type { AssistantBlock, UserBlock } from '../../canonical/conversation.ts'

const image: UserBlock = { kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: 'iVBO' } }
const pdf = { kind: 'data', mediaType: 'application/pdf', base64: 'JVBE' } as const
const inputOf = (...turns: Parameters<typeof rendered>[0]['turns'] & object) => rendered({ turns }).body.input
const mark = { cacheMark: { life: 'short' } } as const
const imagePart = { type: 'input_image', image_url: 'data:image/png;base64,iVBO', detail: 'auto' }

describe('system text', () => {
  test('is the instructions, and later a message of the developer', () => {
    const { body } = rendered({ system: [text('A'), text(''), text('B')], turns: [user('u'), system('C', 'D')] })
    expect(body.instructions).toBe('A\n\nB')
    expect(body.input).toEqual([
      { role: 'user', content: 'u' },
      { role: 'developer', content: 'C\n\nD' },
    ])
  })

  test('is input where there is no other', () => {
    const { body } = rendered({ system: [text('A')], turns: [] })
    expect(body).not.toHaveProperty('instructions')
    expect(body.input).toEqual([{ role: 'developer', content: 'A' }])
  })

  test('stays in its place as user text where a host wants it in front', () => {
    const { body, warnings } = rendered({ turns: [user('u'), system('C'), user('v')] }, gpts.plain)
    expect(body.input[1]).toEqual({ role: 'user', content: '<system>\nC\n</system>' })
    expect(warnings).toEqual(['system_inlined;/messages'])
  })
})

describe('a user message', () => {
  test('is a string, or parts where there is more than one text', () => {
    expect(inputOf(user('a'), user('b', 'c', ''))).toEqual([
      { role: 'user', content: 'a' },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'b' },
          { type: 'input_text', text: 'c' },
        ],
      },
    ])
  })

  test('may be images and documents, by value and by address', () => {
    const blocks: UserBlock[] = [
      image,
      { kind: 'image', source: { kind: 'url', url: 'https://a.b/c.png' } },
      { kind: 'document', source: pdf, title: 'r.pdf', context: 'Read it.' },
      { kind: 'document', source: pdf },
      { kind: 'document', source: { kind: 'url', url: 'https://a.b/d.pdf' }, title: 'D', context: 'Old.' },
      { kind: 'document', source: { kind: 'text', text: 'words' }, title: 'T' },
    ]
    expect(inputOf(user(...blocks))[0].content).toEqual([
      imagePart,
      { type: 'input_image', image_url: 'https://a.b/c.png', detail: 'auto' },
      { type: 'input_file', filename: 'r.pdf', file_data: 'data:application/pdf;base64,JVBE' },
      { type: 'input_text', text: 'Read it.' },
      { type: 'input_file', filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBE' },
      { type: 'input_file', file_url: 'https://a.b/d.pdf' },
      { type: 'input_text', text: 'D\n\nOld.' },
      { type: 'input_text', text: 'T\n\nwords' },
    ])
  })

  test('is refused where the model cannot see it', () => {
    expect(refusedBy({ turns: [user(image)] }, { images: false })).toContain('does not take images')
    const document = user({ kind: 'document', source: pdf })
    expect(refusedBy({ turns: [document] }, { documents: false })).toContain('does not take documents')
    const sound = { kind: 'data', mediaType: 'audio/wav', base64: 'UklG' } as const
    expect(refusedBy({ turns: [user({ kind: 'document', source: sound })] })).toContain('does not take audio')
    const address = { kind: 'url', url: 'https://a.b/c' } as const
    for (const kind of ['image', 'document'] as const) {
      expect(refusedBy({ turns: [user({ kind, source: address })] }, { mediaUrls: false })).toContain('by URL')
    }
  })
})

describe('an assistant message', () => {
  test('becomes items in order, with the phase derived from the turn', () => {
    expect(
      inputOf(
        user('u'),
        assistant('a', 'b', call('c1', '{"x": 1}'), 'd'),
        user(result('c1')),
        assistant('e'),
        user('v'),
      ),
    ).toEqual([
      { role: 'user', content: 'u' },
      { role: 'assistant', content: 'ab', phase: 'commentary' },
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"x": 1}' },
      { role: 'assistant', content: 'd', phase: 'commentary' },
      { type: 'function_call_output', call_id: 'c1', output: 'ok' },
      { role: 'assistant', content: 'e', phase: 'final_answer' },
      { role: 'user', content: 'v' },
    ])
  })

  test('has no phase where there is no reasoning', () => {
    const { body } = rendered({ turns: [user('u'), assistant('a'), user('v')] }, gpts.gpt41)
    expect(body.input[1]).toEqual({ role: 'assistant', content: 'a' })
  })

  test('vectors 11 and 13: empty text is left out, a refusal is text', () => {
    const refusal: AssistantBlock = { kind: 'refusal', text: 'no' }
    const items = inputOf(
      user('u'),
      assistant('', call('c1', ' ')),
      user(result('c1', '')),
      assistant(refusal),
      user('v'),
    )
    expect(items.slice(1, 4)).toEqual([
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: '' },
      { role: 'assistant', content: 'no', phase: 'final_answer' },
    ])
  })

  test('vector 9: ids are made unique, and shortened beyond 64 characters', () => {
    const long = 'x'.repeat(65)
    const items = inputOf(
      user('u'),
      assistant(call('call_1')),
      user(result('call_1')),
      assistant(call('call_1'), call(long)),
      user(result('call_1'), result(long)),
    )
    const ids = items.flatMap((item: { call_id?: string }) => item.call_id ?? [])
    expect(ids.slice(0, 2)).toEqual(['call_1', 'call_1'])
    expect(ids[2]).not.toBe('call_1')
    expect(ids[3]).toMatch(/^x{55}_[0-9a-f]{8}$/)
    expect(ids.slice(4)).toEqual(ids.slice(2, 4))
  })

  test('vectors 6 and 7: calls and results that do not pair are refused', () => {
    expect(refusedBy({ turns: [user('u'), assistant(call('a'), call('b')), user(result('a'))] })).toContain('`b`')
    expect(refusedBy({ turns: [user('u'), assistant('x'), user(result('z'))] })).toContain('`z`')
  })
})

describe('results', () => {
  const answered = (...blocks: UserBlock[]) => [user('u'), assistant(call('t1'), call('t2')), user(...blocks)]
  const shown: UserBlock = {
    kind: 'tool-result',
    callId: 't1',
    content: [text('seen'), image as never],
    isError: false,
  }

  test('vector 41: hold media themselves, and stand in front of what else was said', () => {
    expect(inputOf(...answered(shown, text('x'), result('t2', 'two'))).slice(3)).toEqual([
      { type: 'function_call_output', call_id: 't1', output: [{ type: 'input_text', text: 'seen' }, imagePart] },
      { type: 'function_call_output', call_id: 't2', output: 'two' },
      { role: 'user', content: 'x' },
    ])
  })

  test('vectors 42 and 43: failure is said in front; nothing is the empty string', () => {
    const failed: UserBlock = { ...shown, isError: true }
    const boom = { ...result('t2', 'boom'), isError: true } as UserBlock
    expect(inputOf(...answered(failed, boom)).slice(3)).toEqual([
      {
        type: 'function_call_output',
        call_id: 't1',
        output: [{ type: 'input_text', text: '[tool error] seen' }, imagePart],
      },
      { type: 'function_call_output', call_id: 't2', output: '[tool error] boom' },
    ])
    expect(inputOf(...answered(result('t1', ''), result('t2', ''))).at(-1).output).toBe('')
  })

  test('results of custom tools have their own type, unless the tools are sent as functions', () => {
    const custom: AssistantBlock = { kind: 'tool-call', id: 'c', name: 'patch', arguments: 'a"b', custom: true }
    const turns = [user('u'), assistant(custom), user(result('c'))]
    expect(rendered({ turns }).body.input.slice(1)).toEqual([
      { type: 'custom_tool_call', call_id: 'c', name: 'patch', input: 'a"b' },
      { type: 'custom_tool_call_output', call_id: 'c', output: 'ok' },
    ])
    expect(rendered({ turns }, gpts.plain).body.input.slice(1)).toEqual([
      { type: 'function_call', call_id: 'c', name: 'patch', arguments: '{"input":"a\\"b"}' },
      { type: 'function_call_output', call_id: 'c', output: 'ok' },
    ])
  })
})

describe('cache marks', () => {
  test('stand on parts of the input, system text included', () => {
    const marked: UserBlock = { kind: 'tool-result', callId: 'c', content: [text('r')], isError: true, ...mark }
    const { body, warnings } = rendered(
      {
        system: [{ ...text('S'), cacheMark: { life: 'long' } }],
        turns: [user({ ...text('u'), ...mark }), assistant(call('c')), user(marked)],
      },
      gpts.gpt56,
    )
    expect(warnings).toEqual([])
    expect(body).not.toHaveProperty('instructions')
    const short = { prompt_cache_breakpoint: { mode: 'explicit' } }
    expect(body.input.map((item: { content?: unknown; output?: unknown }) => item.content ?? item.output)).toEqual([
      [{ type: 'input_text', text: 'S', prompt_cache_breakpoint: { mode: 'explicit', ttl: '30m' } }],
      [{ type: 'input_text', text: 'u', ...short }],
      undefined,
      [{ type: 'input_text', text: '[tool error] r', ...short }],
    ])
  })

  test('vector 34: the last four are kept, and a warning names the others', () => {
    const turns = Array.from({ length: 5 }, (_, n) => user({ ...text(`${n}`), ...mark }))
    const { json, warnings } = rendered({ turns }, gpts.gpt56)
    expect(json.match(/prompt_cache_breakpoint/g)).toHaveLength(4)
    expect(warnings).toEqual(['cache_mark_dropped;/messages'])
  })

  test('are not put on empty blocks', () => {
    const empty = user({ ...text(''), ...mark }, 'u')
    expect(rendered({ turns: [empty] }, gpts.gpt56).warnings).toEqual(['cache_mark_dropped;/messages'])
    const blank = { kind: 'tool-result', callId: 'c', content: [{ ...text(''), ...mark }], isError: false } as UserBlock
    const answered = [user('u'), assistant(call('c')), user(blank)]
    expect(rendered({ turns: answered }, gpts.gpt56).warnings).toEqual(['cache_mark_dropped;/messages'])
  })

  test('are left out with a warning on tools, on what the assistant said, and where there are none', () => {
    const said = [user('u'), assistant({ ...text('a'), ...mark }), user('v')]
    expect(rendered({ turns: said }, gpts.gpt56).warnings).toEqual(['cache_mark_dropped;/messages'])
    const turns = [user({ ...text('u'), ...mark })]
    expect(rendered({ turns }, gpts.o3).warnings).toEqual(['cache_mark_dropped;/messages'])
    const tool = { kind: 'function', name: 'f' } as const
    expect(rendered({ tools: [{ ...tool, ...mark }] }, gpts.gpt56).warnings).toEqual(['cache_mark_dropped;/tools'])
    expect(rendered({ automaticCache: { life: 'short' } }).warnings).toEqual(['cache_mark_dropped;/cache_control'])
    expect(rendered({ automaticCache: { life: 'short' } }, gpts.o3).warnings).toEqual([])
  })
})
