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
const ids = ['breaks-off', 'cache', 'down', 'echo', 'flaky', 'slow', 'think', 'throttled', 'tools'].map(
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
        expect(model).toMatchObject({ type: 'model', max_input_tokens: 128_000, max_tokens: 64_000 })
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
        ['sandbox/flaky', 'sandbox/slow'],
        ['sandbox/think', 'sandbox/throttled'],
        ['sandbox/tools'],
      ])
    })

    test('walks on from a model, and back from one', async () => {
      expect(await collect({ limit: 2, after_id: 'sandbox/slow' })).toEqual([
        ['sandbox/think', 'sandbox/throttled'],
        ['sandbox/tools'],
      ])
      expect(await collect({ limit: 2, before_id: 'sandbox/flaky' })).toEqual([
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
