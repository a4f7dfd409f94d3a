import { afterAll, expect, test } from 'bun:test'
import { startGateway, upstreamConfig } from '../parts/gateway.ts'
import {
  type ClientName,
  type ClientSettings,
  chatClientNames,
  createChatClient,
  expectedException,
  messageClientNames,
  readError,
} from '../parts/official-clients.ts'
import { startUpstream } from '../parts/upstream.ts'
import { chatWords } from '../parts/upstream-words.ts'
import { createTalk } from './talk.ts'

// A gateway that stops while it still works: running requests are finished, a late request gets a retryable error.

const names = [...chatClientNames, ...messageClientNames]
const early = new Map<ClientName, NonNullable<ClientSettings['fetch']>>()
/** Lets the provider end the stream that is running. */
const release = Promise.withResolvers<void>()

const upstream = startUpstream(async (_, reply) => {
  await reply.startStream()
  await reply.chunk(chatWords.opening + chatWords.says('half '))
  await release.promise
  await reply.chunk(chatWords.says('and half') + chatWords.ending)
  await reply.finish()
})
const gateway = await startGateway({ config: upstreamConfig(upstream.url) })
const client = createChatClient('openai 7', { baseURL: `${gateway.url}/v1`, apiKey: gateway.key })
const stream = client.chat.completions.stream({ model: 'test/chat', messages: [{ role: 'user', content: 'hi' }] })
const running = stream.finalContent().then(String)
await stream.emitted('content')
for (const name of names) early.set(name, await openEarly(gateway.url))
const stopped = gateway.stop()
afterAll(async () => {
  release.resolve()
  await stopped
  upstream.stop()
})

/** A fetch whose request has begun: its first bytes have arrived, the others follow when it is called. */
async function openEarly(url: string): Promise<NonNullable<ClientSettings['fetch']>> {
  const answered = Promise.withResolvers<Response>()
  let received = ''
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(new URL(url).port),
    socket: {
      data(_, bytes) {
        received += bytes.toString('latin1')
      },
      close: () => answered.resolve(readResponse(received)),
    },
  })
  socket.write('POST ')
  // When a connection opened after this one has been answered, these bytes have been read.
  await fetch(`${url}/healthz`, { headers: { connection: 'close' } })
  return (input, init) => {
    const { pathname, search } = new URL(String(input))
    const body = String(init?.body)
    const headers = new Headers(init?.headers)
    headers.set('host', 'gateway')
    headers.set('content-length', String(Buffer.byteLength(body)))
    const lines = [...headers].map(([name, value]) => `${name}: ${value}\r\n`).join('')
    socket.write(`${pathname}${search} HTTP/1.1\r\n${lines}\r\n${body}`)
    return answered.promise
  }
}

function readResponse(text: string): Response {
  const [head = '', body = ''] = text.split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const headers = lines.map((line): [string, string] => [
    line.slice(0, line.indexOf(':')),
    line.slice(line.indexOf(':') + 1).trim(),
  ])
  // Nothing at all is what a client would see as a broken connection.
  return text === '' ? Response.error() : new Response(body, { status: Number(first.split(' ')[1]), headers })
}

function send(name: ClientName): PromiseLike<unknown> {
  const fetching = early.get(name)
  if (!fetching) throw new Error('every client has its connection')
  return createTalk(name, gateway, { fetch: fetching })({ model: 'sandbox/echo', turns: ['hi'] }, 'whole')
}

test.each(names)('%s: a late request gets a retryable error', async (name) => {
  const error = await readError(name, send(name))
  expect(error).toMatchObject({
    exception: expectedException(name, 503),
    status: 503,
    code: 'OVERLOADED',
    type: 'overloaded_error',
    text: expect.stringContaining('shutting down'),
    requestId: expect.stringMatching(/^req_/),
  })
  expect(error.headers?.get('retry-after')).toBe('1')
  expect(error.headers?.get('retry-after-ms')).toBe('1000')
})

test('the running request is finished, and then the gateway stops', async () => {
  release.resolve()
  expect(await running).toBe('half and half')
  await stopped
})
