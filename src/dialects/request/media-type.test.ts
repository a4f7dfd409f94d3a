import { expect, test } from 'bun:test'
import { readDataUrl, sniffMediaType } from './media-type.ts'

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
