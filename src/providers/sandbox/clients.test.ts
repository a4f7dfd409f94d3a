import { afterAll, describe, expect, test } from 'bun:test'
import { type ClientReply, createTalk, type Tool } from '../../../test/clients/talk.ts'
import { createTransport } from '../../../test/parts/ask-sandbox.ts'
import {
  chatClientNames,
  createMessageClient,
  isChatClient,
  isResponseClient,
  messageClientNames,
  responseClientNames,
} from '../../../test/parts/official-clients.ts'

// The official clients are the judges of the wire format: they read the sandbox over loopback, as they would read the
// providers it stands for.

const transport = createTransport()
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname } = new URL(request.url)
    const path = pathname.startsWith('/v1/messages') ? pathname : pathname.replace('/v1', '')
    const body = new Uint8Array(await request.arrayBuffer())
    return transport({ path, headers: Object.fromEntries(request.headers), body, signal: request.signal })
  },
})
afterAll(() => server.stop(true))
const sandbox = { url: server.url.origin, key: 'none' }

const schema = { type: 'object', required: ['city'], properties: { city: { type: 'string' } } } as const
const tools = ['get_weather', 'get_news'].map((name): Tool => ({ name, description: 'Looks it up.', schema }))

/** Texts that make each model show what it can do, and the tools it calls. */
const cases: [model: string, text: string, calls: string[]][] = [
  ['echo', 'hello from the other side of the gate, größe 👍🏽\n', []],
  ['tools', 'how is it there', ['get_weather']],
  ['tools', 'all of them in parallel', ['get_weather', 'get_news']],
  ['think', 'why is it so', []],
  ['cache', 'again', []],
  ['slow', 'one two three', []],
  ['flaky-second', 'hi', []],
]

/** Ids are made from the body, which says whether it streams. */
const contentOf = ({ text, thinking, calls, stop, tokens }: ClientReply) => ({
  ...{ text, thinking, stop, tokens },
  calls: calls.map(({ name, input }) => ({ name, input })),
})

/** The status, type and code of each error, by family; Messages has no codes. */
const faults: [model: string, status: number, openai: (string | null)[], anthropic: string][] = [
  ['throttled', 429, ['requests', 'rate_limit_exceeded'], 'rate_limit_error'],
  ['down', 503, ['server_error', null], 'overloaded_error'],
  ['unknown-model', 404, ['invalid_request_error', 'model_not_found'], 'not_found_error'],
]

for (const name of [...chatClientNames, ...messageClientNames, ...responseClientNames]) {
  describe(`read by ${name}`, () => {
    const talk = createTalk(name, sandbox)
    const isOpenAi = isResponseClient(name) || isChatClient(name)

    test.each(cases)('%s: %s: the stream adds up to the whole reply', async (model, text, calls) => {
      const ask = { model, turns: [text], ...(calls.length > 0 && { tools }) }
      const whole = await talk(ask, 'whole')
      expect(contentOf(await talk(ask, 'streamed'))).toEqual(contentOf(whole))
      expect(whole.calls.map((call) => call.name)).toEqual(calls)
      expect(whole.thinking !== '').toBe(model === 'think')
      if (model === 'echo') expect(whole.text).toBe(text)
    })

    test.each(faults)('an error of %s is the exception of the client', async (model, status, openai, anthropic) => {
      const error = await talk({ model, turns: ['hi'] }, 'whole').catch((thrown) => thrown)
      expect(error.requestID).toMatch(/^req_sandbox_/)
      expect([error.status, error.type]).toEqual([status, isOpenAi ? openai[0] : anthropic])
      if (isOpenAi) expect(error.code).toBe(openai[1])
    })

    test('a stream that breaks off is noticed', async () => {
      await expect(talk({ model: 'breaks-off', turns: ['a b c d'] }, 'streamed')).rejects.toThrow()
    })

    test('a tool loop runs to its end', async () => {
      const turns = ['go']
      const first = await talk({ model: 'tools', turns, tools: tools.slice(0, 1) }, 'streamed')
      expect(first.calls[0]?.id.length).toBeLessThanOrEqual(40)
      const loop = { model: 'tools', turns: [...turns, first, { results: ['it rains'] }], tools: tools.slice(0, 1) }
      expect((await talk(loop, 'whole')).text).toBe('The tool said: it rains')
    })

    test('thinking can be sent back', async () => {
      const thought = await talk({ model: 'think', turns: ['why'] }, 'streamed')
      const again = await talk({ model: 'think', turns: ['why', thought, 'and'] }, 'whole')
      expect(again.stop).toBe(thought.stop as string)
    })
  })
}

test.each(messageClientNames)('%s: tokens are counted, and a wrong cap is refused', async (name) => {
  const client = createMessageClient(name, { baseURL: sandbox.url, apiKey: sandbox.key })
  const messages = [{ role: 'user' as const, content: 'hi there' }]
  expect((await client.messages.countTokens({ model: 'echo', messages })).input_tokens).toBe(6)
  const error = await client.messages.create({ model: 'echo', max_tokens: -1, messages }).catch((thrown) => thrown)
  expect([error.status, error.type]).toEqual([400, 'invalid_request_error'])
})
