import { afterAll, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import AnthropicOld from '@anthropic-ai/sdk-0'
import OpenAI from 'openai'
import OpenAIOld from 'openai-6'
import { createTransport } from '../../../test/parts/ask-sandbox.ts'

// The official clients are the judges of the wire format: they read the sandbox over loopback, as they would read the
// providers it stands for.

const transport = createTransport()
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname } = new URL(request.url)
    const path = pathname.endsWith('/chat/completions') ? '/chat/completions' : pathname
    const body = new Uint8Array(await request.arrayBuffer())
    return transport({ path, headers: Object.fromEntries(request.headers), body, signal: request.signal })
  },
})
afterAll(() => server.stop(true))

const options = { apiKey: 'none', maxRetries: 0 }
const openai = { ...options, baseURL: `${server.url.origin}/v1` }
const anthropic = { ...options, baseURL: server.url.origin }
// The older majors have the same methods; their types are not the same only by name.
const chatClients = { 'openai 7': new OpenAI(openai), 'openai 6': new OpenAIOld(openai) as unknown as OpenAI }
const messageClients = {
  'anthropic 1': new Anthropic(anthropic),
  'anthropic 0': new AnthropicOld(anthropic) as unknown as Anthropic,
}

const schema = { type: 'object' as const, required: ['city'], properties: { city: { type: 'string' } } }
const chatTools = ['get_weather', 'get_news'].map((name) => ({
  type: 'function' as const,
  function: { name, parameters: { ...schema, additionalProperties: false }, strict: true },
}))
const messageTools = ['get_weather', 'get_news'].map((name) => ({ name, input_schema: schema }))

/** Texts that make each model show what it can do. */
const cases: [model: string, text: string][] = [
  ['echo', 'hello from the other side of the gate, größe 👍🏽\n'],
  ['tools', 'how is it there'],
  ['tools', 'all of them in parallel'],
  ['think', 'why is it so'],
  ['cache', 'again'],
  ['slow', 'one two three'],
  ['flaky-second', 'hi'],
]

for (const [name, client] of Object.entries(chatClients)) {
  describe(`read by ${name}`, () => {
    test.each(cases)('%s: %s: the stream adds up to the whole reply', async (model, text) => {
      const body = {
        model,
        messages: [{ role: 'user' as const, content: text }],
        tools: model === 'tools' ? chatTools : [],
      }
      const whole = await client.chat.completions.create(body)
      const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } })
      let reasoning = ''
      stream.on('chunk', (chunk) => {
        reasoning += reasoningOf(chunk.choices[0]?.delta)
      })
      const summed = await stream.finalChatCompletion()
      const contentOf = (reply: typeof whole) => {
        const choice = reply.choices[0]
        const calls = choice?.message.tool_calls?.map((call) =>
          call.type === 'function' ? call.function : call.custom,
        )
        return {
          finish: choice?.finish_reason,
          // Beside a call, a whole reply has null and a stream an empty text.
          content: choice?.message.content ?? '',
          calls: named(calls),
          usage: reply.usage,
        }
      }
      expect(contentOf(summed)).toEqual(contentOf(whole))
      expect(reasoning).toBe(reasoningOf(whole.choices[0]?.message))
      expect(reasoning !== '').toBe(model === 'think')
      if (model === 'echo') expect(whole.choices[0]?.message.content).toBe(text)
    })

    test('errors arrive as the exceptions of the client', async () => {
      const send = (model: string) =>
        client.chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }] })
      const fault = async (model: string) => {
        const { status, type, code, requestID } = await send(model).then(
          () => ({}) as InstanceType<typeof OpenAI.APIError>,
          (error) => error,
        )
        expect(requestID).toMatch(/^req_sandbox_/)
        return [status, type, code]
      }
      expect(await fault('throttled')).toEqual([429, 'requests', 'rate_limit_exceeded'])
      expect(await fault('down')).toEqual([503, 'server_error', null])
      expect(await fault('unknown-model')).toEqual([404, 'invalid_request_error', 'model_not_found'])
    })

    test('a stream that breaks off is noticed', async () => {
      const stream = client.chat.completions.stream({
        model: 'breaks-off',
        messages: [{ role: 'user', content: 'a b c d' }],
      })
      let text = ''
      stream.on('content', (delta) => {
        text += delta
      })
      await expect(stream.finalChatCompletion()).rejects.toThrow()
      expect(text).toBe('a b')
    })

    test('a tool loop runs to its end', async () => {
      const tools = chatTools.slice(0, 1)
      const first = await client.chat.completions.create({
        model: 'tools',
        tools,
        messages: [{ role: 'user', content: 'go' }],
      })
      const message = first.choices[0]?.message
      const id = message?.tool_calls?.[0]?.id ?? ''
      expect(id.length).toBeLessThanOrEqual(40)
      const last = await client.chat.completions.create({
        model: 'tools',
        tools,
        messages: [
          { role: 'user', content: 'go' },
          ...(message ? [message] : []),
          { role: 'tool', tool_call_id: id, content: 'it rains' },
        ],
      })
      expect(last.choices[0]?.message.content).toBe('The tool said: it rains')
    })
  })
}

/** A field that the client passes on and does not type. */
function reasoningOf(from: object | undefined): string {
  return from && 'reasoning_content' in from ? String(from.reasoning_content) : ''
}

/** Accumulated calls carry extras of the client's own. */
function named(calls: readonly { name: string; arguments?: string }[] | undefined) {
  return (calls ?? []).map((call) => [call.name, call.arguments])
}

for (const [name, client] of Object.entries(messageClients)) {
  describe(`read by ${name}`, () => {
    test.each(cases)('%s: %s: the stream adds up to the whole reply', async (model, text) => {
      const body = {
        model,
        max_tokens: 1000,
        messages: [{ role: 'user' as const, content: text }],
        ...(model === 'tools' ? { tools: messageTools } : {}),
      }
      const whole = await client.messages.create(body)
      const summed = await client.messages.stream(body).finalMessage()
      // Ids are made from the body, which says whether it streams.
      const contentOf = ({ content, stop_reason, stop_sequence, usage }: typeof whole) => ({
        content: content.map((block) => ({ ...block, id: undefined })),
        stop_reason,
        stop_sequence,
        // 0.137 does not take this total over from the last event.
        usage,
      })
      expect(contentOf(summed)).toEqual(contentOf(whole))
      expect(whole.content.map((block) => block.type)).toEqual(expectedBlocks(model, text))
      if (model === 'echo') expect(whole.content[0]).toMatchObject({ text })
    })

    test('errors arrive as the exceptions of the client', async () => {
      const fault = async (model: string, max_tokens = 9) => {
        const { status, type, requestID } = await client.messages
          .create({ model, max_tokens, messages: [{ role: 'user', content: 'hi' }] })
          .then(
            () => ({}) as InstanceType<typeof Anthropic.APIError>,
            (error) => error,
          )
        expect(requestID).toMatch(/^req_sandbox_/)
        return [status, type]
      }
      expect(await fault('throttled')).toEqual([429, 'rate_limit_error'])
      expect(await fault('down')).toEqual([503, 'overloaded_error'])
      expect(await fault('unknown-model')).toEqual([404, 'not_found_error'])
      expect(await fault('echo', -1)).toEqual([400, 'invalid_request_error'])
    })

    test('a stream that breaks off is noticed', async () => {
      const body = { model: 'breaks-off', max_tokens: 99, messages: [{ role: 'user' as const, content: 'a b c d' }] }
      const stream = client.messages.stream(body)
      let text = ''
      stream.on('text', (delta) => {
        text += delta
      })
      await expect(stream.finalMessage()).rejects.toThrow()
      expect(text).toBe('a b')
    })

    test('thinking and tool results go round', async () => {
      const question = { role: 'user' as const, content: 'why' }
      const thought = await client.messages
        .stream({ model: 'think', max_tokens: 99, messages: [question] })
        .finalMessage()
      const again = await client.messages.create({
        model: 'think',
        max_tokens: 99,
        messages: [question, { role: 'assistant', content: thought.content }, { role: 'user', content: 'and' }],
      })
      expect(again.stop_reason).toBe('end_turn')

      const tools = messageTools.slice(0, 1)
      const first = await client.messages
        .stream({ model: 'tools', max_tokens: 99, tools, messages: [question] })
        .finalMessage()
      const use = first.content[0]
      const id = use?.type === 'tool_use' ? use.id : ''
      const last = await client.messages.create({
        model: 'tools',
        max_tokens: 99,
        tools,
        messages: [
          question,
          { role: 'assistant', content: first.content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'it rains' }] },
        ],
      })
      expect(last.content[0]).toMatchObject({ type: 'text', text: 'The tool said: it rains' })
    })

    test('tokens are counted', async () => {
      const counted = await client.messages.countTokens({
        model: 'echo',
        messages: [{ role: 'user', content: 'hi there' }],
      })
      expect(counted.input_tokens).toBe(6)
    })
  })
}

function expectedBlocks(model: string, text: string): ('text' | 'thinking' | 'tool_use')[] {
  if (model === 'tools') return text.includes('parallel') ? ['tool_use', 'tool_use'] : ['tool_use']
  return model === 'think' ? ['thinking', 'text'] : ['text']
}
