import { expect, test } from 'bun:test'
import { isMeaningfulChunk } from './meaningful.ts'
import { outputMeter } from './output-meter.ts'

const chunk = (delta: object) => JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })

function bytesOf(json: string): number {
  const bytes = new TextEncoder().encode(json)
  return outputMeter.count(bytes, 0, bytes.length)
}

test('what is spoken is output, and counts by what was said', () => {
  const spoken = chunk({ audio: { id: 'audio_1', transcript: 'hello you', data: 'UklGRg==' } })
  expect(isMeaningfulChunk(spoken)).toBe(true)
  expect(bytesOf(spoken)).toBe('hello you'.length)
})

test('a picture is output: it is not waited behind', () => {
  const picture = chunk({ images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }] })
  expect(isMeaningfulChunk(picture)).toBe(true)
  expect(isMeaningfulChunk(chunk({ images: [] }))).toBe(false)
})
