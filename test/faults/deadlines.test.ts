// A route has the time that its own clocks give it, however long others took before it. Only the request's own deadline
// is shared: it leaves a late route less, and that is not the route's fault.

import { afterEach, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { failoverConfig, type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { bothSurfaces, chat } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'

let gateway: Gateway
let upstream: Upstream
afterEach(() => stopAll(gateway, upstream))

interface RouteBehaviour {
  readonly does: 'hang' | 'answer'
  readonly timeouts?: string
  /** How much time passes once it has been asked. */
  readonly passSeconds?: number
}

/** The gateway looks at its clocks ten times a second: by then it has. */
const looksMs = 250

/** One model per dialect over these routes, in their order, each at a provider `chat-0`, `messages-1` and so on. */
async function start(routes: readonly RouteBehaviour[]) {
  const clock = createJumpClock()
  upstream = startUpstream(async (call, reply) => {
    const { does, passSeconds = 0 } = routes[Number(call.path.split('/')[1])] ?? { does: 'answer' }
    clock.jump(passSeconds)
    if (does === 'hang') return
    await Bun.sleep(looksMs)
    await reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole)
  })
  const config = failoverConfig(
    routes.map((_, at) => `${upstream.url}/${at}`),
    { route: (at) => `priority: ${at}, timeouts: { ${routes[at]?.timeouts ?? ''} }` },
  )
  gateway = await startGateway({ config, clock })
}

async function healthOf(model: string): Promise<readonly string[]> {
  const { data } = (await (await fetch(`${gateway.url}/api/catalog`)).json()) as {
    data: { id: string; routes: { health: string }[] }[]
  }
  return data.find(({ id }) => id === model)?.routes.map(({ health }) => health) ?? []
}

const body = { max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }

test.each([...bothSurfaces])('the next route has its full time on the $name surface', async (surface) => {
  await start([
    { does: 'hang', timeouts: 'total_ms: 3000', passSeconds: 3.1 },
    { does: 'answer', timeouts: 'total_ms: 3000', passSeconds: 2 },
  ])
  const response = await ask(gateway, surface, { model: surface.model, ...body })
  expect([response.status, response.headers.get('x-tollgate-provider')]).toEqual([200, `${surface.name}-1`])
  expect(response.headers.get('x-tollgate-attempts')).toBe('2')
})

test('a route that the request’s own deadline cuts short is not blamed for it', async () => {
  // Ten minutes for a whole answer: 595 s are gone, and the second has five left of its ten minutes.
  await start([
    { does: 'hang', timeouts: 'total_ms: 595000', passSeconds: 595 },
    { does: 'hang', passSeconds: 5.1 },
  ])
  for (let n = 0; n < 5; n++) {
    const response = await ask(gateway, chat, { model: chat.model, ...body })
    expect(response.status).toBe(404)
    const { error } = (await response.json()) as { error: { message: string } }
    expect(error.message).toContain('chat-1 had too little time')
  }
  expect(await healthOf(chat.model)).toEqual(['ejected', 'healthy'])
})

/** A stream that is read as it comes. */
function follow(response: Response) {
  let seen = ''
  let isOver = false
  const read = async (): Promise<string> => {
    const decoder = new TextDecoder()
    for await (const piece of response.body ?? []) seen += decoder.decode(piece, { stream: true })
    isOver = true
    return seen
  }
  return { text: read(), isOver: () => isOver, words: () => seen.split('"word"').length - 1 }
}

test('a route is not blamed for a stream that we end after the maximum time', async () => {
  const clock = createJumpClock()
  upstream = startUpstream(async (call, reply) => {
    const { opening, says } = wordsFor(call)
    await reply.startStream()
    await reply.chunk(opening + says('hello'))
    // A word whenever one is due, for as long as it is wanted.
    while (!call.isClosed()) {
      await reply.chunk(says('word'))
      await Bun.sleep(10)
    }
  })
  gateway = await startGateway({ config: failoverConfig([upstream.url]), clock })
  // Twenty that broke off would eject it.
  const responses = await Promise.all(
    Array.from({ length: 20 }, () => ask(gateway, chat, { model: chat.model, stream: true, ...body })),
  )
  const readers = responses.map(follow)
  for (let passed = 0; passed <= 901; passed += 20) {
    const before = readers.map(({ words }) => words())
    clock.jump(20)
    // However slow this machine is: none of them has been silent for longer than one jump.
    const hasContinued = (at: number) => (readers[at]?.words() ?? 0) >= (before[at] ?? 0) + 2 || readers[at]?.isOver()
    while (!readers.every((_, at) => hasContinued(at))) await Bun.sleep(5)
    // And every jump is looked at by itself.
    await Bun.sleep(120)
  }
  for (const { text } of readers) expect(await text).toContain('took too long')
  expect(await healthOf(chat.model)).toEqual(['healthy'])
})

test('tries no other route if hardly any time is left', async () => {
  await start([{ does: 'hang', timeouts: 'total_ms: 599500', passSeconds: 599.5 }, { does: 'answer' }])
  const response = await ask(gateway, chat, { model: chat.model, ...body })
  expect(response.status).toBe(404)
  expect(upstream.calls).toHaveLength(1)
})
