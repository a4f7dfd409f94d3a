import { expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import { readRequest } from './fields.ts'
import { endingOf, readDataUrl, readMediaUrl, sniffMediaType } from './media.ts'

test('pitfall 92: formats are known by their first bytes', () => {
  const sniff = (latin1: string) => sniffMediaType(Buffer.from(latin1, 'latin1').toString('base64'))
  expect(sniff('\x89PNG\r\n\x1a\n....')).toBe('image/png')
  expect(sniff('\xff\xd8\xff\xe1....')).toBe('image/jpeg')
  expect(sniff('GIF89a')).toBe('image/gif')
  expect(sniff('RIFF\x01\x02\x03\x04WEBPVP8 ')).toBe('image/webp')
  expect(sniff('%PDF-1.4')).toBe('application/pdf')
  expect(sniff('RIFF\x01\x02\x03\x04WAVE')).toBeUndefined()
  expect(sniff('BM')).toBeUndefined()
  expect(sniff('')).toBeUndefined()
})

test('a data URL is read with any parameters, and only if it is base64', () => {
  expect(readDataUrl('data:Image/PNG;charset=x;base64,AAAA')).toEqual({ mediaType: 'image/png', base64: 'AAAA' })
  expect(readDataUrl('data:;base64,AAAA')).toEqual({ mediaType: 'text/plain', base64: 'AAAA' })
  expect(readDataUrl('data:image/png,AAAA')).toBeUndefined()
  expect(readDataUrl('https://x.test/,')).toBeUndefined()
})

const pointer = '/messages/0/content/0/source/url'
const mediumOf = (url: string) => readRequest(() => readMediaUrl(url, pointer))

test('an address is taken as it is, up to 8,192 characters', () => {
  const url = `https://a.example/${'b'.repeat(8192 - 18)}`
  expect(mediumOf(url)).toEqual({ kind: 'url', url })
  expect(mediumOf(`${url}b`)).toBeInstanceOf(Failure)
})

test('a data URL is the medium itself, however long', () => {
  const png = `iVBORw0KGgo${'A'.repeat(20_000)}=`
  expect(mediumOf(`data:image/jpg;base64,${png}`)).toEqual({ kind: 'data', mediaType: 'image/png', base64: png })
  expect(mediumOf(`data:text/plain,${'a'.repeat(9000)}`)).toBeInstanceOf(Failure)
})

test.each(['\n', '\0', '\x1f', '\x7f'])('one with a control character is refused by its place (%j)', (sign) => {
  expect(mediumOf(`https://a.example/${sign}b`)).toMatchObject({
    code: 'INVALID_REQUEST',
    message: '`messages[0].content[0].source.url` must not contain control characters.',
  })
})

test.each([
  ['https://a.example/b.PNG', 'png'],
  ['https://a.example/b.tar.jpeg?c=d.gif#e.webp', 'jpeg'],
  ['https://a.example/b.heic#e.webp?c=d.gif', 'heic'],
  ['https://a.example/b.', undefined],
  ['b', undefined],
  [`b.${'c'.repeat(17)}`, undefined],
])('%s ends in %p', (url, ending) => {
  expect(endingOf(url)).toBe(ending)
})
