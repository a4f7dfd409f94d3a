// Images, documents and what else is not text.

import { absent, type Shape, saying, some, texts } from '../shape.ts'
import { hi, messagesTool, type RequestFixture, unreasoned } from './request-fixture.ts'

/** One pixel, and the beginning of a PDF: the first bytes identify the type. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const pdf = Buffer.from('%PDF-1.4\n%%EOF').toString('base64')
const wav = Buffer.from('RIFF\x04\0\0\0WAVE').toString('base64')
const url = 'https://example.com/a.png'

const user = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] })
const arrived = (part: Shape) => ({ messages: [{ role: 'user', content: some(part) }] })
const imageUrl = (address: string) => ({ type: 'image_url', image_url: { url: address } })
const imageData = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }
const documentData = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } }
const fileData = { file_data: `data:application/pdf;base64,${pdf}`, filename: 'r.pdf' }
const called = [hi, { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: {} }] }]
const resultWith = (...content: unknown[]) => ({
  ...unreasoned,
  tools: [messagesTool('look')],
  messages: [...called, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content }] }],
})

export const mediaFixtures: readonly RequestFixture[] = [
  {
    feature: 'Inline images',
    chat: user(imageUrl(`data:image/png;base64,${png}`)),
    messages: user(imageData),
    carried: { chat: arrived(imageUrl(`data:image/png;base64,${png}`)), messages: arrived(imageData) },
  },
  {
    feature: 'Images by URL',
    chat: user(imageUrl(url)),
    messages: user({ type: 'image', source: { type: 'url', url } }),
    carried: { chat: arrived(imageUrl(url)), messages: arrived({ type: 'image', source: { type: 'url', url } }) },
  },
  {
    feature: 'Image detail',
    chat: user({ type: 'image_url', image_url: { url, detail: 'high' } }),
    carried: {
      chat: arrived({ type: 'image_url', image_url: { detail: 'high' } }),
      messages: arrived({ type: 'image', detail: 'high' }),
    },
  },
  {
    feature: 'Inline PDF',
    chat: user({ type: 'file', file: fileData }),
    messages: user({ ...documentData, title: 'r.pdf' }),
    carried: {
      chat: arrived({ type: 'file', file: fileData }),
      messages: arrived({ ...documentData, title: 'r.pdf' }),
    },
  },
  {
    feature: 'PDF by URL',
    messages: user({ type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }),
    carried: {
      chat: arrived({ type: 'file', file: { file_data: 'https://example.com/a.pdf' } }),
      messages: arrived({ type: 'document', source: { type: 'url' } }),
    },
  },
  {
    feature: 'Text documents',
    chat: user({
      type: 'file',
      file: { filename: 'n.txt', file_data: `data:text/plain;base64,${Buffer.from('notes').toString('base64')}` },
    }),
    messages: user({
      type: 'document',
      title: 'n.txt',
      source: { type: 'text', media_type: 'text/plain', data: 'notes' },
    }),
    carried: {
      chat: arrived({ type: 'file', file: { filename: 'n.txt' } }),
      messages: arrived({ type: 'document', title: 'n.txt', source: { type: 'text', data: 'notes' } }),
    },
    emulated: { chat: { messages: [{ role: 'user', content: saying('notes') }] } },
  },
  {
    feature: 'Files by id',
    chat: user({ type: 'file', file: { file_id: 'file-1' } }),
    messages: user({ type: 'document', source: { type: 'file', file_id: 'file-1' } }),
    carried: {
      chat: arrived({ type: 'file', file: { file_id: 'file-1' } }),
      messages: arrived({ source: { type: 'file', file_id: 'file-1' } }),
    },
  },
  {
    feature: 'Search results',
    messages: user({
      type: 'search_result',
      source: 'https://example.com',
      title: 'Found',
      content: [{ type: 'text', text: 'notes' }],
    }),
    carried: { chat: arrived({ type: 'search_result' }), messages: arrived({ type: 'search_result' }) },
    emulated: { chat: { messages: [{ role: 'user', content: saying('Found\nhttps://example.com\n\nnotes') }] } },
  },
  {
    feature: 'Citations',
    messages: user({ ...documentData, citations: { enabled: true } }),
    carried: {
      chat: arrived({ type: 'file', citations: { enabled: true } }),
      messages: arrived({ ...documentData, citations: { enabled: true } }),
    },
  },
  {
    feature: 'Images in tool results',
    messages: resultWith({ type: 'text', text: 'a view' }, imageData),
    carried: {
      chat: { messages: some({ role: 'tool', content: some(imageUrl(`data:image/png;base64,${png}`)) }) },
      messages: { messages: some({ content: [{ type: 'tool_result', content: some(imageData) }] }) },
    },
    emulated: {
      chat: {
        messages: [
          { role: 'user' },
          { role: 'assistant' },
          { role: 'tool', content: texts('a view\n[image]') },
          { role: 'user', content: some(imageUrl(`data:image/png;base64,${png}`)) },
        ],
      },
    },
  },
  {
    feature: 'Documents in tool results',
    messages: resultWith(documentData),
    carried: {
      chat: { messages: some({ role: 'tool', content: some({ type: 'file' }) }) },
      messages: { messages: some({ content: [{ type: 'tool_result', content: [documentData] }] }) },
    },
    emulated: {
      chat: {
        messages: [
          { role: 'user' },
          { role: 'assistant' },
          { role: 'tool', content: texts('[document]') },
          { role: 'user', content: some({ type: 'file', file: { file_data: fileData.file_data } }) },
        ],
      },
    },
  },
  {
    feature: 'Audio',
    chat: user({ type: 'input_audio', input_audio: { data: wav, format: 'wav' } }),
    carried: { chat: arrived({ type: 'input_audio' }), messages: absent },
  },
]
