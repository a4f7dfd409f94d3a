// Every way on which a request reaches a provider has its policies: another model by a spend limit or as a fallback, lines of
// batches, turns of a WebSocket, stored responses and replays. Media, and bodies of many megabytes.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { batchesOn, call, chatLine, createOf, linesIn, until as untilBatch } from '../batches/parts.ts'
import { ask, post } from '../parts/ask.ts'
import { forEachEngine } from '../parts/engines.ts'
import { chat, responses } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'
import { type Message, SocketClient } from '../parts/web-socket.ts'
import { startTenancy, type Tenancy, type Tenant, until } from '../tenancy/tenancy.ts'
import { forbidden, policySecret } from './policy-gateway.ts'

/** The bodies of one endpoint, which may have megabytes. */
function startJudge() {
  // biome-ignore lint/suspicious/noExplicitAny: documents of every kind.
  const documents: any[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    maxRequestBodySize: 256 * 1024 * 1024,
    async fetch(request) {
      const text = await request.text()
      documents.push(JSON.parse(text))
      return Response.json({ decision: text.includes(forbidden) ? 'block' : 'allow' })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, documents, stop: () => server.stop(true) }
}

const configOf = (upstream: string, judge: string): string => {
  const price = 'price: { input: "0", output: "1.00" }, max_output_tokens: 1000'
  const model = (id: string, more = '') =>
    `  - { id: ${id}, ${price}, tags: [vision]${more}, routes: [{ provider: acme, model: ${id.replace('/', '-')} }] }`
  const policy = (id: string, models: string, more = '') =>
    `  - { id: ${id}, url: "${judge}", secret: "${policySecret}", models: ["${models}"], timeout_ms: 10000${more} }`
  return `server: { store_responses: on }
providers:
  - { id: acme, dialect: openai-chat, base_url: "${upstream}/v1", api_key: k }
models:
${model('free/plain')}
${model('free/falling', ', fallbacks: [judged/large]')}
${model('judged/large')}
${model('judged/bytes')}
${model('spoken/large')}
policies:
${policy('judge', 'judged/large')}
${policy('bytes', 'judged/bytes', ', images: bytes')}
${policy('listener', 'spoken/*', ', when: answer')}
`
}

const image = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const sayHello = answerHello

forEachEngine((engine) => {
  let upstream: Upstream
  let judge: ReturnType<typeof startJudge>
  let tenancy: Tenancy
  let tenant: Tenant
  beforeAll(async () => {
    upstream = startUpstream(sayHello)
    judge = startJudge()
    const config = configOf(upstream.url, judge.url)
    tenancy = await startTenancy({ engine, config, clock: systemClock, env: batchesOn })
    tenant = await tenancy.tenant({ credit: '10' })
  })
  afterAll(async () => {
    await tenancy[Symbol.asyncDispose]()
    upstream.stop()
    judge.stop()
  })

  const as = (key = tenant.key) => ({ url: tenancy.gateway.url, key })
  const say = (model: string, content: unknown, more: object = {}, key = tenant.key) =>
    ask(as(key), chat, { model, max_tokens: 100, messages: [{ role: 'user', content }], ...more })
  const textOf = async (response: Response) => `${response.status} ${await response.text()}`
  const sent = () => upstream.calls.map(({ body }) => Buffer.from(body).toString()).join('\n')

  /** A key whose limit leaves no room for free/plain, and names another model. */
  const bentKey = async (then: string) => {
    const { projectId, key } = await tenancy.tenant({ credit: '1' })
    const limit = { models: 'free/plain', window: 'day', limit: '0.00000001', then }
    await tenancy.must('PUT', `/api/projects/${projectId}/limits`, { spend_limits: [limit] })
    return key
  }

  test('a model that a spend limit names has its own policies for requests', async () => {
    const key = await bentKey('judged/large')
    const before = upstream.calls.length
    expect(await textOf(await say('free/plain', `the key is ${forbidden}, bent`, {}, key))).toMatch(
      /^400 .*POLICY_BLOCKED/,
    )
    expect(upstream.calls).toHaveLength(before)
    const allowed = await say('free/plain', 'harmless, bent', {}, key)
    expect(allowed.headers.get('x-tollgate-warnings')).toContain('model_by_spend_limit=judged/large')
    expect(await textOf(allowed)).toStartWith('200 ')
    expect(judge.documents.at(-1).data.model).toBe('judged/large')
    // Its own key, without a limit, is judged by none.
    expect(await textOf(await say('free/plain', `the key is ${forbidden}`))).toStartWith('200 ')
  })

  test('a model that a spend limit names has its own policies for answers', async () => {
    const key = await bentKey('spoken/large')
    upstream.handle(async (_, reply) => {
      const message = { role: 'assistant', content: `the key is ${forbidden}` }
      const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
      await reply.json(200, {
        id: 'c',
        object: 'chat.completion',
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage,
      })
    })
    const answered = await textOf(await say('free/plain', 'please leak', {}, key))
    upstream.handle(sayHello, 'stay unasked')
    expect(answered).toMatch(/^200 .*The policy `listener` of this gateway blocked the answer/)
    expect(answered).not.toContain(forbidden)
  })

  test.each([
    ["the operator's fallback", 'free/falling', {}],
    ["the caller's fallback", 'free/plain', { models: ['free/plain', 'judged/large'] }],
  ])('a policy for %s judges the request before the first model gets it', async (_, model, more) => {
    const before = upstream.calls.length
    const text = `the key is ${forbidden}, for ${model}`
    expect(await textOf(await say(model, text, more))).toMatch(/^400 .*POLICY_BLOCKED/)
    expect(upstream.calls).toHaveLength(before)
    expect(await textOf(await say(model, `harmless, for ${model}`, more))).toStartWith('200 ')
  })

  test('media are sent as digests, or as bytes if the policy says so', async () => {
    const content = [
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } },
    ]
    const imageOf = async (model: string) => {
      expect(await textOf(await say(model, content))).toStartWith('200 ')
      const { conversation, other } = judge.documents.at(-1).data
      expect(other).toEqual([])
      return conversation.turns[0].content[1]
    }
    const bytes = Buffer.from(image, 'base64')
    const sha256 = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
    expect(await imageOf('judged/large')).toEqual({
      type: 'image',
      media_type: 'image/png',
      bytes: bytes.length,
      sha256,
    })
    expect(await imageOf('judged/bytes')).toEqual({ type: 'image', media_type: 'image/png', data: image })
  })

  test('a file of text is sent as text too', async () => {
    const data = Buffer.from('the notes of a day').toString('base64')
    const source = { type: 'base64', media_type: 'text/plain', data }
    const messages = [
      {
        role: 'user',
        content: [
          { type: 'document', source },
          { type: 'text', text: 'read it' },
        ],
      },
    ]
    const version = { 'anthropic-version': '2023-06-01' }
    const response = await post(as(), '/v1/messages', { model: 'judged/large', max_tokens: 9, messages }, version)
    await response.text()
    expect(JSON.stringify(judge.documents.at(-1).data)).toContain('"text":"the notes of a day"')
  })

  test('a request of more than 16 MiB is judged whole', async () => {
    const padding = 'all work and no play. '.repeat(800_000)
    expect(padding.length).toBeGreaterThan(16 * 1024 * 1024)
    const before = upstream.calls.length
    expect(await textOf(await say('judged/large', `${padding}${forbidden}`))).toMatch(/^400 .*POLICY_BLOCKED/)
    expect(upstream.calls).toHaveLength(before)
    expect(judge.documents.at(-1).data.conversation.turns[0].content[0].text).toHaveLength(
      padding.length + forbidden.length,
    )
  })

  test('each line of a batch is judged', async () => {
    const model = { model: 'judged/large' }
    const lines = [
      chatLine('bad', `the key is ${forbidden}, in a batch`, model),
      chatLine('good', 'a harmless line', model),
    ]
    const { body } = await createOf(as(), lines)
    const done = await untilBatch(as(), body.id, 'completed', 'failed')
    const failed = linesIn((await call(as(), 'GET', `/files/${done.error_file_id}/content`)).text)
    expect(failed).toMatchObject([
      { custom_id: 'bad', response: { status_code: 400, body: { error: { code: 'POLICY_BLOCKED' } } } },
    ])
    const answers = linesIn((await call(as(), 'GET', `/files/${done.output_file_id}/content`)).text)
    expect(answers).toMatchObject([{ custom_id: 'good', response: { status_code: 200 } }])
    expect(sent()).not.toContain(`${forbidden}, in a batch`)
  })

  const idOf = (messages: readonly Message[]) => String((messages.at(-1)?.response as { id?: unknown } | undefined)?.id)

  test('each turn of a WebSocket is judged with the turns before it', async () => {
    const client = await SocketClient.open(as())
    const first = await client.turn({ model: 'judged/large', store: false, input: 'the first turn' })
    const id = idOf(first)
    const blocked = await client.turn({
      model: 'judged/large',
      store: false,
      previous_response_id: id,
      input: forbidden,
    })
    expect(blocked.at(-1)).toMatchObject({ type: 'error', status: 400, error: { code: 'POLICY_BLOCKED' } })
    const texts = JSON.stringify(judge.documents.at(-1).data.conversation)
    expect(texts).toContain('the first turn')
    expect(texts).toContain(forbidden)
    // Unanswered input is remembered, and judged once it is sent.
    const warm = await client.turn({ model: 'free/plain', store: false, generate: false, input: `${forbidden}, warm` })
    const warmId = idOf(warm)
    const continued = await client.turn({
      model: 'judged/large',
      store: false,
      previous_response_id: warmId,
      input: 'go on',
    })
    expect(continued.at(-1)).toMatchObject({ type: 'error', status: 400, error: { code: 'POLICY_BLOCKED' } })
    await client.close()
    expect(sent()).not.toContain(`${forbidden}, warm`)
  })

  test('turns of a stored response that no policy has seen are judged with the one that continues it', async () => {
    const store = async (model: string, input: string, previous?: string) => {
      const more = previous === undefined ? {} : { previous_response_id: previous }
      return await ask(as(), responses, { model, store: true, input, ...more })
    }
    const first = await store('free/plain', `the key is ${forbidden}`)
    const { id } = (await first.json()) as { id: string }
    const before = upstream.calls.length
    expect(await textOf(await store('judged/large', 'repeat it', id))).toMatch(/^400 .*POLICY_BLOCKED/)
    expect(upstream.calls).toHaveLength(before)
  })

  test('a replay is the answer that was given before, and sends nothing', async () => {
    const body = { model: 'judged/large', messages: [{ role: 'user', content: 'once' }] }
    const again = () => ask(as(), chat, body, { 'idempotency-key': 'a-policy-replay' })
    const first = await textOf(await again())
    const counts = { calls: upstream.calls.length, checks: judge.documents.length }
    await until(async () => (await again()).headers.get('x-tollgate-replayed') === 'true')
    expect(await textOf(await again())).toBe(first)
    expect({ calls: upstream.calls.length, checks: judge.documents.length }).toEqual(counts)
  })
})
