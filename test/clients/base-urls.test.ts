import { afterAll, describe, expect, test } from 'bun:test'
import { startGateway } from '../parts/gateway.ts'
import {
  chatClientNames,
  createChatClient,
  createMessageClient,
  messageClientNames,
} from '../parts/official-clients.ts'

// Base-URL habits differ: some clients want /v1 in it, some add it themselves, and people guess. Each guess works.

const gateway = await startGateway()
afterAll(() => gateway.stop())

const ask = { model: 'sandbox/echo', messages: [{ role: 'user' as const, content: 'hi there' }] }

for (const name of chatClientNames) {
  describe(name, () => {
    test.each(['', '/', '/v1', '/v1/', '/v1/v1'])('works with the base URL http://gateway%s', async (end) => {
      const client = createChatClient(name, { baseURL: `${gateway.url}${end}`, apiKey: gateway.key })
      const whole = await client.chat.completions.create(ask)
      expect(whole.choices[0]?.message.content).toBe('hi there')
      const streamed = await client.chat.completions.stream(ask).finalChatCompletion()
      expect(streamed.choices[0]?.message.content).toBe('hi there')
      expect((await client.models.list()).data).toHaveLength(10)
      expect((await client.models.retrieve('sandbox/echo')).id).toBe('sandbox/echo')
    })
  })
}

for (const name of messageClientNames) {
  describe(name, () => {
    test.each(['', '/', '/v1', '/v1/'])('works with the base URL http://gateway%s', async (end) => {
      const client = createMessageClient(name, { baseURL: `${gateway.url}${end}`, apiKey: gateway.key })
      const whole = await client.messages.create({ ...ask, max_tokens: 9 })
      expect(whole.content).toMatchObject([{ type: 'text', text: 'hi there' }])
      const streamed = await client.messages.stream({ ...ask, max_tokens: 9 }).finalMessage()
      expect(streamed.content).toMatchObject([{ type: 'text', text: 'hi there' }])
      expect((await client.messages.countTokens(ask)).input_tokens).toBe(6)
      expect((await client.models.list()).data).toHaveLength(10)
      expect((await client.models.retrieve('sandbox/echo')).id).toBe('sandbox/echo')
    })
  })
}

const models = [
  ['/v1/models/sandbox/echo', 'a raw slash'],
  ['/v1/models/sandbox%2Fecho', '%2F'],
  ['/v1/models/sandbox%2fecho', '%2f'],
  ['/models/sandbox/echo?beta=true', 'no /v1 and a query'],
  ['/v1/v1/models/sandbox%2Fecho', 'a doubled /v1'],
] as const

test.each(models)('%s finds the model (%s)', async (path) => {
  const response = await fetch(gateway.url + path, { headers: { 'x-api-key': gateway.key } })
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ id: 'sandbox/echo' })
})
