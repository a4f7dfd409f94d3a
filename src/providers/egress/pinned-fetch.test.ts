import { expect, test } from 'bun:test'
import { createServer, type Server as NetServer } from 'node:net'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'
import { createJumpClock } from '../../../test/parts/jump-clock.ts'
import { createEgressGuard, type Pinned } from './egress-guard.ts'
import { createGuardedTransport } from './guarded-transport.ts'
import { pinnedFetch } from './pinned-fetch.ts'

// For loopback only, made for these tests: one key, and certificates for a.test and b.test until 2126.
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgr6gP6XwaJz8rr3pS
WW7DWaGk4z+XBjucRjxmWxFGsyihRANCAARX3r96Q4VHjvUaQ7odlzGUuRywjGwh
XFn2m+JoRcez82o9rUHtqAPe8OxPGqX+3QNj5Gyqq1mpgLqogCIaUua9
-----END PRIVATE KEY-----`
const certificateA = `-----BEGIN CERTIFICATE-----
MIIBjTCCATKgAwIBAgIUdTfaN7oQ3d0z/ZBdU9xRES1Hh4IwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGYS50ZXN0MCAXDTI2MTExNTA0MzYyNFoYDzIxMjYxMDIyMDQz
NjI0WjARMQ8wDQYDVQQDDAZhLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AARX3r96Q4VHjvUaQ7odlzGUuRywjGwhXFn2m+JoRcez82o9rUHtqAPe8OxPGqX+
3QNj5Gyqq1mpgLqogCIaUua9o2YwZDAdBgNVHQ4EFgQUkGYZWAs9wIicT7SksPZZ
28I0TW4wHwYDVR0jBBgwFoAUkGYZWAs9wIicT7SksPZZ28I0TW4wDwYDVR0TAQH/
BAUwAwEB/zARBgNVHREECjAIggZhLnRlc3QwCgYIKoZIzj0EAwIDSQAwRgIhANni
GCu8XTI/CY9c8k/QzmgS5HMhWjiPX/PSTgDXIxWvAiEA2qQMj9hcKWJ+r/5xj/jh
X/WCXjRiok4R9Yo1OeN6ILg=
-----END CERTIFICATE-----`
const certificateB = `-----BEGIN CERTIFICATE-----
MIIBijCCATGgAwIBAgITRlAANCLYR2BciZo0sAJMY/7MBTAKBggqhkjOPQQDAjAR
MQ8wDQYDVQQDDAZiLnRlc3QwIBcNMjYxMTE1MDQzNjI0WhgPMjEyNjEwMjIwNDM2
MjRaMBExDzANBgNVBAMMBmIudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA
BFfev3pDhUeO9RpDuh2XMZS5HLCMbCFcWfab4mhFx7Pzaj2tQe2oA97w7E8apf7d
A2PkbKqrWamAuqiAIhpS5r2jZjBkMB0GA1UdDgQWBBSQZhlYCz3AiJxPtKSw9lnb
wjRNbjAfBgNVHSMEGDAWgBSQZhlYCz3AiJxPtKSw9lnbwjRNbjAPBgNVHRMBAf8E
BTADAQH/MBEGA1UdEQQKMAiCBmIudGVzdDAKBggqhkjOPQQDAgNHADBEAiARzflu
hHOUva/WtLKPUSDct/xN0zgyr+RYCS3eL5fMlwIgXsb2/rvC3rl/srUzZ/cxQRM+
qMBZ/Gsa8Xor4spBS9c=
-----END CERTIFICATE-----`
const ca = `${certificateA}\n${certificateB}`

interface Seen {
  /** What every request said after its Host header's name, in order. */
  readonly hosts: string[]
  connections: number
}

async function listen(server: NetServer, hostname = '127.0.0.1', port = 0) {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(port, hostname, resolve)
  await promise
  const address = server.address()
  return { port: typeof address === 'object' && address !== null ? address.port : 0 }
}

/** Answers every request with `answer`; keeps its connections open. */
async function createUpstream(options: { hostname?: string; port?: number; answer?: string; tls?: boolean } = {}) {
  const { hostname, port, answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok', tls = false } = options
  const seen: Seen = { hosts: [], connections: 0 }
  const serve = (socket: import('node:net').Socket) => {
    seen.connections++
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      seen.hosts.push(/^host: (.*)\r$/im.exec(bytes.toString())?.[1] ?? 'none')
      if (answer === '') socket.destroy()
      else socket.write(answer)
    })
  }
  const contextOf = (name: string) =>
    createSecureContext({ key, cert: name === 'b.test' ? certificateB : certificateA })
  const server = tls
    ? createTlsServer({ key, cert: certificateA, SNICallback: (name, done) => done(null, contextOf(name)) }, serve)
    : createServer(serve)
  const listening = await listen(server, hostname, port)
  return { ...listening, seen, [Symbol.dispose]: () => void server.close() }
}

async function pin(url: string, ...addresses: string[]): Promise<Pinned> {
  const hostname = new URL(url).hostname
  const pinned = await createEgressGuard({ allow: [hostname], resolve: async () => addresses }).check(url)
  expect(pinned).toHaveProperty('dialUrls')
  return pinned as Pinned
}

const get = { method: 'GET', headers: {} }

test('S2: connects to the checked address, says the name, and never resolves it', async () => {
  using upstream = await createUpstream()
  // No resolver knows this name: only the checked address can have been called.
  const pinned = await pin(`http://a.test:${upstream.port}/v1`, '127.0.0.1')
  const response = await pinnedFetch(pinned, { ...get, headers: { HOST: 'evil.test', 'x-other': '1' } })
  expect(await response.text()).toBe('ok')
  expect(upstream.seen.hosts).toEqual([`a.test:${upstream.port}`])
})

test('S3: a name that moves after the check is called where it was checked, and refused where it moved', async () => {
  using good = await createUpstream()
  using canary = await createUpstream({ hostname: '127.0.0.2', port: good.port })
  const clock = createJumpClock()
  let answers = ['127.0.0.1']
  const guard = createEgressGuard({ allow: ['127.0.0.1'], resolve: async () => answers, clock })
  const send = createGuardedTransport(guard, `http://rebind.test:${good.port}/v1`)
  const call = { path: '/x', headers: {}, body: new Uint8Array(0), signal: new AbortController().signal }
  const pinned = (await guard.check(`http://rebind.test:${good.port}/v1`)) as Pinned
  answers = ['127.0.0.2']
  expect((await pinnedFetch(pinned, get)).status).toBe(200)
  expect((await send(call)).status).toBe(200)
  clock.jump(30)
  expect(await send(call).catch((thrown: Error) => thrown.name)).toBe('EgressRefusal')
  expect(good.seen.hosts).toHaveLength(2)
  expect(canary.seen.connections).toBe(0)
})

test('S2: the certificate must be for the name, and nothing is sent where it is not', async () => {
  using upstream = await createUpstream({ tls: true })
  for (const name of ['a.test', 'b.test']) {
    const pinned = await pin(`https://${name}:${upstream.port}/v1`, '127.0.0.1')
    expect((await pinnedFetch(pinned, { ...get, ca })).status).toBe(200)
  }
  const sent = upstream.seen.hosts.length
  const wrongName = await pin(`https://c.test:${upstream.port}/v1`, '127.0.0.1')
  const byAddress = await pin(`https://127.0.0.1:${upstream.port}/v1`)
  for (const pinned of [wrongName, byAddress]) {
    const failure = await pinnedFetch(pinned, { ...get, ca }).catch((thrown: unknown) => thrown)
    expect(failure).toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  }
  const untrusted = await pin(`https://a.test:${upstream.port}/v1`, '127.0.0.1')
  expect(await pinnedFetch(untrusted, get).catch((thrown: unknown) => thrown)).toMatchObject({
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  })
  expect(upstream.seen.hosts).toHaveLength(sent)
})

test('S2: hosts at one address share no connection, calls of one host do', async () => {
  using upstream = await createUpstream({ tls: true })
  const hostOf = (name: string) => `${name}:${upstream.port}`
  for (const name of ['a.test', 'a.test', 'b.test', 'a.test', 'b.test']) {
    const pinned = await pin(`https://${hostOf(name)}/v1`, '127.0.0.1')
    await (await pinnedFetch(pinned, { ...get, ca })).text()
  }
  expect(upstream.seen.hosts).toEqual(['a.test', 'a.test', 'b.test', 'a.test', 'b.test'].map(hostOf))
  expect(upstream.seen.connections).toBe(2)
})

test('S4: follows no redirect', async () => {
  using canary = await createUpstream()
  const location = `http://127.0.0.1:${canary.port}/`
  using upstream = await createUpstream({
    answer: `HTTP/1.1 307 Temporary Redirect\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`,
  })
  const response = await pinnedFetch(await pin(`http://a.test:${upstream.port}/v1`, '127.0.0.1'), get)
  expect(response.status).toBe(307)
  expect(canary.seen.connections).toBe(0)
})

test('tries the next address where nothing answers, and none after something was sent', async () => {
  using upstream = await createUpstream()
  const reached = await pin(`http://a.test:${upstream.port}/v1`, '127.0.0.3', '127.0.0.1')
  expect((await pinnedFetch(reached, get)).status).toBe(200)
  using broken = await createUpstream({ answer: '' })
  using spare = await createUpstream({ hostname: '127.0.0.2', port: broken.port })
  const cut = await pin(`http://a.test:${broken.port}/v1`, '127.0.0.1', '127.0.0.2')
  const post = { method: 'POST', headers: {}, body: new Uint8Array(1) }
  expect(await pinnedFetch(cut, post).catch((thrown: unknown) => thrown)).toBeInstanceOf(Error)
  expect(broken.seen.hosts).toHaveLength(1)
  expect(spare.seen.connections).toBe(0)
})

test('a call that asks for a connection of its own gets one', async () => {
  using upstream = await createUpstream()
  const guard = createEgressGuard({ allow: ['a.test'], resolve: async () => ['127.0.0.1'] })
  const send = createGuardedTransport(guard, `http://a.test:${upstream.port}/v1`)
  const { signal } = new AbortController()
  const connectionsAfter = async (isFresh: boolean) => {
    await (await send({ path: '/x', headers: {}, body: new Uint8Array(1), signal, isFresh })).text()
    return upstream.seen.connections
  }
  expect(await connectionsAfter(false)).toBe(1)
  expect(await connectionsAfter(false)).toBe(1)
  expect(await connectionsAfter(true)).toBe(2)
})

test('an abort does not wait for a name server', async () => {
  const guard = createEgressGuard({ allow: [], resolve: () => new Promise(() => {}) })
  const controller = new AbortController()
  const call = { path: '/x', headers: {}, body: new Uint8Array(0), signal: controller.signal }
  const waiting = createGuardedTransport(guard, 'https://slow.test/v1')(call)
  controller.abort(new Error('enough'))
  expect(await waiting.catch((thrown: Error) => thrown.message)).toBe('enough')
  const late = createGuardedTransport(guard, 'https://slow.test/v1')(call)
  expect(await late.catch((thrown: Error) => thrown.message)).toBe('enough')
})
