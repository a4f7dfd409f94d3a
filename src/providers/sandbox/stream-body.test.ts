import { describe, expect, test } from 'bun:test'
import { ask, createTransport, say } from '../../../test/parts/ask-sandbox.ts'

const surfaces = ['/chat/completions', '/v1/messages'] as const

describe('an ending before the end', () => {
  /** Waits until the reader goes away, like a provider that has fallen silent. */
  const silent = () =>
    createTransport((_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())))

  test.each(surfaces)('%s: the signal makes a waiting read fail with its reason', async (path) => {
    const controller = new AbortController()
    const response = await ask(silent(), path, say(path, 'slow', 'hi', { stream: true }), controller.signal)
    const reading = response.text()
    controller.abort(new Error('gone'))
    await expect(reading).rejects.toThrow('gone')
  })

  test.each(surfaces)('%s: the signal ends a stream that nobody reads', async (path) => {
    const controller = new AbortController()
    const response = await ask(silent(), path, say(path, 'echo', 'hi', { stream: true }), controller.signal)
    controller.abort(new Error('gone'))
    await Bun.sleep(0)
    await expect(response.text()).rejects.toThrow('gone')
  })

  test.each(surfaces)('%s: cancelling wakes the wait', async (path) => {
    let woken = false
    const transport = createTransport(
      (_, signal) =>
        new Promise((resolve) =>
          signal.addEventListener('abort', () => {
            woken = true
            resolve()
          }),
        ),
    )
    const response = await ask(transport, path, say(path, 'slow', 'hi', { stream: true }))
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const read = reader.read()
    await reader.cancel()
    expect(await read).toEqual({ done: true, value: undefined })
    expect(woken).toBe(true)
  })

  test.each(surfaces)('%s: an abort after the end changes nothing', async (path) => {
    const controller = new AbortController()
    const response = await ask(createTransport(), path, say(path, 'echo', 'hi', { stream: true }), controller.signal)
    const text = await response.text()
    controller.abort()
    expect(text).toContain(path === '/v1/messages' ? 'message_stop' : '[DONE]')
  })

  test.each(surfaces)('%s: without a stream the call itself fails with the reason', async (path) => {
    const controller = new AbortController()
    const asking = ask(silent(), path, say(path, 'slow', 'hi'), controller.signal)
    controller.abort(new Error('gone'))
    await expect(asking).rejects.toThrow('gone')
    await expect(ask(silent(), path, say(path, 'echo', 'hi'), controller.signal)).rejects.toThrow('gone')
  })

  test('a stream is made as it is read, not ahead of the reader', async () => {
    let pulled = 0
    const transport = createTransport(async () => {
      pulled += 1
    })
    const response = await ask(
      transport,
      '/chat/completions',
      say('/chat/completions', 'slow', 'a b c d e', { stream: true }),
    )
    await Bun.sleep(0)
    expect(pulled).toBe(0)
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    expect(pulled).toBe(1)
    await reader.cancel()
  })
})
