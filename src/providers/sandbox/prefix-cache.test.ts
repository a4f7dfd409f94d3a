import { expect, test } from 'bun:test'
import { readPrompt } from './chat/read-prompt.ts'
import { createPrefixCache } from './prefix-cache.ts'

/** System of two words and its overhead of four, then a question that is not part of the prefix. */
function promptAbout(topic: string) {
  return readPrompt({
    model: 'cache',
    messages: [
      { role: 'system', content: `about ${topic}` },
      { role: 'user', content: 'tell me' },
    ],
  })
}

test('forgets the prefix that was used longest ago', () => {
  const cache = createPrefixCache(2)
  const written = { read: 0, writtenShort: 6, writtenLong: 0 }
  const read = { read: 6, writtenShort: 0, writtenLong: 0 }
  expect(cache.look(promptAbout('a'))).toEqual(written)
  expect(cache.look(promptAbout('b'))).toEqual(written)
  expect(cache.look(promptAbout('a'))).toEqual(read)
  expect(cache.look(promptAbout('c'))).toEqual(written)
  expect(cache.look(promptAbout('a'))).toEqual(read)
  expect(cache.look(promptAbout('b'))).toEqual(written)
})
