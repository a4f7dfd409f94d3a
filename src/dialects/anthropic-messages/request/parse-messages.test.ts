import { describe, expect, test } from 'bun:test'
import { messagesEnvelope, refusedMessages as refused } from '../../../../test/parts/translation.ts'
import { Failure } from '../../../kernel/failure.ts'
import { parseRequest } from './parse.ts'

function parsed(body: object | string) {
  const request = parseRequest(messagesEnvelope(body))
  if (request instanceof Failure) throw new Error(`refused: ${request.message} (${request.facts.param})`)
  const { conversation } = request
  const turns = conversation.turns.map(({ role, blocks }) => ({ role, blocks }))
  return { conversation, turns, warnings: request.warnings.map(({ code, field }) => `${code};${field}`) }
}

const hi = { role: 'user', content: 'hi' }
const toolUse = (id: string, parts = {}) => ({ type: 'tool_use', id, name: 'f', input: {}, ...parts })
const text = (words: string) => ({ kind: 'text', text: words }) as const
/** The blocks of one user message, or of one assistant message behind a greeting. */
const userBlocks = (...content: object[]) => parsed({ messages: [{ role: 'user', content }] }).turns[0]?.blocks
const assistantBlocks = (...content: object[]) =>
  parsed({ messages: [hi, { role: 'assistant', content }] }).turns[1]?.blocks

describe('roles', () => {
  test('system text is a string or blocks, and system messages in front join it', () => {
    expect(parsed({ system: 'A', messages: [hi] }).conversation.system).toEqual([text('A')])
    const blocks = [{ type: 'text', text: 'A', cache_control: { type: 'ephemeral', ttl: '1h' } }]
    const { conversation, turns } = parsed({ system: blocks, messages: [{ role: 'system', content: 'B' }, hi] })
    expect(conversation.system).toEqual([
      { ...text('A'), cacheMark: { life: 'long', isHour: true, pointer: '/system/0/cache_control' } },
      text('B'),
    ])
    expect(turns).toEqual([{ role: 'user', blocks: [text('hi')] }])
  })

  test('pitfall 1: the line for billing that Claude Code puts first is no prompt text', () => {
    const system = [
      { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1; cch=ab12' },
      { type: 'text', text: 'You are…' },
    ]
    const { conversation, warnings } = parsed({ system, messages: [hi] })
    expect(conversation.system).toEqual([text('You are…')])
    expect(warnings).toEqual([])
  })

  test('pitfall 1: where it was joined with the prompt, only the line goes', () => {
    const line = 'x-anthropic-billing-header: cc_version=2.1; cch=ab12'
    for (const system of [`${line}\nYou are…\nkind`, [{ type: 'text', text: `${line}\r\nYou are…\nkind` }]]) {
      expect(parsed({ system, messages: [hi] }).conversation.system).toEqual([text('You are…\nkind')])
    }
    expect(parsed({ system: line, messages: [hi] }).conversation.system).toEqual([])
  })

  test('pitfall 31: a system message in mid-conversation stays where it is', () => {
    const messages = [
      hi,
      { role: 'assistant', content: 'a' },
      hi,
      { role: 'system', content: [{ type: 'text', text: 'B' }] },
    ]
    expect(parsed({ messages }).turns[3]).toEqual({ role: 'system', blocks: [text('B')] })
  })

  test('one that is to be cleared at the next user message is gone once there is one', () => {
    const reminder = { role: 'system', content: 'now', clear_at: 'next_user_message' }
    expect(parsed({ messages: [hi, reminder] }).turns).toHaveLength(2)
    expect(parsed({ messages: [hi, reminder, { role: 'assistant', content: 'a' }, hi] }).turns).toEqual([
      { role: 'user', blocks: [text('hi')] },
      { role: 'assistant', blocks: [text('a')] },
      { role: 'user', blocks: [text('hi')] },
    ])
  })

  test('its own effort is left out with a warning', () => {
    const messages = [hi, { role: 'system', content: 'x', output_config: { effort: 'low' } }]
    expect(parsed({ messages }).warnings).toEqual(['output_config_dropped;/messages/1/output_config'])
  })

  test('another role is refused by its place', () => {
    expect(refused({ messages: [hi, { role: 'tool', content: 'x' }] }).facts.param).toBe('messages[1].role')
  })
})

describe('user content', () => {
  test('images and documents of every source', () => {
    expect(
      userBlocks(
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
        { type: 'image', source: { type: 'url', url: 'https://x' }, cache_control: { type: 'ephemeral' } },
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AA==' }, title: 'T' },
        { type: 'document', source: { type: 'url', url: 'https://y' }, context: 'C' },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'plain' } },
        { type: 'document', source: { type: 'content', content: 'string' } },
      ),
    ).toEqual([
      { kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: 'AA==' } },
      {
        kind: 'image',
        source: { kind: 'url', url: 'https://x' },
        cacheMark: { life: 'short', pointer: '/messages/0/content/1/cache_control' },
      },
      { kind: 'document', source: { kind: 'data', mediaType: 'application/pdf', base64: 'AA==' }, title: 'T' },
      { kind: 'document', source: { kind: 'url', url: 'https://y' }, context: 'C' },
      { kind: 'document', source: { kind: 'text', text: 'plain' } },
      { kind: 'document', source: { kind: 'text', text: 'string' } },
    ])
  })

  test('a document of blocks falls apart into its texts and images, the mark at its end', () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'image', source: { type: 'url', url: 'https://x' } },
    ]
    const document = { type: 'document', source: { type: 'content', content }, cache_control: { type: 'ephemeral' } }
    expect(userBlocks(document)).toEqual([
      { kind: 'document', source: { kind: 'text', text: 'a' } },
      {
        kind: 'image',
        source: { kind: 'url', url: 'https://x' },
        cacheMark: { life: 'short', pointer: '/messages/0/content/0/cache_control' },
      },
    ])
  })

  test('pitfall 97: files by id are refused, wherever they stand', () => {
    for (const type of ['image', 'document']) {
      const block = { type, source: { type: 'file', file_id: 'file_1' } }
      expect(refused({ messages: [{ role: 'user', content: [block] }] }).facts.param).toBe(
        'messages[0].content[0].source.file_id',
      )
    }
  })

  test('a search result is text with its title and source', () => {
    const found = { type: 'search_result', title: 'T', source: 'https://s', content: [{ type: 'text', text: 'body' }] }
    expect(userBlocks(found)).toEqual([text('T\nhttps://s\n\nbody')])
  })

  test('refuses content that only Anthropic can read, by its type', () => {
    const failure = refused({ messages: [{ role: 'user', content: [{ type: 'container_upload', file_id: 'f' }] }] })
    expect(failure.message).toContain('container_upload')
    expect(failure.facts.param).toBe('messages[0].content[0].type')
  })

  test('citations and transformations are left out with a warning', () => {
    const { warnings } = parsed({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a', citations: [] },
            { type: 'image', source: { type: 'url', url: 'u' }, transformations: { oversized_image: 'error' } },
            { type: 'document', source: { type: 'url', url: 'u' }, citations: { enabled: true } },
          ],
        },
      ],
    })
    expect(warnings).toEqual([
      'transformations_dropped;/messages/0/content/1/transformations',
      'citations_dropped;/messages/0/content/2/citations',
    ])
  })

  test('wrong types are refused by their place, never thrown', () => {
    const at = (content: unknown) => refused({ messages: [{ role: 'user', content }] }).facts.param
    expect(at(7)).toBe('messages[0].content')
    expect(at(undefined)).toBe('messages[0].content')
    expect(at(['x'])).toBe('messages[0].content[0]')
    expect(at([{ type: 'text', text: 1 }])).toBe('messages[0].content[0].text')
    expect(at([{ type: 'text', text: 'a', cache_control: 1 }])).toBe('messages[0].content[0].cache_control')
    expect(at([{ type: 'image' }])).toBe('messages[0].content[0].source')
    expect(at([{ text: 'a' }])).toBe('messages[0].content[0].type')
    expect(refused({ messages: [1] }).facts.param).toBe('messages[0]')
  })
})

describe('tool results', () => {
  const result = (parts: object) => {
    const content = [{ type: 'tool_result', tool_use_id: 't1', ...parts }]
    return parsed({ messages: [{ role: 'user', content }] }).turns[0]?.blocks[0]
  }

  test('vector 41: text and media keep their order, and so do the blocks around', () => {
    const content = [
      {
        type: 'tool_result',
        tool_use_id: 't1',
        content: [
          { type: 'text', text: 'seen' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
        ],
      },
      { type: 'tool_result', tool_use_id: 't2', content: 'two' },
      { type: 'text', text: 'x' },
    ]
    expect(parsed({ messages: [{ role: 'user', content }] }).turns[0]?.blocks).toEqual([
      {
        kind: 'tool-result',
        callId: 't1',
        content: [text('seen'), { kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: 'AA==' } }],
        isError: false,
      },
      { kind: 'tool-result', callId: 't2', content: [text('two')], isError: false },
      text('x'),
    ])
  })

  test('vector 42: an error is marked as one', () => {
    expect(result({ content: 'boom', is_error: true })).toMatchObject({ isError: true, content: [text('boom')] })
  })

  test('vector 43 and pitfall 34: without content it is empty, and still there', () => {
    const empty = { kind: 'tool-result', callId: 't1', content: [], isError: false } as const
    expect(result({})).toEqual(empty)
    expect(result({ content: null })).toEqual(empty)
    expect(result({ content: '' })).toEqual(empty)
  })

  test('pitfall 43: references and other blocks are their own JSON, as written', () => {
    const body = `{"model":"a/b","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result",
      "tool_use_id":"t1","content":[{"type":"tool_reference", "tool_name":"x","n":12345678901234567890}]}]}]}`
    expect(parsed(body).turns[0]?.blocks[0]).toMatchObject({
      content: [text('{"type":"tool_reference", "tool_name":"x","n":12345678901234567890}')],
    })
  })
})

describe('assistant content', () => {
  test('pitfall 56: the input of a call is carried as it was written', () => {
    const body =
      '{"model":"a/b","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":' +
      '[{"type":"tool_use","id":"t","name":"f","input":{"b": 12345678901234567890,"1":1.0, "a":"\\u00e9"}}]}]}'
    expect(parsed(body).turns[1]?.blocks).toEqual([
      {
        kind: 'tool-call',
        id: 't',
        name: 'f',
        arguments: '{"b": 12345678901234567890,"1":1.0, "a":"\\u00e9"}',
        custom: false,
      },
    ])
  })

  test.each([
    ['""', ''],
    ['"{\\"a\\": 12345678901234567890}"', '{"a": 12345678901234567890}'],
    ['null', '{}'],
  ])('pitfall 54 and 55: an input of %s is the text of an object, or none', (input, text) => {
    const call = `{"type":"tool_use","id":"t","name":"f","input":${input}}`
    const body = `{"model":"a/b","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[${call}]}]}`
    expect(parsed(body).turns[1]?.blocks).toMatchObject([{ kind: 'tool-call', arguments: text }])
  })

  test('vector 45: thinking, text and calls in their order', () => {
    const blocks = assistantBlocks(
      { type: 'thinking', thinking: 'hm', signature: 'sig' },
      { type: 'redacted_thinking', data: 'D' },
      { type: 'text', text: 'so' },
      toolUse('t', { caller: { type: 'direct' } }),
    )
    expect(blocks).toEqual([
      { kind: 'thinking', text: 'hm', signature: 'sig' },
      { kind: 'sealed-thinking', data: 'D' },
      text('so'),
      { kind: 'tool-call', id: 't', name: 'f', arguments: '{}', custom: false },
    ])
  })

  test('vector 46: a signature of ours is carried as it is', () => {
    expect(assistantBlocks({ type: 'thinking', thinking: '', signature: 'tg1.abc' }, toolUse('t'))?.[0]).toEqual({
      kind: 'thinking',
      text: '',
      signature: 'tg1.abc',
    })
    expect(assistantBlocks({ type: 'thinking', thinking: 'x', signature: '' })?.[0]).toEqual({
      kind: 'thinking',
      text: 'x',
    })
  })

  test('a call made by code is refused', () => {
    const call = toolUse('t', { caller: { type: 'code_execution_20260120', tool_id: 's' } })
    expect(refused({ messages: [hi, { role: 'assistant', content: [call] }] }).facts.param).toBe(
      'messages[1].content[0].caller.type',
    )
  })

  test('blocks of server tools are dropped with a warning, or described in text if nothing else is left', () => {
    const search = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } }
    const found = {
      type: 'web_search_tool_result',
      tool_use_id: 's',
      content: [{ type: 'web_search_result', title: 'T', url: 'https://t', encrypted_content: 'E' }],
    }
    const beside = parsed({
      messages: [hi, { role: 'assistant', content: [search, found, { type: 'text', text: 'answer' }] }],
    })
    expect(beside.turns[1]?.blocks).toEqual([text('answer')])
    expect(beside.warnings).toEqual([
      'server_tool_use_dropped;/messages/1/content/0',
      'web_search_tool_result_dropped;/messages/1/content/1',
    ])
    expect(assistantBlocks(search, found)).toEqual([
      text('[web_search {"query":"q"}]'),
      text('[web_search_tool_result]\nT https://t'),
    ])
  })

  test('a compaction becomes a user turn with the summary and replaces everything before it', () => {
    const messages = [
      hi,
      { role: 'assistant', content: 'old' },
      {
        role: 'assistant',
        content: [
          { type: 'compaction', content: 'all of it' },
          { type: 'text', text: 'new' },
        ],
      },
      { role: 'user', content: 'go on' },
    ]
    expect(parsed({ messages }).turns).toEqual([
      { role: 'user', blocks: [text('Summary of the conversation so far:\n\nall of it')] },
      { role: 'assistant', blocks: [text('new')] },
      { role: 'user', blocks: [text('go on')] },
    ])
  })

  test('an unknown member of a message is left out with a warning', () => {
    expect(parsed({ messages: [{ ...hi, name: 'x', id: null }] }).warnings).toEqual(['field_dropped;/messages/0/name'])
  })
})

function blocksIn(content: readonly object[]): readonly object[] {
  const request = parseRequest(messagesEnvelope({ messages: [{ role: 'user', content }] }))
  if (request instanceof Failure) throw new Error(request.message)
  return request.conversation.turns[0]?.blocks ?? []
}

const firstBlock = (content: readonly object[]) => blocksIn(content)[0]

const base64 = (latin1: string) => Buffer.from(latin1, 'latin1').toString('base64')
const image = (label: string, data: string) => ({ type: 'image', source: { type: 'base64', media_type: label, data } })
const blockOf = (block: object) => firstBlock([block])
const jpeg = base64('\xff\xd8\xff\xe0....')
const pdf = base64('%PDF-1.7')

test('pitfall 92: the bytes decide what an image is, not its label', () => {
  const found = { kind: 'image', source: { kind: 'data', mediaType: 'image/jpeg', base64: jpeg } } as const
  expect(blockOf(image('image/png', jpeg))).toEqual(found)
  expect(blockOf(image('Image/JPG', jpeg))).toEqual(found)
  // Bytes that say nothing leave it to the label.
  expect(blockOf(image('image/jpg', 'AAAA'))).toMatchObject({ source: { mediaType: 'image/jpeg' } })
})

test('pitfall 92: in a tool result, too', () => {
  const content = [{ type: 'tool_result', tool_use_id: 't1', content: [image('image/png', jpeg)] }]
  expect(firstBlock(content)).toMatchObject({
    content: [{ source: { mediaType: 'image/jpeg' } }],
  })
})

test('pitfall 92: a type that is none of theirs is refused', () => {
  const content = [image('image/bmp', 'Qk0=')]
  const refused = parseRequest(messagesEnvelope({ messages: [{ role: 'user', content }] }))
  expect(refused instanceof Failure && refused.facts.param).toBe('messages[0].content[0].source.media_type')
})

test('the title and context of a document made of blocks are said once, around all of them', () => {
  const picture = image('image/jpeg', jpeg)
  const shown = { kind: 'image', source: { kind: 'data', mediaType: 'image/jpeg', base64: jpeg } }
  const text = (words: string) => ({ kind: 'document', source: { kind: 'text', text: words } })
  const blocksOf = (...content: object[]) =>
    blocksIn([
      {
        type: 'document',
        title: 'T',
        context: 'C',
        source: { type: 'content', content },
        cache_control: { type: 'ephemeral' },
      },
    ])
  const mark = { cacheMark: { life: 'short', pointer: '/messages/0/content/0/cache_control' } }
  const words = (said: string) => ({ type: 'text', text: said })
  expect(blocksOf(words('a'), picture, words('b'))).toEqual([
    { ...text('a'), title: 'T' },
    shown,
    { ...text('b'), context: 'C', ...mark },
  ])
  expect(blocksOf(words('a'))).toEqual([{ ...text('a'), title: 'T', context: 'C', ...mark }])
  expect(blocksOf(picture)).toEqual([{ kind: 'text', text: 'T' }, shown, { kind: 'text', text: 'C', ...mark }])
  expect(blocksOf()).toEqual([])
})

test('pitfall 96: a PDF that came as an image is a document', () => {
  expect(blockOf(image('image/png', pdf))).toEqual({
    kind: 'document',
    source: { kind: 'data', mediaType: 'application/pdf', base64: pdf },
  })
})

test.each([
  ['is too long', `https://a.example/${'.a#'.repeat(3000)}`],
  ['has a line break', 'https://a.example/b\n.png'],
])('an address that %s is refused by its place', (_, url) => {
  for (const type of ['image', 'document']) {
    const content = [{ type, source: { type: 'url', url } }]
    const refused = parseRequest(messagesEnvelope({ messages: [{ role: 'user', content }] }))
    expect(refused instanceof Failure && refused.facts.param).toBe('messages[0].content[0].source.url')
  }
})
