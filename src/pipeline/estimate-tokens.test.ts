import { expect, test } from 'bun:test'
import { conversation, user } from '../../test/parts/translation.ts'
import { audioTokens, countTokensGently, countTokensLocally } from './estimate-tokens.ts'

/** Ten seconds, at this many bytes each. */
const tenSeconds = (bytesPerSecond: number) => Math.ceil((bytesPerSecond * 10 * 4) / 3)

test.each([
  ['audio/wav', 32_000],
  ['audio/aiff', 32_000],
  ['audio/mp3', 16_000],
  ['audio/mpeg', 16_000],
  ['audio/ogg', 4_000],
  ['audio/of-tomorrow', 4_000],
])('ten seconds of %s are about 320 tokens', (mediaType, bytesPerSecond) => {
  const tokens = audioTokens(mediaType, tenSeconds(bytesPerSecond))
  expect(Math.abs(tokens - 320)).toBeLessThanOrEqual(1)
})

test('sound in a conversation is counted as sound, and a document as one', () => {
  const counted = (mediaType: string) => {
    // 30,000 bytes.
    const source = { kind: 'data', mediaType, base64: 'A'.repeat(40_000) } as const
    return countTokensLocally(conversation({ turns: [user({ kind: 'document', source })] }))
  }
  const bare = countTokensLocally(conversation({ turns: [user()] }))
  expect(counted('audio/wav') - bare).toBe(30)
  expect(counted('audio/mp3') - bare).toBe(60)
  expect(counted('application/pdf') - bare).toBe(1200)
})

test('counted slowly it comes to the same, and others have their turn meanwhile', async () => {
  const text = 'one two three four '.repeat(60_000)
  const schema = JSON.stringify({ type: 'object', description: text })
  const large = conversation({
    system: [{ kind: 'text', text: 'short' }],
    turns: [user({ kind: 'text', text }, { kind: 'text', text: 'five' })],
    tools: [{ kind: 'function', name: 'f', description: 'g', schema, strict: undefined }],
  })
  let turns = 0
  let isCounting = true
  const next = (): void => {
    turns++
    if (isCounting) setImmediate(next)
  }
  setImmediate(next)
  const tokens = await countTokensGently(large)
  isCounting = false
  // A word may be cut at each of eight borders.
  expect(Math.abs(tokens - countTokensLocally(large))).toBeLessThanOrEqual(8)
  expect(turns).toBeGreaterThanOrEqual(8)
})
