import { describe, expect, test } from 'bun:test'
import { refusedRender, rendered, targetWith } from '../../../../test/parts/chat-requests.ts'
import type { AssistantBlock, Turn, UserBlock } from '../../canonical/conversation.ts'
import { writeSignature } from '../../canonical/signature.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'

const text = (words: string) => ({ kind: 'text', text: words }) as const
const user = (...blocks: UserBlock[]): Turn => ({ role: 'user', blocks, pointer: '/messages/0' })
const assistant = (...blocks: AssistantBlock[]): Turn => ({ role: 'assistant', blocks, pointer: '/messages/1' })
const call = (id: string) => ({ kind: 'tool-call', id, name: 'f', arguments: '{}', custom: false }) as const
const result = (id: string, ...content: (ReturnType<typeof text> | typeof image | typeof pdf)[]) =>
  ({ kind: 'tool-result', callId: id, content, isError: false }) as const
const image = { kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: 'iVBO' } } as const
const pdf = {
  kind: 'document',
  source: { kind: 'data', mediaType: 'application/pdf', base64: 'JVBE' },
  title: 'r.pdf',
} as const
const imagePart = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } }
const label = (id: string) => ({ type: 'text', text: `From the result of tool call ${id}:` })

const messages = (turns: Turn[], rules: TargetRules = {}) => rendered({ turns }, targetWith(rules)).body.messages
const toolTurn = (...blocks: UserBlock[]) => [user(text('u')), assistant(call('t1'), call('t2')), user(...blocks)]

describe('system', () => {
  test('blocks are one message, joined', () => {
    expect(rendered({ system: [text('A'), text('B')] }).body.messages).toEqual([
      { role: 'system', content: 'A\n\nB' },
      { role: 'user', content: 'hi' },
    ])
  })

  test('pitfall 30: the developer role and parts only where the rules say so', () => {
    const target = targetWith({ systemRole: 'developer', systemAsParts: true })
    expect(rendered({ system: [text('A'), text('B')] }, target).body.messages[0]).toEqual({
      role: 'developer',
      content: [
        { type: 'text', text: 'A' },
        { type: 'text', text: 'B' },
      ],
    })
  })

  test('pitfall 31: a later system message stays in its place, as tagged user text where it must', () => {
    const later: Turn = { role: 'system', blocks: [text('B')], pointer: '/messages/2' }
    const turns = [user(text('u1')), assistant(text('a1')), later, user(text('u2'))]
    expect(messages(turns, { midSystem: true })[2]).toEqual({ role: 'system', content: 'B' })
    const inlined = rendered({ turns })
    expect(inlined.body.messages.slice(2)).toEqual([{ role: 'user', content: '<system>\nB\n</system>\n\nu2' }])
    expect(inlined.warned).toEqual(['system_inlined /messages/2'])
  })

  test('as user text it keeps its mark', () => {
    const marked = { ...text('B'), cacheMark: { life: 'short' } } as const
    const turns: Turn[] = [user(text('u')), { role: 'system', blocks: [marked, text('C')], pointer: '/messages/1' }]
    const { body, warned } = rendered({ turns }, targetWith({ cacheStyle: 'breakpoint' }))
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'u' },
          { type: 'text', text: '\n\n<system>\nB\n\nC\n</system>', prompt_cache_breakpoint: { mode: 'explicit' } },
        ],
      },
    ])
    expect(warned).toEqual(['system_inlined /messages/1'])
  })
})

// Templates of Gemma and others: "Conversation roles must alternate user/assistant/user/assistant/…".
describe('pitfall 28: user turns in a row', () => {
  test('are one message, apart by a blank line', () => {
    expect(messages([user(text('u1')), user(text('u2')), user(text(''))])).toEqual([
      { role: 'user', content: 'u1\n\nu2' },
    ])
    expect(messages([user(text('u1'), text('u2')), user(text('u3')), user(image, text('u4'))])).toEqual([
      {
        role: 'user',
        content: [
          ...[
            { type: 'text', text: 'u1' },
            { type: 'text', text: 'u2' },
          ],
          ...[{ type: 'text', text: '\n\nu3' }, imagePart, { type: 'text', text: 'u4' }],
        ],
      },
    ])
  })

  test('are one message also where nothing is left of an answer between them', () => {
    const silent = assistant({ kind: 'thinking', text: 'hm' })
    expect(messages([user(text('u1')), silent, user(text('u2'))])).toEqual([{ role: 'user', content: 'u1\n\nu2' }])
  })

  test('without a word in them are an empty message', () => {
    expect(messages([user(text('')), user(text(''))])).toEqual([{ role: 'user', content: '' }])
  })
})

describe('tool results', () => {
  test('vector 41: stubs in the tool messages, then one user message with the media and the rest', () => {
    const turns = toolTurn(result('t1', text('shot'), image), result('t2', text('two')), text('x'))
    expect(messages(turns).slice(2)).toEqual([
      { role: 'tool', tool_call_id: 't1', content: 'shot\n[image]' },
      { role: 'tool', tool_call_id: 't2', content: 'two' },
      { role: 'user', content: [label('t1'), imagePart, { type: 'text', text: 'x' }] },
    ])
  })

  test('vector 42: a failed call is marked in its text', () => {
    const turns = [assistant(call('t')), user({ ...result('t', text('boom')), isError: true })]
    expect(messages(turns)[1].content).toBe('[tool error] boom')
  })

  test('vector 43: a result without content is an empty string', () => {
    for (const rules of [{}, { cacheStyle: 'breakpoint' }] as const) {
      const sent = messages([assistant(call('t')), user(result('t'))], rules)
      expect(sent[1]).toEqual({ role: 'tool', tool_call_id: 't', content: '' })
    }
    // There is nothing that a mark could stand on.
    const marked = { ...result('t'), cacheMark: { life: 'short' } } as const
    const { warned } = rendered(
      { turns: [assistant(call('t')), user(marked)] },
      targetWith({ cacheStyle: 'breakpoint' }),
    )
    expect(warned).toEqual(['cache_mark_dropped /messages/0'])
  })

  test('pitfall 29: results come first even where text stood before them', () => {
    const turns = toolTurn(text('note'), result('t2', text('b')), result('t1', text('a')))
    expect(messages(turns).slice(2)).toEqual([
      { role: 'tool', tool_call_id: 't2', content: 'b' },
      { role: 'tool', tool_call_id: 't1', content: 'a' },
      { role: 'user', content: 'note' },
    ])
  })

  test('pitfall 29: nothing comes between calls and results, not even another message', () => {
    const note: Turn = { role: 'system', blocks: [text('S')] }
    const turns = [assistant(call('t1'), call('t2')), note, user(result('t1')), user(text('x')), user(result('t2'))]
    const roles = (rules: TargetRules) => messages(turns, rules).map(({ role }: { role: string }) => role)
    expect(roles({ midSystem: true })).toEqual(['assistant', 'tool', 'tool', 'system', 'user'])
    expect(roles({})).toEqual(['assistant', 'tool', 'tool', 'user'])
  })

  test('pitfall 39: a result that is only an image is shown as an image', () => {
    expect(messages([assistant(call('t')), user(result('t', image))]).slice(1)).toEqual([
      { role: 'tool', tool_call_id: 't', content: '[image]' },
      { role: 'user', content: [label('t'), imagePart] },
    ])
  })

  test('pitfall 40: media of several messages come in one user message behind the last of them', () => {
    const turns = [
      assistant(call('t1'), call('t2')),
      user(result('t1', image)),
      user(result('t2', image)),
      user(text('x')),
    ]
    expect(messages(turns).slice(1)).toEqual([
      { role: 'tool', tool_call_id: 't1', content: '[image]' },
      { role: 'tool', tool_call_id: 't2', content: '[image]' },
      { role: 'user', content: [label('t1'), imagePart, label('t2'), imagePart, { type: 'text', text: '\n\nx' }] },
    ])
  })

  test('the mark of a result stays on its text', () => {
    const marked: UserBlock = { ...result('t', image), cacheMark: { life: 'short' } }
    expect(messages([assistant(call('t')), user(marked)], { cacheStyle: 'breakpoint' })[1].content).toEqual([
      { type: 'text', text: '[image]', prompt_cache_breakpoint: { mode: 'explicit' } },
    ])
  })

  test('pitfall 33: a short assistant turn stands between tool and user where the target needs it', () => {
    const turns = [assistant(call('t')), user(result('t', text('r'))), user(text('x'))]
    const roles = (rules: TargetRules) => messages(turns, rules).map(({ role }: { role: string }) => role)
    expect(roles({ assistantAfterTool: true })).toEqual(['assistant', 'tool', 'assistant', 'user'])
    expect(roles({})).toEqual(['assistant', 'tool', 'user'])
  })

  test('pitfall 41: so it does before the media of a result', () => {
    const turns = [assistant(call('t')), user(result('t', image))]
    expect(messages(turns, { assistantAfterTool: true }).map(({ role }: { role: string }) => role)).toEqual(
      'assistant tool assistant user'.split(' '),
    )
  })

  test('pitfall 34: an empty result keeps the turns around it apart', () => {
    const turns = [assistant(call('t')), user(result('t')), assistant(text('next')), user(text('x'))]
    expect(messages(turns).map(({ role }: { role: string }) => role)).toEqual(
      'assistant tool assistant user'.split(' '),
    )
  })

  test('pitfall 35: a second result is left out, with its message', () => {
    const turns = [assistant(call('t')), user(result('t', text('1'))), user(result('t', text('2'))), user(text('x'))]
    const { body, warned } = rendered({ turns })
    expect(body.messages).toHaveLength(3)
    expect(body.messages[1].content).toBe('1')
    expect(warned).toEqual(['duplicate_tool_result_dropped /messages/0'])
  })
})

describe('media', () => {
  test('pitfall 42: a document is a file part, or refused by name', () => {
    const turns = [user(pdf, text('read it'))]
    expect(messages(turns, { documents: true })[0].content[0]).toEqual({
      type: 'file',
      file: { filename: 'r.pdf', file_data: 'data:application/pdf;base64,JVBE' },
    })
    expect(refusedRender({ turns })).toMatchObject({ param: 'messages[0]' })
    const url: UserBlock = { kind: 'document', source: { kind: 'url', url: 'https://x.test/a.pdf' } }
    expect(refusedRender({ turns: [user(url)] }, targetWith({ documents: true })).message).toContain('URL')
  })

  test('pitfall 97: a text document is text with its title, and what was said about it', () => {
    const document: UserBlock = { kind: 'document', source: { kind: 'text', text: 'body' }, title: 'T', context: 'C' }
    expect(messages([user(document, text('q'))])[0].content).toEqual([
      { type: 'text', text: 'T\n\nbody\n\nC' },
      { type: 'text', text: 'q' },
    ])
  })

  test('an image goes by value or by address, or is refused by name', () => {
    const url: UserBlock = { kind: 'image', source: { kind: 'url', url: 'https://x.test/a.png' } }
    expect(messages([user(url, image)])[0].content).toEqual([
      { type: 'image_url', image_url: { url: 'https://x.test/a.png' } },
      imagePart,
    ])
    expect(refusedRender({ turns: [user(image)] }, targetWith({ images: false })).param).toBe('messages[0]')
    expect(refusedRender({ turns: [user(url)] }, targetWith({ mediaUrls: false })).message).toContain('by URL')
  })

  test('audio is an input_audio part', () => {
    const sound: UserBlock = { kind: 'document', source: { kind: 'data', mediaType: 'audio/wav', base64: 'UklG' } }
    expect(messages([user(sound)])[0].content).toEqual([
      { type: 'input_audio', input_audio: { data: 'UklG', format: 'wav' } },
    ])
  })
})

const thinking = (words: string, signature?: string) => ({ kind: 'thinking', text: words, signature }) as const
const wrote = (written: string, custom = false) =>
  ({ kind: 'tool-call', id: 't', name: 'f', arguments: written, custom }) as const
const deepseek: TargetRules = { reasoningEcho: { field: 'reasoning_content', when: 'tool-turns' } }

function history(...blocks: AssistantBlock[]): Turn[] {
  const answers = blocks.flatMap((block) =>
    block.kind === 'tool-call' ? [{ kind: 'tool-result', callId: block.id, content: [], isError: false } as const] : [],
  )
  return [
    { role: 'user', blocks: [text('u')] },
    { role: 'assistant', blocks, pointer: '/messages/1' },
    { role: 'user', blocks: [...answers, text('x')] },
  ]
}

function said(blocks: AssistantBlock[], rules: TargetRules = {}) {
  const { body, warned } = rendered({ turns: history(...blocks) }, targetWith(rules))
  return { message: body.messages[1], warned }
}

describe('text and tool calls of the assistant', () => {
  test('pitfall 38: texts are joined and stand in one message with all calls', () => {
    expect(said([text('a'), wrote('{"q":1}'), text('b')]).message).toEqual({
      role: 'assistant',
      content: 'ab',
      tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '{"q":1}' } }],
    })
  })

  test('pitfall 37: content beside calls is null, or a string where the target insists', () => {
    expect(said([wrote('{}')]).message.content).toBeNull()
    expect(said([wrote('{}')], { emptyContent: 'string' }).message.content).toBe('')
  })

  test('pitfall 55: no arguments mean an empty object', () => {
    expect(said([wrote(' ')]).message.tool_calls[0].function.arguments).toBe('{}')
  })

  test('pitfall 56: arguments go out as they were written', () => {
    const written = '{"id":9007199254740993, "x":1.0}'
    expect(said([wrote(written)]).message.tool_calls[0].function.arguments).toBe(written)
  })

  test('pitfall 12: a custom call goes out as it was, or as a function with one string', () => {
    expect(said([wrote('*** patch', true)], { customTools: true }).message.tool_calls[0]).toEqual({
      id: 't',
      type: 'custom',
      custom: { name: 'f', input: '*** patch' },
    })
    expect(said([wrote('say "x"', true)]).message.tool_calls[0].function.arguments).toBe('{"input":"say \\"x\\""}')
  })

  test('assistant turns in a row that call tools are one message, so that the results follow it', () => {
    const other = { ...call('{}'), id: 't2' }
    const result = (id: string) => ({ kind: 'tool-result', callId: id, content: [], isError: false }) as const
    const turns: Turn[] = [
      { role: 'assistant', blocks: [text('a'), wrote('{}')] },
      { role: 'assistant', blocks: [other] },
      { role: 'user', blocks: [result('t'), result('t2')] },
    ]
    const { messages } = rendered({ turns }).body
    expect(messages.map(({ role }: { role: string }) => role)).toEqual(['assistant', 'tool', 'tool'])
    expect(messages[0].tool_calls).toHaveLength(2)
  })

  test('a refusal stays one', () => {
    expect(said([{ kind: 'refusal', text: 'no' }]).message).toEqual({
      role: 'assistant',
      content: null,
      refusal: 'no',
    })
  })

  test('pitfall 24: a conversation that ends with the assistant is refused in known words, or continued', () => {
    const turns = history(text('a')).slice(0, 2)
    const refused = refusedRender({ turns })
    expect([refused.param, refused.message.includes('does not support assistant message prefill')]).toEqual([
      'messages[1]',
      true,
    ])
    expect(rendered({ turns }, targetWith({ prefill: true })).body.messages).toHaveLength(2)
  })
})

describe('reasoning', () => {
  test('vector 45: it is left out with a warning, or echoed where the host wants it', () => {
    const blocks = [thinking('hm', 'EqQB'), text('a'), wrote('{}')]
    const plain = said(blocks)
    expect(plain.message).not.toHaveProperty('reasoning_content')
    expect(plain.message.content).toBe('a')
    expect(plain.warned).toEqual(['thinking_dropped /messages/1'])
    const echoed = said(blocks, deepseek)
    expect([echoed.message.reasoning_content, echoed.warned]).toEqual(['hm', []])
  })

  test('pitfall 82: a host that wants reasoning gets the field on every message it looks at', () => {
    expect(said([text('a'), wrote('{}')], deepseek).message.reasoning_content).toBe('')
    expect(said([thinking('hm'), text('a')], deepseek).message).not.toHaveProperty('reasoning_content')
    const always: TargetRules = { reasoningEcho: { field: 'reasoning', when: 'always' } }
    expect(said([thinking('a'), thinking('b'), text('c')], always).message.reasoning).toBe('a\n\nb')
  })

  test('pitfall 83: by default no reasoning field is sent', () => {
    expect(Object.keys(said([thinking('hm'), text('a')]).message)).toEqual(['role', 'content'])
  })

  test('pitfall 86: reasoning never becomes visible text, and a message of nothing else is left out', () => {
    const { body } = rendered({ turns: history(thinking('secret'), { kind: 'sealed-thinking', data: 'd' }) })
    expect(JSON.stringify(body)).not.toContain('secret')
    expect(body.messages.map(({ role }: { role: string }) => role)).toEqual(['user'])
  })

  test('vector 46: our own signature without a blob goes silently, a foreign one with a warning', () => {
    const own = writeSignature({ issuer: 'acme/openai-chat', blob: undefined })
    expect(said([thinking('hm', own), text('a')]).warned).toEqual([])
    const foreign = writeSignature({ issuer: 'other/openai-responses', blob: 'x' })
    expect(said([thinking('', foreign), text('a')]).warned).toEqual(['thinking_dropped /messages/1'])
  })

  test('pitfall 87: details that this host issued go back as they came', () => {
    const blob = '[{"type":"reasoning.encrypted","data":"z","index":0}]'
    const own = writeSignature({ issuer: 'acme/openai-chat', blob })
    const { message, warned } = said([thinking('hm', own), text('a')])
    expect(message.reasoning_details).toEqual([{ type: 'reasoning.encrypted', data: 'z', index: 0 }])
    expect(warned).toEqual([])
  })

  test('pitfall 88: details of another host are not sent, nor is what a caller made up', () => {
    const send = (issuer: string, blob: string) => said([thinking('', writeSignature({ issuer, blob })), text('a')])
    expect(send('other/openai-chat', '[{}]').message).not.toHaveProperty('reasoning_details')
    expect(send('acme/openai-chat', '1],"x":[').message).not.toHaveProperty('reasoning_details')
    expect(send('acme/openai-chat', '{"a":1}').message).not.toHaveProperty('reasoning_details')
  })
})
