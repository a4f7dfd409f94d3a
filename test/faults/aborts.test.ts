// A client that leaves, at every stage of an answer, on both surfaces, streamed and not: the provider's call is closed
// at once, no other route is asked afterwards, and the wallet pays by the row of the settlement matrix that applies.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { requestRecords, startGateway, stopAll } from '../parts/gateway.ts'
import { connect, type RawConnection } from '../parts/raw-client.ts'
import { bodyOf, bothSurfaces, requestBytes, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamCall, type UpstreamReply } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { behave } from './misbehave.ts'

const first = startUpstream(() => {})
const spare = startUpstream((call, reply) => behave({ call, reply, streams: call.json().stream === true }))
const gateway = await startGateway({ config: config() })

beforeEach(() => {
  first.calls.length = 0
})

afterAll(() => stopAll(gateway, first, spare))

/** A priced model on each surface, with a second route that would be glad to help. */
function config(): string {
  const provider = (name: string, dialect: string, url: string) =>
    `  - { id: ${name}, dialect: ${dialect}, base_url: "${url}", api_key: secret }`
  const model = (name: string) =>
    `  - { id: test/${name}, max_output_tokens: 1000, default_max_tokens: 1000, price: { input: "1.00", output: "2.00" }, routes: [{ provider: ${name}-0, model: up, priority: 0 }, { provider: ${name}-1, model: up, priority: 1 }] }`
  return [
    'providers:',
    provider('chat-0', 'openai-chat', `${first.url}/v1`),
    provider('chat-1', 'openai-chat', `${spare.url}/v1`),
    provider('messages-0', 'anthropic-messages', first.url),
    provider('messages-1', 'anthropic-messages', spare.url),
    'models:',
    model('chat'),
    model('messages'),
  ].join('\n')
}

interface Wallet {
  readonly balance: string
  readonly held: string
}

async function wallet(): Promise<Wallet> {
  const token = readFileSync(join(gateway.dataFolder, 'admin-token'), 'utf8').trim()
  const headers = { authorization: `Bearer ${token}` }
  const list = await (await fetch(`${gateway.url}/api/workspaces`, { headers })).json()
  const id = (list as { data: { id: string }[] }).data[0]?.id
  return (await (await fetch(`${gateway.url}/api/workspaces/${id}/wallet`, { headers })).json()) as Wallet
}

/** In nano-dollars. */
function nanos(usd: string): bigint {
  const [whole = '0', part = ''] = usd.split('.')
  return BigInt(whole) * 1_000_000_000n + BigInt(part.padEnd(9, '0'))
}

interface Stage {
  readonly when: 'before headers' | 'before content' | 'mid' | 'after last'
  readonly stream: boolean
  act(call: UpstreamCall, reply: UpstreamReply): void | Promise<void>
  /** Waited for before the client leaves. */
  until?(connection: RawConnection): Promise<unknown>
  /** Nothing · something, at most the whole answer · exactly the whole answer: 3 in at $1, 2 out at $2, per million. */
  readonly pays: 'nothing' | 'what was delivered' | 'all'
}

const wholeNanos = 3n * 1000n + 2n * 2000n

const stages: readonly Stage[] = [
  { when: 'before headers', stream: true, act: () => {}, pays: 'nothing' },
  {
    when: 'before content',
    stream: true,
    async act(call, reply) {
      await reply.startStream()
      await reply.chunk(wordsFor(call).opening)
    },
    pays: 'nothing',
  },
  {
    when: 'mid',
    stream: true,
    async act(call, reply) {
      await reply.startStream()
      await reply.chunk(wordsFor(call).opening + wordsFor(call).says('hello'))
    },
    until: (connection) => connection.until('hello'),
    pays: 'what was delivered',
  },
  {
    when: 'after last',
    stream: true,
    act: (call, reply) => behave({ call, reply, streams: true }),
    until: (connection) => connection.response(),
    pays: 'all',
  },
  { when: 'before headers', stream: false, act: () => {}, pays: 'nothing' },
  {
    when: 'before content',
    stream: false,
    act: (_, reply) => reply.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n'),
    pays: 'nothing',
  },
  {
    // Of an answer that is not streamed nothing is delivered before its end.
    when: 'mid',
    stream: false,
    act: (call, reply) =>
      reply.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n${wordsFor(call).whole}`,
      ),
    pays: 'nothing',
  },
  {
    when: 'after last',
    stream: false,
    act: (call, reply) => behave({ call, reply, streams: false }),
    until: (connection) => connection.response(),
    pays: 'all',
  },
]

async function leaveAt(surface: TestSurface, { act, stream, until }: Stage): Promise<UpstreamCall> {
  const acted = Promise.withResolvers<UpstreamCall>()
  first.handle(async (call, reply) => {
    await act(call, reply)
    acted.resolve(call)
  })
  const connection = await connect(gateway.url)
  await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface, { stream: String(stream) }) }))
  const call = await acted.promise
  await until?.(connection)
  connection.leave()
  return call
}

describe.each([...bothSurfaces])('on the $name surface, leaving', (surface) => {
  test.each([...stages])('$when, streamed: $stream, pays $pays', async (stage) => {
    const seen = gateway.logged().filter(({ message }) => message === 'request').length
    const before = await wallet()
    const call = await leaveAt(surface, stage)
    const [record] = (await requestRecords(gateway, seen + 1)).slice(seen)
    const isOver = stage.pays === 'all'
    // At once: the record is written when the client has gone, and by then the provider has been let go.
    if (!isOver) await call.closed
    expect(record).toMatchObject({ status: isOver ? 200 : 499, attempts: 1 })
    expect(first.calls).toHaveLength(1)
    expect(spare.calls).toHaveLength(0)

    const after = await wallet()
    const paid = nanos(before.balance) - nanos(after.balance)
    if (stage.pays === 'nothing') expect(paid).toBe(0n)
    if (stage.pays === 'all') expect(paid).toBe(wholeNanos)
    if (stage.pays === 'what was delivered') {
      expect(paid).toBeGreaterThan(0n)
      // One word of output, and an input that is reported as 3 or estimated from a body of some sixty bytes.
      expect(paid).toBeLessThanOrEqual(60n * 1000n + 2n * 2000n)
    }
    expect(nanos(after.held)).toBe(0n)
  })
})

// Bun 1.4.4 closes the connection when its client half-closes it or sends a second request before the first is answered
// (docs/decisions/0021). Such a client gets nothing, so its provider must not go on working.
const disconnections: Readonly<Record<string, (connection: RawConnection, request: Buffer) => unknown>> = {
  'half-closes its connection': (connection) => connection.halfClose(),
  'pipelines a second request': (connection, request) => connection.send(request),
}

describe.each([...bothSurfaces])('a client of the $name surface', (surface) => {
  const cases = Object.keys(disconnections).flatMap((how) => [true, false].map((stream) => ({ how, stream })))

  async function sendThen(how: string, stream: boolean, until?: string): Promise<RawConnection> {
    const connection = await connect(gateway.url)
    const body = bodyOf(surface, { stream: String(stream) })
    const request = requestBytes(surface, { key: gateway.key, body })
    await connection.send(request)
    if (until !== undefined) await connection.until(until)
    await disconnections[how]?.(connection, request)
    return connection
  }

  async function lastRecord(seen: number): Promise<Record<string, unknown> | undefined> {
    return (await requestRecords(gateway, seen + 1))[seen]
  }

  test.each(cases)(
    'that $how, streamed: $stream, ends its call before the provider answers',
    async ({ how, stream }) => {
      const seen = gateway.logged().filter(({ message }) => message === 'request').length
      const before = await wallet()
      const disconnected = Promise.withResolvers<void>()
      // It answers as soon as the client is known to be gone, which is too late.
      first.handle(async (call, reply) => {
        await disconnected.promise
        await behave({ call, reply, streams: stream })
      }, 'stay unasked')
      const connection = await sendThen(how, stream)
      await connection.closed
      disconnected.resolve()
      expect(await lastRecord(seen)).toMatchObject({ status: 499 })
      await Promise.all(first.calls.map(({ closed }) => closed))
      expect(connection.received()).toBe('')
      expect(first.calls.length).toBeLessThanOrEqual(1)
      expect(spare.calls).toHaveLength(0)
      expect(await wallet()).toEqual(before)
    },
  )

  test.each(Object.keys(disconnections))('that %s in mid-stream pays for what it was sent', async (how) => {
    const seen = gateway.logged().filter(({ message }) => message === 'request').length
    const before = await wallet()
    first.handle(async (call, reply) => {
      await reply.startStream()
      await reply.chunk(wordsFor(call).opening + wordsFor(call).says('hello'))
    })
    const connection = await sendThen(how, true, 'hello')
    await connection.closed
    const [call] = first.calls
    await call?.closed
    expect(await lastRecord(seen)).toMatchObject({ status: 499 })
    const after = await wallet()
    expect(nanos(before.balance) - nanos(after.balance)).toBeGreaterThan(0n)
    expect(after.held).toBe('0.00')
    expect(spare.calls).toHaveLength(0)
  })
})
