import { describe, expect, test } from 'bun:test'
import { ask, createTransport, readJson, readRecords, say } from '../../../test/parts/ask-sandbox.ts'

for (const path of ['/chat/completions', '/v1/messages'] as const) {
  const isChat = path === '/chat/completions'

  describe(`failures on demand over ${path}`, () => {
    test('flaky-first fails every other call, flaky-second never', async () => {
      const transport = createTransport()
      const statuses: number[] = []
      for (const model of [
        'flaky-first',
        'flaky-second',
        'flaky-first',
        'flaky-first',
        'flaky-second',
        'flaky-first',
      ]) {
        statuses.push((await ask(transport, path, say(path, model, 'hi'))).status)
      }
      expect(statuses).toEqual([503, 200, 200, 503, 200, 200])
    })

    test('throttled says when to come back', async () => {
      const response = await ask(createTransport(), path, say(path, 'throttled', 'hi', { stream: true }))
      expect([response.status, response.headers.get('retry-after')]).toEqual([429, '12'])
      const { error } = await readJson(response)
      expect(error).toMatchObject(
        isChat ? { type: 'requests', code: 'rate_limit_exceeded', param: null } : { type: 'rate_limit_error' },
      )
    })

    test('down is down, every time', async () => {
      const transport = createTransport()
      for (let call = 0; call < 3; call += 1) {
        const response = await ask(transport, path, say(path, 'down', 'hi'))
        expect([response.status, response.headers.get('retry-after')]).toEqual([503, null])
        const { error } = await readJson(response)
        expect(error.type).toBe(isChat ? 'server_error' : 'overloaded_error')
      }
    })

    test('breaks-off ends in the middle, without the mark that means done', async () => {
      const records = await readRecords(
        await ask(createTransport(), path, say(path, 'breaks-off', 'a b c d', { stream: true })),
      )
      const bodies = records.map(({ data }) => JSON.parse(data))
      const text = bodies.map((body) => (isChat ? (body.choices[0].delta.content ?? '') : (body.delta?.text ?? '')))
      expect(text.join('')).toBe('a b')
      const endings = bodies.filter((body) => (isChat ? body.choices[0].finish_reason : body.type === 'message_delta'))
      expect(endings).toEqual([])
    })

    test('breaks-off without a stream cuts the body in mid-JSON', async () => {
      const response = await ask(createTransport(), path, say(path, 'breaks-off', 'a b c d'))
      const text = await response.text()
      expect(response.status).toBe(200)
      expect(text.startsWith('{"id":"')).toBe(true)
      expect(() => JSON.parse(text)).toThrow()
    })
  })

  describe(`slow over ${path}`, () => {
    async function waits(body: object): Promise<number[]> {
      const waited: number[] = []
      const transport = createTransport(async (ms) => void waited.push(ms))
      await (await ask(transport, path, body)).text()
      return waited
    }

    test('waits 1.5 s, then 150 ms between words', async () => {
      expect(await waits(say(path, 'slow', 'one two three', { stream: true }))).toEqual([1500, 150, 150])
    })

    test('waits as long in all without a stream', async () => {
      expect(await waits(say(path, 'slow', 'one two three'))).toEqual([1800])
    })

    test.each([
      ['wait 5s', 5000],
      ['please Wait 250 ms', 250],
      ['wait 2.5s', 2500],
      ['wait 999s', 120_000],
      ['await 5s', 1500],
    ])('%s: the first event after %d ms', async (text, ms) => {
      expect((await waits(say(path, 'slow', text, { stream: true })))[0]).toBe(ms)
    })

    test('nothing at all is sent before the first wait', async () => {
      const never = createTransport(
        (_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
      )
      const response = await ask(never, path, say(path, 'slow', 'hi', { stream: true }))
      const reader = (response.body as ReadableStream<Uint8Array>).getReader()
      const read = reader.read().then(() => 'read')
      expect(await Promise.race([read, Bun.sleep(0).then(() => 'nothing')])).toBe('nothing')
      await reader.cancel()
    })
  })
}
