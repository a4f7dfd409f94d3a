// The memory that a running stream keeps of its request. A prompt may have megabytes and its answer take minutes: once a
// provider has begun, the bytes are needed only where nothing else tells how many tokens they were.

import { heapStats } from 'bun:jsc'
import { afterAll, expect, test } from 'bun:test'
import { startGateway } from '../parts/gateway.ts'
import { connect, type RawConnection } from '../parts/raw-client.ts'
import { bodyOf, chat, messages, requestBytes, type TestSurface } from '../parts/surfaces.ts'
import { chatWords, messagesWords } from '../parts/upstream-words.ts'

const streams = 6
const promptBytes = 4_000_000

/** Begins to answer and goes no further; of what it was sent it keeps nothing. */
const provider = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    for await (const _ of request.body ?? []);
    const { opening, says } = request.url.endsWith('/messages') ? messagesWords : chatWords
    const first = new TextEncoder().encode(opening + says('hello'))
    const body = new ReadableStream({ start: (controller) => controller.enqueue(first) })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  },
})

const url = `http://127.0.0.1:${provider.port}`
const gateway = await startGateway({
  config: `
providers:
  - { id: chatty, dialect: openai-chat, base_url: "${url}/v1", api_key: k }
  - { id: messy, dialect: anthropic-messages, base_url: "${url}", api_key: k }
models:
  - { id: test/chat, price: free, routes: [{ provider: chatty, model: up }] }
  - { id: test/messages, price: free, routes: [{ provider: messy, model: up }] }
`,
})

afterAll(async () => {
  await gateway.stop()
  await provider.stop(true)
})

async function open(surface: TestSurface, model: string, bytes: number): Promise<RawConnection> {
  const connection = await connect(gateway.url)
  const turns = JSON.stringify([{ role: 'user', content: 'word '.repeat(bytes / 5) }])
  const body = bodyOf(surface, { model: JSON.stringify(model), stream: 'true', messages: turns })
  await connection.send(requestBytes(surface, { key: gateway.key, body }))
  await connection.until('hello')
  return connection
}

/** Objects that a collection finds dead may release more, in a later turn of the event loop. */
async function heapBytes(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    Bun.gc(true)
    await Bun.sleep(50)
  }
  Bun.gc(true)
  return heapStats().heapSize
}

test.each([
  // A chat provider counts at the end alone, so for an answer that is cut off the prompt must still be there (1.0).
  ['chat from chat', chat, 'test/chat', 1.3],
  // It said how many tokens the prompt has when it began (0.0).
  ['messages from messages', messages, 'test/messages', 0.3],
  // The prompt was counted when it was translated (0.0).
  ['chat from messages', chat, 'test/messages', 0.3],
  ['messages from chat', messages, 'test/chat', 0.3],
] as const)('a running stream keeps little of its prompt: %s', async (_, surface, model, copiesMost) => {
  ;(await open(surface, model, 1000)).leave()
  const before = await heapBytes()
  const connections: RawConnection[] = []
  for (let n = 0; n < streams; n++) connections.push(await open(surface, model, promptBytes))
  const copies = ((await heapBytes()) - before) / (streams * promptBytes)
  for (const connection of connections) connection.leave()
  expect(copies).toBeLessThan(copiesMost)
})
