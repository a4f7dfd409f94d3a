// What images and documents are, whatever their blocks say.

import { expect, test } from 'bun:test'
import { messagesEnvelope } from '../../../test/parts/translation.ts'
import { Failure } from '../../kernel/failure.ts'
import { parseRequest } from './parse-request.ts'

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
  const mark = { cacheMark: { life: 'short', place: '/messages/0/content/0/cache_control' } }
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
