import { describe, expect, test } from 'bun:test'
import { ask, createTransport, readJson, say } from '../../../test/parts/ask-sandbox.ts'
import { signThinking } from './thinking-signature.ts'

describe('signed thinking', () => {
  const path = '/v1/messages'
  const replay = (thinking: object) => ({
    ...say(path, 'think', ''),
    messages: [
      { role: 'user', content: 'why' },
      { role: 'assistant', content: [thinking, { type: 'text', text: 'because' }] },
      { role: 'user', content: 'and then' },
    ],
  })

  async function thoughtOf(more: object = {}) {
    const json = await readJson(await ask(createTransport(), path, say(path, 'think', 'why', more)))
    return json.content[0]
  }

  test('comes back unchanged and is accepted', async () => {
    const response = await ask(createTransport(), path, replay(await thoughtOf()))
    expect(response.status).toBe(200)
  })

  test.each(['altered', 'missing'])('a signature that is %s is refused in the words of Anthropic', async (how) => {
    const { signature, ...thought } = await thoughtOf()
    const block = how === 'missing' ? thought : { ...thought, thinking: `${thought.thinking} or not`, signature }
    const response = await ask(createTransport(), path, replay(block))
    const json = await readJson(response)
    expect(response.status).toBe(400)
    expect(json.error.type).toBe('invalid_request_error')
    expect(json.error.message).toBe('messages.1.content.0: Invalid `signature` in `thinking` block')
  })

  test('has a signature without text where the text is not wanted', async () => {
    const thought = await thoughtOf({ thinking: { type: 'adaptive', display: 'omitted' } })
    expect(thought).toEqual({ type: 'thinking', thinking: '', signature: signThinking('') })
    expect((await ask(createTransport(), path, replay(thought))).status).toBe(200)
  })

  test('is `sandbox.` and an HMAC of 32 bytes', () => {
    expect(signThinking('a')).toMatch(/^sandbox\.[A-Za-z0-9_-]{43}$/)
    expect(signThinking('a')).not.toBe(signThinking('b'))
  })
})
