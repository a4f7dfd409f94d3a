import { describe, expect, test } from 'bun:test'
import { noTags } from '../../../../test/parts/content-tags.ts'
import { Failure } from '../../../kernel/failure.ts'
import type { ParsedRequest } from '../../canonical/translation.ts'
import { readEnvelope } from '../envelope.ts'
import { parseRequest } from './parse.ts'

function parse(body: object): ParsedRequest | Failure {
  const bytes = new TextEncoder().encode(JSON.stringify({ model: 'a/b', input: 'hi', ...body }))
  const envelope = readEnvelope(bytes)
  return envelope instanceof Failure ? envelope : parseRequest(envelope, noTags)
}

function parsed(body: object): ParsedRequest {
  const result = parse(body)
  if (result instanceof Failure) throw new Error(result.message)
  return result
}

function refused(body: object): Failure {
  const result = parse(body)
  if (!(result instanceof Failure)) throw new Error('was not refused')
  return result
}

const user = (text: string) => ({ role: 'user', content: text })
const tool = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false }

describe('input', () => {
  test('a text is a user turn', () => {
    const { conversation } = parsed({ input: 'hi', instructions: 'Be kind.' })
    expect(conversation.system).toEqual([{ kind: 'text', text: 'Be kind.' }])
    expect(conversation.turns).toEqual([{ role: 'user', blocks: [{ kind: 'text', text: 'hi' }], pointer: '/input' }])
  })

  test('leading developer messages are system text, later ones stay in place', () => {
    const later = { role: 'developer', content: [{ type: 'input_text', text: 'b' }] }
    const { conversation } = parsed({ input: [{ role: 'developer', content: 'a' }, user('hi'), later] })
    expect(conversation.system).toEqual([{ kind: 'text', text: 'a' }])
    expect(conversation.turns.map(({ role }) => role)).toEqual(['user', 'system'])
  })

  test('the items of one answer are one turn, in order, with their ids dropped', () => {
    const input = [
      user('hi'),
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'Hm.' }],
        encrypted_content: 'tgr1.s.untagged.sig',
      },
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'I look.' }],
      },
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"a":1}', status: 'completed' },
      { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_2', name: 'patch', input: '*** x' },
      { type: 'function_call_output', call_id: 'call_1', output: 'rain' },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: 'done' }] },
    ]
    const { conversation, warnings } = parsed({ input })
    expect(warnings).toEqual([])
    expect(conversation.turns.slice(1)).toEqual([
      {
        role: 'assistant',
        pointer: '/input/1',
        blocks: [
          { kind: 'thinking', text: 'Hm.', signature: 'sig' },
          { kind: 'text', text: 'I look.' },
          { kind: 'tool-call', id: 'call_1', name: 'look', arguments: '{"a":1}', custom: false },
          { kind: 'tool-call', id: 'call_2', name: 'patch', arguments: '*** x', custom: true },
        ],
      },
      {
        role: 'user',
        pointer: '/input/5',
        blocks: [{ kind: 'tool-result', callId: 'call_1', content: [{ kind: 'text', text: 'rain' }], isError: false }],
      },
      {
        role: 'user',
        pointer: '/input/6',
        blocks: [{ kind: 'tool-result', callId: 'call_2', content: [{ kind: 'text', text: 'done' }], isError: false }],
      },
    ])
  })

  test.each([
    ['signed', 'tgr1.s.untagged.sig', { kind: 'thinking', text: 'Hm.', signature: 'sig' }, []],
    ['sealed', 'tgr1.e.untagged.data', { kind: 'sealed-thinking', data: 'data' }, []],
    ['of another gateway', 'gAAAA', { kind: 'thinking', text: 'Hm.' }, ['thinking_dropped']],
  ])('reasoning, %s', (_, encrypted_content, block, codes) => {
    const reasoning = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content }
    const { conversation, warnings } = parsed({ input: [user('hi'), reasoning] })
    expect(conversation.turns[1]?.blocks).toEqual([block as never])
    expect(warnings.map(({ code }) => code)).toEqual(codes)
  })

  test('images, files and audio', () => {
    const png = 'iVBORw0KGgoAAAANSUhEUg=='
    const content = [
      { type: 'input_image', image_url: `data:image/png;base64,${png}` },
      { type: 'input_image', image_url: 'https://a.example/b.png' },
      { type: 'input_file', filename: 'a.txt', file_data: `data:text/plain;base64,${btoa('words')}` },
      { type: 'input_file', file_url: 'https://a.example/b.pdf' },
      { type: 'input_audio', input_audio: { format: 'wav', data: 'AAAA' } },
    ]
    const { conversation } = parsed({ input: [{ role: 'user', content }] })
    expect(conversation.turns[0]?.blocks).toEqual([
      { kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: png } },
      { kind: 'image', source: { kind: 'url', url: 'https://a.example/b.png' } },
      { kind: 'document', source: { kind: 'text', text: 'words' }, title: 'a.txt' },
      { kind: 'document', source: { kind: 'url', url: 'https://a.example/b.pdf' }, title: undefined },
      { kind: 'document', source: { kind: 'data', mediaType: 'audio/wav', base64: 'AAAA' } },
    ])
  })
})

describe('tools', () => {
  test('a function is strict by default where its schema allows it', () => {
    const closed = {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    }
    const tools = [tool, { ...tool, strict: undefined }, { ...tool, strict: undefined, parameters: closed }]
    const strict = parsed({ tools }).conversation.tools.map((each) => each.kind === 'function' && each.strict)
    expect(strict).toEqual([false, undefined, true])
  })

  test('tools in a namespace get a joined name, in the list, the history and the choice', () => {
    const tools = [{ type: 'namespace', name: 'mcp__git', description: 'Git', tools: [tool] }]
    const call = { type: 'function_call', call_id: 'c', namespace: 'mcp__git', name: 'look', arguments: '{}' }
    const input = [user('hi'), call, { type: 'function_call_output', call_id: 'c', output: 'ok' }]
    const choice = { type: 'function', namespace: 'mcp__git', name: 'look' }
    const { conversation, callForms } = parsed({ tools, input, tool_choice: choice })
    expect(conversation.tools.map(({ name }) => name)).toEqual(['mcp__git__look'])
    expect(conversation.turns[1]?.blocks).toMatchObject([{ name: 'mcp__git__look' }])
    expect(conversation.toolChoice).toEqual({ kind: 'named', name: 'mcp__git__look' })
    expect(callForms?.get('mcp__git__look')).toEqual({ namespace: 'mcp__git', name: 'look' })
  })

  test('tools in an input item count like the others', () => {
    const input = [{ type: 'additional_tools', tools: [tool] }, user('hi')]
    expect(parsed({ input }).conversation.tools.map(({ name }) => name)).toEqual(['look'])
  })

  test('a custom tool keeps its grammar as advice', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' }
    const { conversation } = parsed({ tools: [{ type: 'custom', name: 'patch', format }] })
    expect(conversation.tools[0]).toMatchObject({
      kind: 'custom',
      grammar: '{"type":"grammar","grammar":{"definition":"start: "x"","syntax":"lark"}}'.replaceAll('"x"', '\\"x\\"'),
      isGrammarAdvice: true,
    })
  })

  test.each([
    ['web_search', false],
    ['tool_search', false],
    ['mcp', true],
    ['file_search', true],
    ['code_interpreter', true],
    ['image_generation', true],
  ])('%s is dropped with a warning or refused', (type, refuse) => {
    const addsInput = type !== 'tool_search'
    const { unsupported } = parsed({ tools: [{ type }] }).conversation
    expect(unsupported).toMatchObject([{ field: '/tools/0', refuse, addsInput }])
  })

  test.each([
    ['auto', { kind: 'auto' }],
    [
      { type: 'custom', name: 'look' },
      { kind: 'named', name: 'look' },
    ],
    [
      { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'look' }] },
      { kind: 'allowed', names: ['look'], force: true },
    ],
  ])('the choice %j', (tool_choice, choice) => {
    expect(parsed({ tools: [tool], tool_choice }).conversation.toolChoice).toEqual(choice as never)
  })
})

test('settings', () => {
  const { conversation } = parsed({
    max_output_tokens: 100,
    temperature: 0.5,
    top_p: 0.9,
    parallel_tool_calls: false,
    reasoning: { effort: 'high', summary: 'auto' },
    text: { verbosity: 'low', format: { type: 'json_schema', name: 'x', schema: { type: 'object' }, strict: true } },
    prompt_cache_key: 'session-1',
    safety_identifier: 'u1',
    service_tier: 'flex',
    client_metadata: { c: 'd' },
    include: ['reasoning.encrypted_content'],
    store: false,
    truncation: 'disabled',
  })
  expect(conversation).toMatchObject({
    outputCap: 100,
    sampling: { temperature: 0.5, topP: 0.9 },
    parallelTools: false,
    reasoning: { effort: 'high', visible: true },
    verbosity: 'low',
    outputFormat: { kind: 'json-schema', name: 'x', schema: '{"type":"object"}', strict: true },
    promptCacheKey: 'session-1',
    endUserId: 'u1',
    serviceTier: 'flex',
    unsupported: [],
  })
})

test.each([
  [{ store: true }, '/store', false],
  [{ truncation: 'auto' }, '/truncation', false],
  [{ include: ['file_search_call.results'] }, '/include', false],
  [{ top_logprobs: 5 }, '/top_logprobs', true],
  [{ max_tool_calls: 5 }, '/max_tool_calls', true],
  [{ something_new: 1 }, '/something_new', false],
])('%j is named', (body, field, refuse) => {
  expect(parsed(body).conversation.unsupported).toMatchObject([{ field, refuse }])
})

test.each(['web_search_call', 'something_new'])('an item of type %s is left out and named', (type) => {
  const { conversation, warnings } = parsed({ input: [user('hi'), { type, id: 'x_1' }] })
  expect(conversation.turns).toHaveLength(1)
  expect(warnings).toEqual([{ code: 'item_dropped', field: '/input/1' }])
})

test.each<[body: object, param: string]>([
  [{ input: undefined }, 'input'],
  [{ input: undefined, messages: [user('hi')] }, 'input'],
  [{ input: '' }, 'input'],
  [{ input: [] }, 'input'],
  [{ input: 5 }, 'input'],
  [{ input: [user('hi'), { type: 'compaction', id: 'cmp_1' }] }, 'input[1].encrypted_content'],
  [{ previous_response_id: 'resp_1' }, 'previous_response_id'],
  [{ conversation: 'conv_1' }, 'conversation'],
  [{ background: true }, 'background'],
  [{ prompt: { id: 'pmpt_1' } }, 'prompt'],
  [{ store: 'yes' }, 'store'],
  [{ max_output_tokens: 0 }, 'max_output_tokens'],
  [{ temperature: 3 }, 'temperature'],
  [{ reasoning: { effort: 'huge' } }, 'reasoning.effort'],
  [{ input: [{ role: 'wizard', content: 'x' }] }, 'input[0].role'],
  [{ input: ['x'] }, 'input[0]'],
  [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0].type'],
  [{ input: [{ type: 'A strange type!' }] }, 'input[0].type'],
  [{ input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file_1' }] }] }, 'input[0].content[0].file_id'],
  [{ input: [{ role: 'user', content: [{ type: 'video' }] }] }, 'input[0].content[0].type'],
  [{ input: [user('hi'), { type: 'function_call', name: 'look', arguments: '{}' }] }, 'input[1].call_id'],
  [{ input: [user('hi'), { type: 'function_call', call_id: 'c', arguments: '{}' }] }, 'input[1].name'],
  [{ input: [user('hi'), { type: 'function_call_output', call_id: 'c' }] }, 'input[1].output'],
  [{ tools: [{ type: 'function' }] }, 'tools[0].name'],
  [{ tools: [{ name: 'x' }] }, 'tools[0].type'],
  [{ tools: [{ type: 'Not a type' }] }, 'tools[0].type'],
  [{ tools: [tool], tool_choice: { type: 'hosted' } }, 'tool_choice.type'],
  [{ text: { format: { type: 'json_schema', name: 'x' } } }, 'text.format.schema'],
])('%j is refused by name', (body, param) => {
  expect(refused(body)).toMatchObject({ code: 'INVALID_REQUEST', facts: { param } })
})
