import { afterAll, describe, expect, test } from 'bun:test'
import { startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import {
  chatClientNames,
  createChatClient,
  createMessageClient,
  messageClientNames,
  readError,
} from '../parts/official-clients.ts'
import { startUpstream, type UpstreamCall } from '../parts/upstream.ts'

// A stream that ends before its end, from either side: the provider breaks off, or the client has had enough.

const upstream = startUpstream(() => {})
const gateway = await startGateway({ config: upstreamConfig(upstream.url) })
afterAll(() => stopAll(gateway, upstream))

const words = 'one two three four'
/** The first word comes at once, the others 150 ms apart: time enough to leave in between. */
const slowWords = 'wait 1ms one two three four five six seven eight nine ten'

/** Resolves when the gateway has written down that this client left. */
async function recordedAsLeft(requestId: string | null | undefined): Promise<Record<string, unknown>> {
  expect(requestId).toMatch(/^req_/)
  for (;;) {
    const record = gateway.logged().find((line) => line.request_id === requestId)
    if (record) return record
    await Bun.sleep(5)
  }
}

/** The next call that reaches the provider, which will never answer it. */
function nextCall(): Promise<UpstreamCall> {
  return new Promise((resolve) => upstream.handle((call) => resolve(call)))
}

const interrupted = {
  exception: 'APIError',
  status: undefined,
  code: 'STREAM_INTERRUPTED',
  type: 'api_error',
  requestId: expect.stringMatching(/^req_/),
  text: expect.stringContaining('Provider sandbox closed the stream'),
}

for (const name of chatClientNames) {
  describe(name, () => {
    const client = () => createChatClient(name, { baseURL: `${gateway.url}/v1`, apiKey: gateway.key })
    const messages = (content: string) => [{ role: 'user' as const, content }]

    test('the accumulator throws when the provider breaks off, after what was said', async () => {
      const stream = client().chat.completions.stream({ model: 'sandbox/breaks-off', messages: messages(words) })
      let text = ''
      stream.on('content', (delta) => {
        text += delta
      })
      expect(await readError(name, stream.finalChatCompletion())).toMatchObject(interrupted)
      expect(text).toBe('one two')
    })

    test('plain iteration throws when the provider breaks off', async () => {
      const body = { model: 'sandbox/breaks-off', messages: messages(words), stream: true as const }
      const { data: stream, request_id } = await client().chat.completions.create(body).withResponse()
      let text = ''
      const reading = (async () => {
        for await (const chunk of stream) {
          expect(chunk.model).toBe('sandbox/breaks-off')
          text += chunk.choices[0]?.delta.content ?? ''
        }
      })()
      expect(await readError(name, reading)).toMatchObject({ ...interrupted, requestId: request_id })
      expect(text).toBe('one two')
    })

    test('a reply that breaks off unstreamed is one that no route could serve', async () => {
      const call = client().chat.completions.create({ model: 'sandbox/breaks-off', messages: messages(words) })
      expect(await readError(name, call)).toMatchObject({ exception: 'NotFoundError', code: 'NOT_FOUND' })
    })

    test('leaving a slow stream ends it, and the gateway notices', async () => {
      const body = { model: 'sandbox/slow', messages: messages(slowWords), stream: true as const }
      const { data: stream, request_id } = await client().chat.completions.create(body).withResponse()
      let text = ''
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? ''
        if (text !== '') stream.controller.abort()
      }
      expect(text).toBe('wait')
      expect(await recordedAsLeft(request_id)).toMatchObject({ status: 499, model: 'sandbox/slow', stream: true })
    })

    test('aborting the accumulator of a slow stream throws the abort', async () => {
      const stream = client().chat.completions.stream({ model: 'sandbox/slow', messages: messages(slowWords) })
      stream.once('content', () => stream.abort())
      expect((await readError(name, stream.finalChatCompletion())).exception).toBe('APIUserAbortError')
    })

    test('aborting an unstreamed call ends the call to the provider', async () => {
      const arrived = nextCall()
      const leaving = new AbortController()
      const answer = client().chat.completions.create(
        { model: 'test/chat', messages: messages('never') },
        { signal: leaving.signal },
      )
      const error = readError(name, answer)
      const call = await arrived
      leaving.abort()
      expect((await error).exception).toBe('APIUserAbortError')
      await call.closed
    })
  })
}

for (const name of messageClientNames) {
  describe(name, () => {
    const client = () => createMessageClient(name, { baseURL: gateway.url, apiKey: gateway.key })
    const body = (model: string, content: string) => ({
      model,
      max_tokens: 100,
      messages: [{ role: 'user' as const, content }],
    })

    test('the accumulator throws when the provider breaks off, after what was said', async () => {
      const stream = client().messages.stream(body('sandbox/breaks-off', words))
      let text = ''
      stream.on('text', (delta) => {
        text += delta
      })
      const error = await readError(name, stream.finalMessage())
      expect(error).toMatchObject({ ...interrupted, requestId: stream.request_id })
      expect(text).toBe('one two')
    })

    test('plain iteration throws when the provider breaks off', async () => {
      const call = client().messages.create({ ...body('sandbox/breaks-off', words), stream: true })
      const { data: stream, request_id } = await call.withResponse()
      const types: string[] = []
      const reading = (async () => {
        for await (const event of stream) types.push(event.type)
      })()
      expect(await readError(name, reading)).toMatchObject({ ...interrupted, requestId: request_id })
      expect(types).not.toContain('message_stop')
    })

    test('a reply that breaks off unstreamed is one that no route could serve', async () => {
      const call = client().messages.create(body('sandbox/breaks-off', words))
      expect(await readError(name, call)).toMatchObject({ exception: 'NotFoundError', code: 'NOT_FOUND' })
    })

    test('leaving a slow stream ends it, and the gateway notices', async () => {
      const stream = client().messages.stream(body('sandbox/slow', slowWords))
      stream.once('text', () => stream.abort())
      expect((await readError(name, stream.finalMessage())).exception).toBe('APIUserAbortError')
      expect(await recordedAsLeft(stream.request_id)).toMatchObject({ status: 499, model: 'sandbox/slow' })
    })

    test('aborting an unstreamed call ends the call to the provider', async () => {
      const arrived = nextCall()
      const leaving = new AbortController()
      const answer = client().messages.create(body('test/messages', 'never'), { signal: leaving.signal })
      const error = readError(name, answer)
      const call = await arrived
      leaving.abort()
      expect((await error).exception).toBe('APIUserAbortError')
      await call.closed
    })
  })
}
