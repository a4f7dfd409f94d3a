import { describe, expect, test } from 'bun:test'
import { parsed, refusedParse } from '../../../test/parts/chat-requests.ts'

/** The first bytes of each format are all that is looked at. */
const base64 = (bytes: readonly number[]) => Buffer.from(bytes).toString('base64')
const png = base64([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0])
const jpeg = base64([0xff, 0xd8, 0xff, 0xe0, 0, 0])
const bmp = Buffer.from('BM123456').toString('base64')
const pdf = Buffer.from('%PDF-1.7\n').toString('base64')

const userParts = (...content: object[]) => parsed({ messages: [{ role: 'user', content }] }).turns[0]?.blocks
const lifeOf = (block: object | undefined) => (block as { cacheMark?: { life: string } })?.cacheMark?.life

describe('content parts', () => {
  test('vector 14: images by data URL and by address; other formats are refused by name', () => {
    const image = (url: string, detail?: string) => ({ type: 'image_url', image_url: { url, detail } })
    expect(userParts(image(`data:image/png;base64,${png}`))).toEqual([
      { kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: png } },
    ])
    expect(userParts(image('https://x.test/a.png'))).toEqual([
      { kind: 'image', source: { kind: 'url', url: 'https://x.test/a.png' } },
    ])
    expect(refusedParse({ messages: [{ role: 'user', content: [image(`data:image/bmp;base64,${bmp}`)] }] }).param).toBe(
      'messages[0].content[0].image_url.url',
    )
    const detailed = (detail: string) =>
      parsed({ messages: [{ role: 'user', content: [image('https://x.test/a', detail)] }] }).warned
    expect(detailed('high')).toEqual(['detail_dropped /messages/0/content/0/image_url/detail'])
    expect(detailed('auto')).toEqual([])
  })

  test('an address that is none is refused by its place, in every part that can have one', () => {
    for (const url of [`https://x.test/${'.a#'.repeat(3000)}`, 'https://x.test/a\n.png']) {
      const paramOf = (part: object) => refusedParse({ messages: [{ role: 'user', content: [part] }] }).param
      expect(paramOf({ type: 'image_url', image_url: { url } })).toBe('messages[0].content[0].image_url.url')
      expect(paramOf({ type: 'image_url', image_url: url })).toBe('messages[0].content[0].image_url')
      expect(paramOf({ type: 'file', file: { file_data: url } })).toBe('messages[0].content[0].file.file_data')
      for (const type of ['image', 'document']) {
        expect(paramOf({ type, source: { type: 'url', url } })).toBe('messages[0].content[0].source.url')
      }
    }
  })

  test('pitfall 92: the bytes decide the media type, not the label', () => {
    expect(userParts({ type: 'image_url', image_url: { url: `data:image/png;base64,${jpeg}` } })).toEqual([
      { kind: 'image', source: { kind: 'data', mediaType: 'image/jpeg', base64: jpeg } },
    ])
  })

  test('pitfall 96: a PDF inside image_url is a document', () => {
    expect(userParts({ type: 'image_url', image_url: { url: `data:application/pdf;base64,${pdf}` } })).toEqual([
      { kind: 'document', source: { kind: 'data', mediaType: 'application/pdf', base64: pdf } },
    ])
  })

  test('vector 15: a PDF file is a document with its name as title; a file id is refused', () => {
    const file = { file_data: `data:application/pdf;base64,${pdf}`, filename: 'r.pdf' }
    expect(userParts({ type: 'file', file })).toEqual([
      { kind: 'document', source: { kind: 'data', mediaType: 'application/pdf', base64: pdf }, title: 'r.pdf' },
    ])
    expect(
      refusedParse({ messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }] }).param,
    ).toBe('messages[0].content[0].file.file_id')
  })

  test('a text file is a document in plain text', () => {
    const file = { file_data: `data:text/plain;base64,${Buffer.from('größer').toString('base64')}` }
    expect(userParts({ type: 'file', file })).toEqual([{ kind: 'document', source: { kind: 'text', text: 'größer' } }])
  })

  test('sound of an unknown format and unknown parts are refused by name', () => {
    const refused = (part: object) => refusedParse({ messages: [{ role: 'user', content: [part] }] })
    expect(refused({ type: 'input_audio', input_audio: { data: '', format: 'hum' } }).param).toBe(
      'messages[0].content[0].input_audio.format',
    )
    expect(refused({ type: 'hologram' }).message).toContain('hologram')
  })

  test('sound is a document by value', () => {
    for (const data of ['UklG', 'data:audio/x-wav;base64,UklG']) {
      const part = { type: 'input_audio', input_audio: { data, format: 'wav' } }
      expect(parsed({ messages: [{ role: 'user', content: [part] }] }).turns[0]?.blocks).toEqual([
        { kind: 'document', source: { kind: 'data', mediaType: 'audio/wav', base64: 'UklG' } },
      ])
    }
  })

  test('vector 34: breakpoints are cache marks; half a day is more than anyone else keeps', () => {
    const marked = (ttl?: string) => ({ type: 'text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit', ttl } })
    const content = [marked(), marked('30m'), marked('12h')]
    const { turns, warned } = parsed({ messages: [{ role: 'user', content }] })
    expect(turns[0]?.blocks.map(lifeOf)).toEqual(['short', 'long', 'long'])
    expect(warned).toEqual(['cache_life_shortened /messages/0/content/2/prompt_cache_breakpoint/ttl'])
  })

  test('pitfall 105: cache_control counts on parts, messages, tools and at the top', () => {
    const mark = { cache_control: { type: 'ephemeral' } }
    const conversation = parsed({
      messages: [
        { role: 'system', content: 'S', ...mark },
        { role: 'user', content: [{ type: 'text', text: 'c', cache_control: { type: 'ephemeral', ttl: '1h' } }] },
        { role: 'assistant', content: null, tool_calls: [{ id: 't', type: 'function', function: { name: 'f' } }] },
        { role: 'tool', tool_call_id: 't', content: 'r', ...mark },
      ],
      tools: [{ type: 'function', function: { name: 'f' }, ...mark }],
      ...mark,
    })
    expect(lifeOf(conversation.system[0])).toBe('short')
    expect(conversation.turns.map(({ blocks }) => blocks.map(lifeOf))).toEqual([['long'], [undefined], ['short']])
    expect(lifeOf(conversation.tools[0])).toBe('short')
    expect(conversation.automaticCache).toEqual({ life: 'short', place: '/cache_control' })
  })

  test('pitfall 105: and inside the description of a tool, where unknown members are told', () => {
    const { tools, warned } = parsed({
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'function', function: { name: 'f', cache_control: { type: 'ephemeral' }, colour: 'red' } }],
    })
    expect(lifeOf(tools[0])).toBe('short')
    expect(warned).toEqual(['field_dropped /tools/0/function/colour'])
  })
})
