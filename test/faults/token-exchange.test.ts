// A provider's credential may first have to be exchanged for a token. Where that takes long, the request is not stuck:
// its client may leave, its time limit holds, and it keeps neither its hold nor its place.

import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { type Gateway, requestRecords, startGateway } from '../parts/gateway.ts'
import { connect } from '../parts/raw-client.ts'
import { writeServiceAccount } from '../parts/service-account.ts'
import { bodyOf, bothSurfaces, requestBytes } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'

let gateway: Gateway

// It takes requests for tokens and never answers.
const issuer = startUpstream(() => {})
const spare = startUpstream(answerHello)
const account = writeServiceAccount('operator', `${issuer.url}/token`)
afterEach(async () => {
  await gateway.stop()
  issuer.calls.length = 0
  spare.calls.length = 0
})
afterAll(() => {
  account[Symbol.dispose]()
  issuer.stop()
  spare.stop()
})

async function start(timeouts: string): Promise<void> {
  const route = `{ provider: google-vertex, model: claude-x, priority: 0, timeouts: { ${timeouts} } }`
  gateway = await startGateway({
    env: {
      GOOGLE_APPLICATION_CREDENTIALS: account.path,
      GOOGLE_CLOUD_PROJECT: 'p',
      GOOGLE_CLOUD_LOCATION: 'europe-west1',
    },
    config: `
providers: [{ id: spare, dialect: openai-chat, base_url: "${spare.url}/v1", api_key: k }]
models: [{ id: test/m, price: free, routes: [${route}, { provider: spare, model: up, priority: 1 }] }]
limits: { concurrent_requests: 1 }
`,
  })
}

async function exchange() {
  while (issuer.calls.length === 0) await Bun.sleep(1)
  return issuer.calls[0]
}

const cells = bothSurfaces.flatMap((surface) => [true, false].map((stream) => ({ surface, stream })))

describe.each(cells)('$surface.name surface, streamed: $stream', ({ surface, stream }) => {
  test('a client that leaves during the exchange ends the request', async () => {
    await start('')
    const connection = await connect(gateway.url)
    const body = bodyOf(surface, { model: '"test/m"', stream: String(stream) })
    await connection.send(requestBytes(surface, { key: gateway.key, body }))
    const exchanging = await exchange()
    connection.leave()
    await requestRecords(gateway, 1)
    expect(exchanging?.isClosed()).toBe(false)
    expect(spare.calls).toHaveLength(0)
  })

  test('the time limit of the route holds during the exchange, and the next route answers', async () => {
    await start('first_event_ms: 300, total_ms: 300')
    const answer = ask(gateway, surface, {
      ...{ model: 'test/m', stream, max_tokens: 5 },
      messages: [{ role: 'user', content: 'hi' }],
    })
    const exchanging = await exchange()
    const response = await answer
    expect(await response.text()).toContain('hello')
    expect(response.headers.get('x-tollgate-provider')).toBe('spare')
    expect(exchanging?.isClosed()).toBe(false)
  })
})
