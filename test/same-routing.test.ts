// A model is routed alike on both surfaces, streamed or not: what one of them is served, all are.

import { afterAll, describe, expect, test } from 'bun:test'
import { ask as askGateway } from './parts/ask.ts'
import { startGateway, stopAll } from './parts/gateway.ts'
import { bothSurfaces, messages, type TestSurface } from './parts/surfaces.ts'
import { startUpstream } from './parts/upstream.ts'
import { acmeConfig } from './tenancy/tenancy.ts'

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const whole = (finish?: string) => ({
  id: 'c1',
  object: 'chat.completion',
  created: 5,
  model: 'l',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, ...(finish && { finish_reason: finish }) }],
  usage,
})

const upstream = startUpstream((_, reply) => reply.json(200, whole('stop')))
const gateway = await startGateway({ config: acmeConfig(upstream.url, { plain: 'price: free' }) })

afterAll(() => stopAll(gateway, upstream))

function ask(surface: TestSurface, model: string, more: object = {}, headers: Record<string, string> = {}) {
  const body = { model, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }], ...more }
  return askGateway(gateway, surface, body, headers)
}

for (const surface of bothSurfaces) {
  describe(surface.name, () => {
    test('a stream that was not asked for is collected', async () => {
      const head = { id: 'c1', object: 'chat.completion.chunk', created: 5, model: 'l' }
      const say = (choices: object[], more: object = {}) => `data: ${JSON.stringify({ ...head, choices, ...more })}\n\n`
      upstream.handle(async (_, reply) => {
        await reply.startStream()
        await reply.chunk(say([{ index: 0, delta: { role: 'assistant', content: 'hel' }, finish_reason: null }]))
        await reply.chunk(say([{ index: 0, delta: { content: 'lo' }, finish_reason: 'stop' }]) + say([], { usage }))
        await reply.chunk('data: [DONE]\n\n')
        await reply.finish()
      })
      const response = await ask(surface, 'acme/plain')
      const text = await response.text()
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
      expect(JSON.parse(text)).toMatchObject({ model: 'acme/plain' })
      expect(text).toContain('hello')
      expect(text).toMatch(/"(prompt|input)_tokens":3/)
    })

    for (const stream of [false, true]) {
      test(`a whole reply that does not say how it ended is served${stream ? ' as a stream' : ''}`, async () => {
        upstream.handle((_, reply) => reply.json(200, whole()))
        const response = await ask(surface, 'acme/plain', { stream })
        expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('hello')])
      })
    }
  })
}

test('a strict refusal names the field in the same form, however the header is spelled', async () => {
  upstream.handle((_, reply) => reply.json(200, whole('stop')), 'stay unasked')
  const thinking = { type: 'thinking', thinking: 'hm', signature: 'c2ln'.repeat(30) }
  const history = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: [thinking, { type: 'text', text: 'hello' }] },
    { role: 'user', content: 'more' },
  ]
  for (const spelled of ['true', 'TRUE', 'True']) {
    const response = await ask(messages, 'acme/plain', { messages: history }, { 'x-tollgate-strict': spelled })
    const { error } = (await response.json()) as { error: { message: string } }
    expect([response.status, error.message]).toEqual([400, expect.stringContaining('(messages[1])')])
  }
})
