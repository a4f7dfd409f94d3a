import { describe, expect, test } from 'bun:test'
import { refusedRender, rendered, targetWith } from '../../../test/parts/chat-requests.ts'
import type { AssistantBlock, Turn } from '../canonical/conversation.ts'
import { writeSignature } from '../canonical/signature.ts'
import type { TargetRules } from '../canonical/target-rules.ts'

const text = (words: string) => ({ kind: 'text', text: words }) as const
const thinking = (words: string, signature?: string) => ({ kind: 'thinking', text: words, signature }) as const
const call = (written: string, custom = false) =>
  ({ kind: 'tool-call', id: 't', name: 'f', arguments: written, custom }) as const
const deepseek: TargetRules = { reasoningEcho: { field: 'reasoning_content', when: 'tool-turns' } }

function history(...blocks: AssistantBlock[]): Turn[] {
  const answers = blocks.flatMap((block) =>
    block.kind === 'tool-call' ? [{ kind: 'tool-result', callId: block.id, content: [], isError: false } as const] : [],
  )
  return [
    { role: 'user', blocks: [text('u')] },
    { role: 'assistant', blocks, place: '/messages/1' },
    { role: 'user', blocks: [...answers, text('x')] },
  ]
}

function said(blocks: AssistantBlock[], rules: TargetRules = {}) {
  const { body, warned } = rendered({ turns: history(...blocks) }, targetWith(rules))
  return { message: body.messages[1], warned }
}

describe('what was said and called', () => {
  test('pitfall 38: texts are joined and stand in one message with all calls', () => {
    expect(said([text('a'), call('{"q":1}'), text('b')]).message).toEqual({
      role: 'assistant',
      content: 'ab',
      tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '{"q":1}' } }],
    })
  })

  test('pitfall 37: content beside calls is null, or a string where the target insists', () => {
    expect(said([call('{}')]).message.content).toBeNull()
    expect(said([call('{}')], { emptyContent: 'string' }).message.content).toBe('')
  })

  test('pitfall 55: no arguments mean an empty object', () => {
    expect(said([call(' ')]).message.tool_calls[0].function.arguments).toBe('{}')
  })

  test('pitfall 56: arguments go out as they were written', () => {
    const written = '{"id":9007199254740993, "x":1.0}'
    expect(said([call(written)]).message.tool_calls[0].function.arguments).toBe(written)
  })

  test('pitfall 12: a custom call goes out as it was, or as a function with one string', () => {
    expect(said([call('*** patch', true)], { customTools: true }).message.tool_calls[0]).toEqual({
      id: 't',
      type: 'custom',
      custom: { name: 'f', input: '*** patch' },
    })
    expect(said([call('say "x"', true)]).message.tool_calls[0].function.arguments).toBe('{"input":"say \\"x\\""}')
  })

  test('assistant turns in a row that call tools are one message, so that the results follow it', () => {
    const other = { ...call('{}'), id: 't2' }
    const result = (id: string) => ({ kind: 'tool-result', callId: id, content: [], isError: false }) as const
    const turns: Turn[] = [
      { role: 'assistant', blocks: [text('a'), call('{}')] },
      { role: 'assistant', blocks: [other] },
      { role: 'user', blocks: [result('t'), result('t2')] },
    ]
    const { messages } = rendered({ turns }).body
    expect(messages.map(({ role }: { role: string }) => role)).toEqual(['assistant', 'tool', 'tool'])
    expect(messages[0].tool_calls).toHaveLength(2)
  })

  test('a refusal stays one', () => {
    expect(said([{ kind: 'refusal', text: 'no' }]).message).toEqual({ role: 'assistant', content: null, refusal: 'no' })
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
    const blocks = [thinking('hm', 'EqQB'), text('a'), call('{}')]
    const plain = said(blocks)
    expect(plain.message).not.toHaveProperty('reasoning_content')
    expect(plain.message.content).toBe('a')
    expect(plain.warned).toEqual(['thinking_dropped /messages/1'])
    const echoed = said(blocks, deepseek)
    expect([echoed.message.reasoning_content, echoed.warned]).toEqual(['hm', []])
  })

  test('pitfall 82: a host that wants reasoning gets the field on every message it looks at', () => {
    expect(said([text('a'), call('{}')], deepseek).message.reasoning_content).toBe('')
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
