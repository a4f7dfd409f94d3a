import { afterAll, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { startGateway } from '../parts/gateway.ts'
import { createMessageClient, messageClientNames, readError } from '../parts/official-clients.ts'

// Features that only the message clients have: signed thinking, cache lifetimes, counting, beta calls.

const gateway = await startGateway()
afterAll(() => gateway.stop())

const question = { role: 'user' as const, content: 'why is it so' }

for (const name of messageClientNames) {
  describe(name, () => {
    const client = () => createMessageClient(name, { baseURL: gateway.url, apiKey: gateway.key })
    const think = (messages: Anthropic.MessageParam[]) => ({ model: 'sandbox/think', max_tokens: 200, messages })
    const thoughts = {
      whole: () => client().messages.create(think([question])),
      streamed: () =>
        client()
          .messages.stream(think([question]))
          .finalMessage(),
    }

    for (const [mode, thought] of Object.entries(thoughts)) {
      test(`a thought that came ${mode} is taken back with its signature`, async () => {
        const { content } = await thought()
        // Not toMatchObject: with a matcher inside, it would change the block that goes back.
        expect(content[0]?.type === 'thinking' && content[0].signature).toMatch(/./)
        const again = await client().messages.create(
          think([question, { role: 'assistant', content }, { role: 'user', content: 'and then' }]),
        )
        expect(again.content[1]).toMatchObject({ type: 'text', text: 'After some thought: and then' })
        // 4 + 4 asked, 4 + 22 + 8 answered, 4 + 2 asked again; 20 thought and 6 said at $8 per million
        expect(again.usage).toMatchObject({ input_tokens: 48, output_tokens: 26, cost: 0.000256 })
      })

      test(`a thought that came ${mode} and was altered is refused in the provider's own words`, async () => {
        const { content } = await thought()
        const altered = content.map((block) =>
          block.type === 'thinking' ? { ...block, thinking: `${block.thinking}!` } : block,
        )
        const call = client().messages.create(
          think([question, { role: 'assistant', content: altered }, { role: 'user', content: 'and then' }]),
        )
        expect(await readError(name, call)).toMatchObject({
          exception: 'BadRequestError',
          code: 'INVALID_REQUEST',
          text: 'messages.1.content.0: Invalid `signature` in `thinking` block',
        })
      })
    }

    test('a cache of one hour has its own price, whole and streamed', async () => {
      const ask = (word: string) => ({
        model: 'sandbox/cache',
        max_tokens: 100,
        system: [
          {
            type: 'text' as const,
            text: `You are the parrot of ${name.replace(' ', '')}${word} alone`,
            cache_control: { type: 'ephemeral' as const, ttl: '1h' as const },
          },
        ],
        messages: [{ role: 'user' as const, content: 'again' }],
      })
      // 5 in at $1, 7 + 4 written at $2, 1 out at $2 per million
      const whole = await client().messages.create(ask('w'))
      expect(whole.usage).toMatchObject({
        input_tokens: 5,
        cache_creation_input_tokens: 11,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 11 },
        output_tokens: 1,
        cost: 0.000029,
      })
      const stream = client().messages.stream(ask('s'))
      let last: unknown
      stream.on('streamEvent', (event) => {
        if (event.type === 'message_delta') last = event.usage
      })
      await stream.done()
      expect(last).toMatchObject({ cache_creation_input_tokens: 11, output_tokens: 1, cost: 0.000029 })
    })

    test('counts tokens without generating', async () => {
      const call = client().messages.countTokens({
        model: 'sandbox/echo',
        system: 'be brief',
        messages: [{ role: 'user', content: 'hello from the other side of the gate' }],
      })
      const { response } = await call.withResponse()
      // 4 + 2 of system, 4 + 8 of question
      expect(await call).toMatchObject({ input_tokens: 18, _request_id: response.headers.get('request-id') })
      expect(response.headers.get('x-tollgate-cost')).toBeNull()
    })

    test('throws when tokens are counted for a model that is not there', async () => {
      const call = client().messages.countTokens({ model: 'sandbox/nobody', messages: [question] })
      expect(await readError(name, call)).toMatchObject({ exception: 'NotFoundError', code: 'NOT_FOUND' })
    })

    test('beta calls are the same calls, with or without ?beta=true', async () => {
      const sent: string[] = []
      const looking = client().withOptions({
        fetch: (input, init) => {
          const { pathname, search } = new URL(String(input))
          sent.push(`${pathname}${search}`)
          return fetch(input, init)
        },
      })
      const betas = ['some-beta-2026-01-01']
      const ask = { model: 'sandbox/echo', messages: [{ role: 'user' as const, content: 'hi there' }], betas }
      const whole = await looking.beta.messages.create({ ...ask, max_tokens: 100 })
      expect(whole.content[0]).toMatchObject({ type: 'text', text: 'hi there' })
      const streamed = await looking.beta.messages.stream({ ...ask, max_tokens: 100 }).finalMessage()
      expect(streamed).toMatchObject({ model: 'sandbox/echo', content: [{ type: 'text', text: 'hi there' }] })
      expect(await looking.beta.messages.countTokens(ask)).toMatchObject({ input_tokens: 6 })
      const query = name === 'anthropic 0' ? '?beta=true' : ''
      expect(sent).toEqual([`/v1/messages${query}`, `/v1/messages${query}`, `/v1/messages/count_tokens${query}`])
    })
  })
}
