// Batches with Anthropic's API, on both engines: created, polled, cancelled, read and deleted with its clients, and of no concern
// to other workspaces.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { createWallets } from '../money/wallets.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { everyConfig, type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { createMessageClient, messageClientNames } from '../parts/official-clients.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'
import { batchesOn, call, linesIn } from './parts.ts'

const requestOf = (customId: string, model = 'test/messages', more: object = {}) => ({
  custom_id: customId,
  params: { model, max_tokens: 64, messages: [{ role: 'user' as const, content: 'hi\nthere' }], ...more },
})

forEachEngine((engine) => {
  let place: Place
  let gateway: Gateway
  const upstream = startUpstream(answerHello)
  beforeAll(async () => {
    place = await engine.createPlace()
    const database = place.url === undefined ? {} : { DATABASE_URL: place.url }
    const env = { ...batchesOn, ...database }
    gateway = await startGateway({ config: everyConfig(upstream.url), clock: systemClock, env })
  })
  afterAll(() => stopAll(gateway, upstream, place))

  const open = async () => {
    const { key } = await createWallets(gateway).open('1.00')
    return { url: gateway.url, key }
  }

  const untilEnded = async (as: Pick<Gateway, 'url' | 'key'>, id: string) => {
    for (;;) {
      const { body } = await call(as, 'GET', `/messages/batches/${id}`)
      if (body.processing_status === 'ended') return body
      await Bun.sleep(50)
    }
  }

  test.each(messageClientNames)(
    '%s creates, polls, reads, lists and deletes, with a model of every dialect',
    async (name) => {
      const as = await open()
      const { messages } = createMessageClient(name, { baseURL: gateway.url, apiKey: as.key })
      const models = ['test/messages', 'test/chat', 'test/responses', 'test/gemini']
      const created = await messages.batches.create({ requests: models.map((model, at) => requestOf(`r${at}`, model)) })
      expect(created).toMatchObject({
        type: 'message_batch',
        request_counts: { processing: 4, succeeded: 0 },
        results_url: null,
      })
      await untilEnded(as, created.id)
      const ended = await messages.batches.retrieve(created.id)
      expect(ended.request_counts).toEqual({ processing: 0, succeeded: 4, errored: 0, canceled: 0, expired: 0 })
      const found: string[] = []
      for await (const { custom_id, result } of await messages.batches.results(created.id)) {
        found.push(`${custom_id} ${result.type} ${result.type === 'succeeded' ? result.message.model : ''}`)
      }
      expect(found.sort()).toEqual(models.map((model, at) => `r${at} succeeded ${model}`))
      const listed: string[] = []
      for await (const batch of messages.batches.list({ limit: 1 })) listed.push(batch.id)
      expect(listed).toEqual([created.id])
      expect(await messages.batches.delete(created.id)).toEqual({ id: created.id, type: 'message_batch_deleted' })
      expect((await call(as, 'GET', `/messages/batches/${created.id}`)).status).toBe(404)
    },
  )

  test('a cancelled batch says which requests were not run', async () => {
    const as = await open()
    const [free, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    upstream.handle(async (asked, reply) => {
      begun.resolve()
      await free.promise
      await answerHello(asked, reply)
    })
    const requests = Array.from({ length: 20 }, (_, at) => requestOf(`r${at}`))
    const { id } = (await call(as, 'POST', '/messages/batches', { body: { requests } })).body
    await begun.promise
    expect((await call(as, 'GET', `/messages/batches/${id}/results`)).status).toBe(400)
    expect((await call(as, 'DELETE', `/messages/batches/${id}`)).status).toBe(400)
    expect((await call(as, 'POST', `/messages/batches/${id}/cancel`)).body.processing_status).toBe('canceling')
    free.resolve()
    const { request_counts: counts } = await untilEnded(as, id)
    upstream.handle(answerHello, 'stay unasked')
    expect(counts.succeeded + counts.canceled).toBe(20)
    const types = linesIn((await call(as, 'GET', `/messages/batches/${id}/results`)).text).map(
      ({ result }) => result.type,
    )
    expect(types.filter((type) => type === 'canceled')).toHaveLength(counts.canceled)
  })

  test.each<[why: string, requests: object[], param: string]>([
    ['a wrong id', [requestOf('not an id')], 'requests[0].custom_id'],
    ['an id twice', [requestOf('a'), requestOf('a')], 'custom_id'],
    ['an unknown model', [requestOf('a', 'test/none')], 'body.model'],
    ['no requests', [], 'requests'],
    ['a stream', [requestOf('a', 'test/messages', { stream: true })], 'body.stream'],
  ])('a batch with %s is refused', async (_why, requests) => {
    const as = await open()
    const refused = await call(as, 'POST', '/messages/batches', { body: { requests } })
    expect(refused).toMatchObject({ status: 400, body: { type: 'error', error: { type: 'invalid_request_error' } } })
    expect((await call(as, 'GET', '/messages/batches')).body.data).toEqual([])
  })

  test('every id of another workspace is unknown on every path, and so is one of the other API', async () => {
    const as = await open()
    const { id } = (await call(as, 'POST', '/messages/batches', { body: { requests: [requestOf('a')] } })).body
    await untilEnded(as, id)
    const { key } = await open()
    for (const [method, part] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/cancel'],
      ['GET', '/results'],
    ] as const) {
      const foreign = await call(as, method, `/messages/batches/${id}${part}`, { key })
      const unknown = await call(as, method, `/messages/batches/msgbatch_none${part}`, { key })
      const shown = (text: string) => text.replaceAll(id, 'msgbatch_none').replace(/req_\w+/, '')
      expect([foreign.status, shown(foreign.text)]).toEqual([404, shown(unknown.text)])
    }
    expect((await call(as, 'GET', '/messages/batches', { key })).body.data).toEqual([])
    expect((await call(as, 'GET', `/batches/${id}`)).status).toBe(404)
  })
})
