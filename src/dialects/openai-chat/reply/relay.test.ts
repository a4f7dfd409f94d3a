import { describe, expect, test } from 'bun:test'
import { context as renderContext } from '../../../../test/parts/reply-events.ts'
import { ChatStreamRelay, isMeaningfulChunk, outputMeter } from './relay.ts'

describe('streams', () => {
  const encoder = new TextEncoder()

  function relayOf(choices = 1): ChatStreamRelay {
    return new ChatStreamRelay({ ...renderContext, modelJson: encoder.encode('"a/b"'), envelope: { choices } })
  }

  const chunk = (members: string) => `data: {"id":"c1","created":1,"model":"a/b",${members}}\n\n`
  const choice = (index: number, rest: string) => chunk(`"choices":[{"index":${index},"delta":{},${rest}}]`)
  const says = chunk('"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]')
  const counted = chunk('"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":9,"total_tokens":12}')

  describe('a stream that closes without [DONE]', () => {
    test('is complete once its answer said how it ended, and is paid as reported', () => {
      const relay = relayOf()
      relay.push(encoder.encode(says + choice(0, '"finish_reason":"stop"') + counted))
      expect(relay.finished).toBe(false)
      expect(relay.end().length).toBe(0)
      expect(relay.finished).toBe(true)
      expect(Buffer.from(relay.terminal).toString()).toBe('data: [DONE]\n\n')
      expect(relay.usage).toMatchObject({ inputTokens: 3, outputTokens: 9, source: 'reported' })
    })

    test('gets an estimate where nothing was counted: two bytes are one token', () => {
      const relay = relayOf()
      relay.push(encoder.encode(says + choice(0, '"finish_reason":"length"')))
      const own = JSON.parse(Buffer.from(relay.end()).toString().slice('data: '.length))
      expect(own).toMatchObject({ id: 'c1', choices: [], usage: { prompt_tokens: 42, completion_tokens: 1 } })
      expect([relay.finished, relay.usage?.source]).toEqual([true, 'estimated'])
    })

    test('is complete also where the last record lacks its blank line', () => {
      const relay = relayOf()
      relay.push(encoder.encode(says + choice(0, '"finish_reason":"stop"').trimEnd()))
      relay.end()
      expect(relay.finished).toBe(true)
    })

    test.each([
      ['said nothing of an end', 1, says],
      ['ended with an error', 1, says + choice(0, '"finish_reason":"error"')],
      ['ended one of two answers', 2, says + choice(0, '"finish_reason":"stop"')],
      ['ended the same answer twice', 2, choice(0, '"finish_reason":"stop"') + choice(0, '"finish_reason":"stop"')],
    ])('is broken where it %s', (_, choices, sent) => {
      const relay = relayOf(choices)
      relay.push(encoder.encode(sent))
      relay.end()
      expect([relay.finished, relay.terminal.length]).toEqual([false, 0])
    })

    test('is complete when both of two answers are', () => {
      const relay = relayOf(2)
      relay.push(encoder.encode(says + choice(1, '"finish_reason":"stop"') + choice(0, '"finish_reason":"stop"')))
      relay.end()
      expect(relay.finished).toBe(true)
    })
  })
})

describe('meaningful chunks', () => {
  const chunk = (delta: object) => JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })

  function bytesOf(json: string): number {
    const bytes = new TextEncoder().encode(json)
    return outputMeter.count(bytes, 0, bytes.length)
  }

  test('audio is output, and its transcript is counted', () => {
    const spoken = chunk({ audio: { id: 'audio_1', transcript: 'hello you', data: 'UklGRg==' } })
    expect(isMeaningfulChunk(spoken)).toBe(true)
    expect(bytesOf(spoken)).toBe('hello you'.length)
  })

  test('an image in a chunk is meaningful output', () => {
    const picture = chunk({ images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }] })
    expect(isMeaningfulChunk(picture)).toBe(true)
    expect(isMeaningfulChunk(chunk({ images: [] }))).toBe(false)
  })
})
