import { afterAll, describe, expect, test } from 'bun:test'
import { createWallets } from './money/wallets.ts'
import { ask } from './parts/ask.ts'
import { startGateway, stopAll, upstreamConfig } from './parts/gateway.ts'
import { bodyOf, bothSurfaces, type TestSurface } from './parts/surfaces.ts'
import { startUpstream, type UpstreamCall, type UpstreamReply } from './parts/upstream.ts'
import { answerWith } from './parts/upstream-words.ts'

// Row 15 of docs/reference/charges.md: the same request under the same key is generated once, paid for once, and answered the same twice.

const upstream = startUpstream(answer)
const gateway = await startGateway({ config: upstreamConfig(upstream.url) })
const wallets = createWallets(gateway)
afterAll(() => stopAll(gateway, upstream))

/** Each answer says which call it was. */
function answer(call: UpstreamCall, reply: UpstreamReply): Promise<void> {
  return answerWith({ input: 100, output: 10 }, [`call ${upstream.calls.length}`])(call, reply)
}

function send(surface: TestSurface, key: string, more: Record<string, string> = {}): Promise<Response> {
  return ask(gateway, surface, bodyOf(surface, more), { 'idempotency-key': key })
}

describe.each(bothSurfaces)('on the $name surface', (surface) => {
  test('a repeated request gets the first answer, costs nothing and reaches no provider', async () => {
    const first = await send(surface, `${surface.name}-1`)
    const text = await first.text()
    expect(first.status).toBe(200)
    const [calls, paid] = [upstream.calls.length, await wallets.read()]
    const second = await send(surface, `${surface.name}-1`)
    expect(await second.text()).toBe(text)
    expect(second.headers.get('x-tollgate-replayed')).toBe('true')
    expect(second.headers.get('x-tollgate-cost')).toBe('0.00')
    expect(upstream.calls.length).toBe(calls)
    expect(await wallets.read()).toEqual(paid)
  })

  test('another body under the same key is refused and names the first request', async () => {
    const first = await send(surface, `${surface.name}-2`)
    const second = await send(surface, `${surface.name}-2`, { temperature: '0.5' })
    expect(second.status).toBe(400)
    expect(await second.text()).toContain(String(first.headers.get('request-id')))
  })

  test('twins at the same time are generated once', async () => {
    const calls = upstream.calls.length
    const twins = await Promise.all(Array.from({ length: 8 }, () => send(surface, `${surface.name}-3`)))
    const statuses = twins.map(({ status }) => status)
    expect(upstream.calls.length).toBe(calls + 1)
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([])
    for (const twin of twins) if (twin.status === 429) expect(twin.headers.get('retry-after')).toBe('1')
  })

  test('a request that came to nothing leaves its key free', async () => {
    upstream.handle((_, reply) => reply.json(400, { error: { message: 'no' } }))
    expect((await send(surface, `${surface.name}-4`)).status).toBe(400)
    upstream.handle(answer)
    // Freed in the background, once the refusal is on its way.
    let again = await send(surface, `${surface.name}-4`)
    while (again.status === 429) again = await send(surface, `${surface.name}-4`)
    expect(again.status).toBe(200)
    expect(again.headers.get('x-tollgate-replayed')).toBeNull()
  })

  test('a streamed answer is not kept, and not generated again either', async () => {
    const streamed = { model: '"sandbox/echo"', stream: 'true' }
    const first = await send(surface, `${surface.name}-5`, streamed)
    await first.text()
    const second = await send(surface, `${surface.name}-5`, streamed)
    expect(second.status).toBe(400)
    expect(await second.text()).toContain(String(first.headers.get('request-id')))
  })

  test('a key that is no key is refused', async () => {
    expect((await send(surface, 'x'.repeat(256))).status).toBe(400)
  })
})
