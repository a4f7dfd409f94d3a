// Prices that change while the gateway runs: what runs is billed at the price it began with, the next request at the new
// one, and every version stays on record.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { isoTime } from '../../src/kernel/clock.ts'
import { forEachEngine } from '../parts/engines.ts'
import { allSurfaces } from '../parts/surfaces.ts'
import type { UpstreamReply } from '../parts/upstream.ts'
import { usageIn, wordsOf } from '../parts/upstream-words.ts'
import { createStepClock, type StepClock } from '../tenancy/step-clock.ts'
import { ask, until } from '../tenancy/tenancy.ts'
import { configOf, explained, openPriced, type PricedGateway, used } from './priced-gateway.ts'

const cheap = { input: '1.00', output: '2.00' }
const dear = { input: '5.00', output: '8.00' }
const usage = usageIn('chat', used)
const words = wordsOf('chat')
/** 130 in at $1 and 50 out at $2 per million; the same at $5 and $8. */
const costs = { cheap: '0.00023', dear: '0.00105' }

forEachEngine((engine) => {
  let priced: PricedGateway
  let clock: StepClock
  beforeAll(async () => {
    clock = createStepClock('2027-01-15T08:00:00Z')
    priced = await openPriced({ engine, clock })
  })
  afterAll(() => priced[Symbol.asyncDispose]())

  /** One running stream on each surface; answers with the way to end them and to read their ids. */
  async function startStreams(model: string) {
    const { tenancy, upstream, tenant } = priced
    const begun: UpstreamReply[] = []
    const usual = upstream.calls.length
    upstream.handle(async (_, reply) => {
      await reply.startStream()
      await reply.chunk(words.opening({ usage }) + words.text('first'))
      begun.push(reply)
    })
    const responses = await Promise.all(
      allSurfaces.map((surface) => ask(tenancy.gateway.url, surface, tenant.key, model, { stream: true })),
    )
    expect(upstream.calls.length - usual).toBe(allSurfaces.length)
    upstream.handle((_, reply) => reply.json(200, words.whole({ texts: ['hello'], usage })))
    return async () => {
      for (const reply of begun) {
        await reply.chunk(words.text('last') + words.ending({ usage }))
        await reply.finish()
      }
      for (const response of responses) await response.text()
      return responses.map(({ headers }) => headers.get('x-request-id') ?? '')
    }
  }

  test('requests that run are billed at the old price, the next ones at the new one', async () => {
    const model = 'acme/running'
    expect((await priced.put(model, cheap)).status).toBe(200)
    const since = isoTime(clock.now())
    const finish = await startStreams(model)
    clock.turn(1000)
    expect((await priced.put(model, dear)).body).toMatchObject({ price: dear, version: `${model}#2`, warnings: [] })
    const next = await priced.generate(model)
    expect([next.status, next.headers.get('x-tollgate-cost')]).toEqual([200, costs.dear])
    for (const id of await finish()) {
      const { cost, price_version: version, charge } = await explained(priced.tenancy, id)
      expect([cost, version, charge.price_effective_from]).toEqual([costs.cheap, `${model}#1`, since])
    }
  })

  test('a model without a price can be called once it has one, and not after it is taken back', async () => {
    const model = 'acme/opened'
    const { tenancy, tenant } = priced
    const seen = async () => (await tenancy.models(tenant.key)).includes(model)
    expect([(await priced.generate(model)).status, await seen()]).toEqual([404, false])
    expect((await priced.read(model)).body).toEqual({
      ...{ model, price: null, source: null, version: null, effective_from: null, warnings: [], history: [] },
    })
    await priced.put(model, 'free')
    const answer = await priced.generate(model)
    expect([answer.status, answer.headers.get('x-tollgate-cost'), await seen()]).toEqual([200, '0.00', true])
    expect((await priced.reset(model)).body).toMatchObject({ price: null, version: null, history: [{ price: 'free' }] })
    expect([(await priced.generate(model)).status, await seen()]).toEqual([404, false])
    expect((await priced.reset(model)).status).toBe(404)
  })

  test('the history is dated, and a reset brings the built-in price back as a new version', async () => {
    const id = 'sandbox/echo'
    clock.turn(60_000)
    const setAt = isoTime(clock.now())
    await priced.put(id, { ...dear, over: { '1000': { input: '6.00', output: '9.00' } } })
    clock.turn(60_000)
    const resetAt = isoTime(clock.now())
    const { status, body } = await priced.reset(id)
    expect(status).toBe(200)
    const row = (input: string, output: string) => ({
      ...{ input, output, cache_read: input, cache_write: input, cache_write_1h: input },
    })
    expect(body).toEqual({
      model: id,
      price: row('1.00', '2.00'),
      source: 'built in',
      version: `${id}#3`,
      effective_from: resetAt,
      warnings: [],
      history: [
        {
          version: `${id}#3`,
          price: row('1.00', '2.00'),
          source: 'built in',
          effective_from: resetAt,
        },
        {
          version: `${id}#2`,
          price: { ...row('5.00', '8.00'), over: { '1000': row('6.00', '9.00') } },
          source: 'management API',
          effective_from: setAt,
        },
        {
          version: `${id}#1`,
          price: row('1.00', '2.00'),
          source: 'built in',
          effective_from: '2027-01-15T08:00:00.000Z',
        },
      ],
    })
    const { data } = await priced.tenancy.must('GET', '/api/audit')
    const changes = data.filter(({ object }: { object: string }) => object === id)
    expect(changes).toMatchObject([
      { action: 'price.reset', object: id, at: resetAt, actor: 'management token' },
      { action: 'price.set', object: id, details: { price: { input: '5.00', over: { '1000': { output: '9.00' } } } } },
    ])
  })

  test('a price in the file is changed there, and one that was set before rests until the file has none', async () => {
    const model = 'acme/rested'
    const refused = await priced.put('acme/filed', dear)
    expect([refused.status, refused.body.error.code]).toEqual([400, 'INVALID_REQUEST'])
    expect(refused.body.error.message).toMatch(
      /^The price of acme\/filed is managed by the configuration file \(.*tollgate\.yaml:6\); change it there\.$/,
    )
    await priced.put(model, dear)
    const inForce = async () => (await priced.read(model)).body
    const write = (text: string) => Bun.write(priced.tenancy.gateway.configPath, text)
    const config = configOf(priced.upstream.url)
    await write(config.replace('id: acme/rested,', 'id: acme/rested, price: { input: "1.00", output: "2.00" },'))
    await until(async () => (await inForce()).version === `${model}#2`)
    expect(await inForce()).toMatchObject({ price: cheap, source: expect.stringContaining('tollgate.yaml:5') })
    expect((await priced.put(model, dear)).status).toBe(400)
    const warned = priced.tenancy.gateway.logged().map(({ message }) => String(message))
    expect(
      warned.filter((line) => line.startsWith(`the price set for ${model} through the API is not in effect`)),
    ).toHaveLength(1)
    await write(config)
    await until(async () => (await inForce()).version === `${model}#3`)
    expect(await inForce()).toMatchObject({ price: dear, source: 'management API' })
  })

  test('a price that moves more than tenfold is set with a warning in the answer and in the log', async () => {
    const model = 'acme/moved'
    await priced.put(model, cheap)
    expect((await priced.put(model, { input: '10.00', output: '2.00' })).body.warnings).toEqual([])
    const { status, body } = await priced.put(model, { input: '10.00', output: '20.01', cache_read: '0.99' })
    expect([status, body.price.output]).toEqual([200, '20.01'])
    expect(body.warnings).toEqual([
      '`output` changed more than tenfold: $2.00 → $20.01 per million tokens.',
      '`cache_read` changed more than tenfold: $10.00 → $0.99 per million tokens.',
    ])
    const logged = priced.tenancy.gateway.logged().map(({ message }) => String(message))
    expect(logged.filter((line) => line.includes(`${model} changed more than tenfold`))).toEqual([
      expect.stringContaining('the output price of'),
      expect.stringContaining('the cache_read price of'),
    ])
  })

  test('many changes at once leave one of them in force, everywhere the same', async () => {
    const model = 'acme/raced'
    const inputs = ['1.00', '2.00', '3.00', '4.00', '5.00', '6.00']
    const replies = await Promise.all(inputs.map((input) => priced.put(model, { input, output: '1.00' })))
    expect(replies.map(({ status }) => status)).toEqual(inputs.map(() => 200))
    const { price, version, history } = (await priced.read(model)).body
    expect([inputs.includes(price.input), history[0].version]).toEqual([true, version])
    const { catalog, explained } = await priced.everywhere(model)
    expect([catalog, explained.input]).toEqual([price, price.input])
  })
})
