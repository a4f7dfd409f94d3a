import { afterAll, describe, expect, test } from 'bun:test'
import { startGateway } from '../parts/gateway.ts'
import {
  chatClientNames,
  createChatClient,
  createMessageClient,
  messageClientNames,
  readError,
} from '../parts/official-clients.ts'

const gateway = await startGateway()
afterAll(() => gateway.stop())

/** Sorted by id. */
const ids = ['breaks-off', 'cache', 'down', 'echo', 'embed', 'flaky', 'slow', 'think', 'throttled', 'tools'].map(
  (name) => `sandbox/${name}`,
)
const unknownModel = {
  exception: 'NotFoundError',
  status: 404,
  code: 'NOT_FOUND',
  type: 'not_found_error',
  text: expect.stringMatching(/^No model `sandbox\/ecko`\. Did you mean `sandbox\/echo`/),
  requestId: expect.stringMatching(/^req_/),
}

for (const name of chatClientNames) {
  describe(name, () => {
    const client = () => createChatClient(name, { baseURL: `${gateway.url}/v1`, apiKey: gateway.key })

    test('lists every model at once, sorted by id', async () => {
      const page = await client().models.list()
      expect(page.data.map((model) => model.id)).toEqual(ids)
      expect(page.hasNextPage()).toBe(false)
      for (const model of page.data) expect(model).toMatchObject({ object: 'model', owned_by: 'sandbox' })
    })

    test('retrieves one by its id, which the client sends with %2F', async () => {
      const paths: string[] = []
      const looking = client().withOptions({
        fetch: (input, init) => {
          paths.push(new URL(String(input)).pathname)
          return fetch(input, init)
        },
      })
      const model = await looking.models.retrieve('sandbox/echo')
      expect(paths).toEqual(['/v1/models/sandbox%2Fecho'])
      expect(model).toMatchObject({ id: 'sandbox/echo', object: 'model', owned_by: 'sandbox' })
    })

    test('throws for a model that is not there, and names the nearest', async () => {
      const error = await readError(name, client().models.retrieve('sandbox/ecko'))
      expect(error).toMatchObject({ ...unknownModel, param: 'model' })
    })

    test('throws for a wrong key', async () => {
      const error = await readError(name, client().withOptions({ apiKey: 'sk-wrong' }).models.list())
      expect(error).toMatchObject({ exception: 'AuthenticationError', code: 'UNAUTHORIZED' })
    })
  })
}

for (const name of messageClientNames) {
  describe(name, () => {
    const client = () => createMessageClient(name, { baseURL: gateway.url, apiKey: gateway.key })
    const collect = async (query: { limit?: number; after_id?: string; before_id?: string }) => {
      const pages: string[][] = []
      const first = await client().models.list(query)
      for await (const page of first.iterPages()) {
        pages.push(page.data.map((model) => model.id))
        expect([page.first_id, page.last_id]).toEqual([page.data[0]?.id ?? null, page.data.at(-1)?.id ?? null])
      }
      return pages
    }

    test('lists every model, with the fields of this family', async () => {
      const page = await client().models.list()
      expect(page.data.map((model) => model.id)).toEqual(ids)
      expect(page.has_more).toBe(false)
      for (const model of page.data) {
        const isEmbedding = model.id === 'sandbox/embed'
        const sizes = { max_input_tokens: isEmbedding ? 8192 : 128_000, max_tokens: isEmbedding ? null : 64_000 }
        expect(model).toMatchObject({ type: 'model', ...sizes })
        expect(model.display_name).toStartWith('Sandbox ')
        expect(model.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
      }
    })

    test('walks through all of them two at a time', async () => {
      const seen: string[] = []
      for await (const model of client().models.list({ limit: 2 })) seen.push(model.id)
      expect(seen).toEqual(ids)
      expect(await collect({ limit: 2 })).toEqual([
        ['sandbox/breaks-off', 'sandbox/cache'],
        ['sandbox/down', 'sandbox/echo'],
        ['sandbox/embed', 'sandbox/flaky'],
        ['sandbox/slow', 'sandbox/think'],
        ['sandbox/throttled', 'sandbox/tools'],
      ])
    })

    test('walks on from a model, and back from one', async () => {
      expect(await collect({ limit: 2, after_id: 'sandbox/slow' })).toEqual([
        ['sandbox/think', 'sandbox/throttled'],
        ['sandbox/tools'],
      ])
      expect(await collect({ limit: 2, before_id: 'sandbox/embed' })).toEqual([
        ['sandbox/down', 'sandbox/echo'],
        ['sandbox/breaks-off', 'sandbox/cache'],
      ])
      expect(await collect({ after_id: 'sandbox/tools' })).toEqual([[]])
    })

    test.each([0, 1001, 1.5])('refuses a page of %p', async (limit) => {
      const error = await readError(name, client().models.list({ limit }))
      expect(error).toMatchObject({ exception: 'BadRequestError', code: 'INVALID_REQUEST' })
      expect(error.text).toContain('`limit`')
    })

    test('retrieves one by its id', async () => {
      const model = await client().models.retrieve('sandbox/echo')
      expect(model).toMatchObject({ type: 'model', id: 'sandbox/echo', display_name: 'Sandbox Echo' })
    })

    test('throws for a model that is not there, and names the nearest', async () => {
      expect(await readError(name, client().models.retrieve('sandbox/ecko'))).toMatchObject(unknownModel)
    })

    test('throws for a wrong key', async () => {
      const error = await readError(name, client().withOptions({ apiKey: 'sk-wrong' }).models.list())
      expect(error).toMatchObject({ exception: 'AuthenticationError', code: 'UNAUTHORIZED' })
    })
  })
}

// Base-URL habits differ: some clients want /v1 in it, some add it themselves, and people guess. Each guess works.

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

const spellings = [
  ['/v1/models/sandbox/echo', 'a raw slash'],
  ['/v1/models/sandbox%2Fecho', '%2F'],
  ['/v1/models/sandbox%2fecho', '%2f'],
  ['/models/sandbox/echo?beta=true', 'no /v1 and a query'],
  ['/v1/v1/models/sandbox%2Fecho', 'a doubled /v1'],
] as const

test.each(spellings)('%s finds the model (%s)', async (path) => {
  const response = await fetch(gateway.url + path, { headers: { 'x-api-key': gateway.key } })
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ id: 'sandbox/echo' })
})

describe('the fields of a model that clients read', () => {
  const config = `
providers:
  - { id: acme, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: k }
models:
  - id: acme/large
    name: Acme Large
    description: For long documents.
    owned_by: acme
    released: "2026-03-01"
    context_tokens: 200000
    max_output_tokens: 32000
    tags: [tools, vision, reasoning, json, caching]
    price: { input: "2.50", output: "10.00", cache_read: "0.25", cache_write: "3.125", over: { "128000": { input: "5.00", output: "15.00" } } }
    routes: [{ provider: acme, model: l }]
  - { id: acme/plain, price: { input: "0.035", output: "0", tiers: { flex: { input: "0.02", output: "0" }, batch: { input: "0.01", output: "0" } } }, routes: [{ provider: acme, model: p }] }
`
  const get = async (path: string, headers = {}) => {
    const own = await startGateway({ config, env: { TOLLGATE_SANDBOX: 'off' } })
    const startedAt = Date.now()
    const response = await fetch(own.url + path, { headers: { authorization: `Bearer ${own.key}`, ...headers } })
    // biome-ignore lint/suspicious/noExplicitAny: the tests look into it.
    const body = (await response.json()) as any
    await own.stop()
    return { status: response.status, body, startedAt }
  }

  test("has OpenRouter's fields beside ours, with prices per token as decimal strings", async () => {
    const { body, startedAt } = await get('/v1/models')
    const [large, plain] = body.data
    expect(large).toEqual({
      ...{ id: 'acme/large', object: 'model', owned_by: 'acme', name: 'Acme Large' },
      description: 'For long documents.',
      // 2026-03-01T00:00:00Z.
      created: 1_772_323_200,
      context_length: 200_000,
      max_output_tokens: 32_000,
      architecture: {
        modality: 'text+image->text',
        input_modalities: ['text', 'image'],
        output_modalities: ['text'],
      },
      pricing: {
        prompt: '0.0000025',
        completion: '0.00001',
        input_cache_read: '0.00000025',
        input_cache_write: '0.000003125',
      },
      top_provider: { context_length: 200_000, max_completion_tokens: 32_000 },
      supported_parameters: [
        ...['include_reasoning', 'max_tokens', 'parallel_tool_calls', 'reasoning', 'reasoning_effort'],
        ...['response_format', 'stop', 'structured_outputs', 'temperature', 'tool_choice', 'tools', 'top_p'],
      ],
    })
    expect(plain).not.toHaveProperty('description')
    expect(plain).toMatchObject({ context_length: null, pricing: { prompt: '0.000000035', completion: '0' } })
    // Nobody can ask for the tier of providers' batches.
    expect(Object.keys(plain.pricing.service_tiers)).toEqual(['flex'])
    expect(plain.pricing.service_tiers.flex).toMatchObject({ prompt: '0.00000002', completion: '0' })
    expect(large.pricing).not.toHaveProperty('service_tiers')
    // Its release is not known, so it is the time at which the gateway learned its price.
    expect(Math.abs(plain.created * 1000 - startedAt)).toBeLessThan(600_000)
  })

  test("has them in Anthropic's list too", async () => {
    const { body } = await get('/v1/models', { 'anthropic-version': '2023-06-01' })
    expect(body.data[0]).toMatchObject({
      ...{ type: 'model', display_name: 'Acme Large', created_at: '2026-03-01T00:00:00.000Z' },
      description: 'For long documents.',
      ...{ max_input_tokens: 200_000, max_tokens: 32_000, context_length: 200_000 },
    })
  })

  test.each(['/v1/model/info', '/model/info'])("%s has LiteLLM's shape, with prices as numbers", async (path) => {
    const { status, body } = await get(path)
    expect(status).toBe(200)
    expect(body.data.map(({ model_name: name }: { model_name: string }) => name)).toEqual(['acme/large', 'acme/plain'])
    expect(body.data[0]).toMatchObject({
      litellm_params: { model: 'acme/large' },
      model_info: {
        ...{ mode: 'chat', litellm_provider: 'acme', max_input_tokens: 200_000, max_output_tokens: 32_000 },
        ...{ input_cost_per_token: 0.0000025, output_cost_per_token: 0.00001 },
        ...{ cache_read_input_token_cost: 2.5e-7, cache_creation_input_token_cost: 0.000003125 },
        ...{ supports_vision: true, supports_function_calling: true, supports_prompt_caching: true },
        supports_reasoning: true,
      },
    })
    expect(body.data[1].model_info).toMatchObject({ input_cost_per_token_flex: 2e-8, output_cost_per_token_flex: 0 })
    expect(body.data[1].model_info).not.toHaveProperty('input_cost_per_token_batch')
  })
})
