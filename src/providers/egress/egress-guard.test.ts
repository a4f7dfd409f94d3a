import { describe, expect, test } from 'bun:test'
import { createServer, type Server as NetServer } from 'node:net'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'
import { inspect } from 'node:util'
import { createJumpClock } from '../../../test/parts/jump-clock.ts'
import { connectionsRested } from '../../../test/parts/upstream.ts'
import { Secret } from '../../kernel/secret.ts'
import { StartRefusal } from '../../store/start-refusal.ts'
import { sendByFetch } from '../call-endpoint.ts'
import { type Send, sendBySocket } from '../connection-pool.ts'
import {
  createEgressGuard,
  createGuardedTransport,
  type EgressGuardOptions,
  EgressRefusal,
  type Pinned,
} from './egress-guard.ts'

const publicAddress = '93.184.216.34'

/** Answers every name with the same addresses and counts how often it was asked. */
function createResolver(...addresses: string[]) {
  const resolver = {
    asked: [] as string[],
    addresses,
    resolve: async (hostname: string) => {
      resolver.asked.push(hostname)
      return resolver.addresses
    },
  }
  return resolver
}

const guardOf = (options: Partial<EgressGuardOptions> = {}, ...addresses: string[]) =>
  createEgressGuard({ allow: [], resolve: createResolver(...addresses).resolve, ...options })

async function reasonOf(url: string, options: Partial<EgressGuardOptions> = {}, ...addresses: string[]) {
  const outcome = await guardOf(options, ...addresses).check(url)
  return outcome instanceof EgressRefusal ? outcome.reason : 'may be called'
}

test('S2: pins a public host to its checked addresses, with its name for Host and certificate', async () => {
  const guard = guardOf({}, publicAddress, '2606:2800:220:1::1')
  const pinned = (await guard.check('https://API.Example.com./v1/chat/completions?api-version=1')) as Pinned
  const named = { isTls: true, port: 443, host: 'api.example.com', serverName: 'api.example.com' }
  expect(pinned).toMatchObject({ origin: 'https://api.example.com', path: '/v1/chat/completions?api-version=1' })
  expect(pinned.targets).toMatchObject([
    { ...named, hostname: '93.184.216.34' },
    { ...named, hostname: '2606:2800:220:1::1' },
  ])
})

test('S2: a public address in the URL is checked and called as it is, without a question', async () => {
  const resolver = createResolver('10.0.0.1')
  const guard = createEgressGuard({ allow: [], resolve: resolver.resolve })
  expect(await guard.check(`https://${publicAddress}/v1`)).toMatchObject({
    targets: [{ isTls: true, hostname: publicAddress, port: 443, host: publicAddress, serverName: undefined }],
  })
  expect(resolver.asked).toEqual([])
})

test('S3: one bad address among good ones spoils the name', async () => {
  for (const bad of ['127.0.0.1', '::1', '169.254.169.254', '::ffff:10.0.0.1', 'fe80::1%eth0', 'nonsense', '']) {
    expect(await reasonOf('https://api.example.com/', {}, publicAddress, bad)).toBe('address')
    expect(await reasonOf('https://api.example.com/', {}, bad, publicAddress)).toBe('address')
  }
})

test('S3: a name that was public when it was checked and is private later is never called where it is later', async () => {
  const clock = createJumpClock()
  const resolver = createResolver(publicAddress)
  const guard = createEgressGuard({ allow: [], resolve: resolver.resolve, clock })
  const first = (await guard.check('https://rebind.test/v1')) as Pinned
  resolver.addresses = ['127.0.0.1']
  clock.jump(29)
  const second = (await guard.check('https://rebind.test/v1')) as Pinned
  for (const { targets, path } of [first, second]) {
    expect(targets).toMatchObject([{ isTls: true, hostname: publicAddress, port: 443, serverName: 'rebind.test' }])
    expect(path).toBe('/v1')
  }
  expect(resolver.asked).toEqual(['rebind.test'])
  clock.jump(1)
  expect(await guard.check('https://rebind.test/v1')).toMatchObject({ reason: 'address' })
  resolver.addresses = [publicAddress]
  // A refusal is not remembered.
  expect(await guard.check('https://rebind.test/v1')).not.toBeInstanceOf(EgressRefusal)
})

test('S5: public hosts are called by https on 443, and by http on 80 where the operator says so', async () => {
  expect(await reasonOf('https://api.example.com:443/v1', {}, publicAddress)).toBe('may be called')
  expect(await reasonOf('http://api.example.com/v1', {}, publicAddress)).toBe('scheme')
  expect(await reasonOf('http://api.example.com/v1', { plainHttp: true }, publicAddress)).toBe('may be called')
  for (const url of ['https://api.example.com:8443/', 'https://api.example.com:80/', 'http://api.example.com:443/']) {
    expect(await reasonOf(url, { plainHttp: true }, publicAddress)).toBe('port')
  }
  expect(await reasonOf('https://api.example.com:0/', { allow: ['api.example.com'] }, publicAddress)).toBe('port')
})

test('S1: what the operator lists may be private, plain, and on any port', async () => {
  const url = 'http://llm.corp.test:8000/v1'
  expect(await reasonOf(url, {}, '10.1.2.3')).toBe('address')
  for (const allow of ['llm.corp.test', 'LLM.corp.test.', '10.1.2.3', '10.0.0.0/8']) {
    expect(await reasonOf(url, { allow: [allow] }, '10.1.2.3')).toBe('may be called')
  }
  for (const allow of ['corp.test', 'other.corp.test', '10.1.2.4', '10.1.3.0/24', '0.0.0.0/32']) {
    expect(await reasonOf(url, { allow: [allow] }, '10.1.2.3')).toBe('address')
  }
  // Listed and public addresses may mix, but then only the public way is open.
  expect(await reasonOf(url, { allow: ['10.0.0.0/8'] }, '10.1.2.3', publicAddress)).toBe('scheme')
  expect(await reasonOf(url, { allow: ['10.0.0.0/8'] }, publicAddress, '10.1.2.3')).toBe('scheme')
  expect(await reasonOf('http://[::1]:8000/v1', { allow: ['::1'] })).toBe('may be called')
})

test('S1: metadata is out of reach whatever the operator lists', async () => {
  const metadata = ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '168.63.129.16', '169.254.170.2']
  for (const address of metadata) {
    const allow = ['metadata.test', '0.0.0.0/0', '::/0', address]
    expect(await reasonOf('http://metadata.test/', { allow }, address)).toBe('address')
    const host = address.includes(':') ? `[${address}]` : address
    expect(await reasonOf(`http://${host}/`, { allow })).toBe('address')
  }
  for (const wrapped of ['::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1', '2001::5601:5601']) {
    expect(await reasonOf('http://metadata.test/', { allow: ['metadata.test', '::/0'] }, wrapped)).toBe('address')
  }
})

test('S3: an allowed translator opens the public internet behind it and nothing private', async () => {
  const allow = ['64:ff9b::/96']
  expect(await reasonOf('https://api.example.com/', { allow }, '64:ff9b::5db8:d822')).toBe('may be called')
  expect(await reasonOf('https://api.example.com/', { allow }, '64:ff9b::a00:1')).toBe('address')
  expect(await reasonOf('https://api.example.com/', { allow: [...allow, '10.0.0.0/8'] }, '64:ff9b::a00:1')).toBe(
    'may be called',
  )
})

test('a list that was misunderstood is not in force', () => {
  for (const entry of [
    '',
    ' ',
    '*.corp.test',
    'http://llm.corp.test',
    'llm.corp.test:80',
    '10.0.0.1/8',
    '10.0.0.0/33',
    '127.1',
    'a b',
    'user@host',
    '[::1]',
  ]) {
    expect(() => createEgressGuard({ allow: [entry] })).toThrow(StartRefusal)
    expect(() => createEgressGuard({ allow: [entry] })).toThrow(`own_keys.allow_hosts: "${entry}": expected`)
  }
})

test('tells a tenant the same of a name that is private and of one that does not exist', async () => {
  const secret = await guardOf({}, '10.1.2.3').check('https://vault.corp.test/')
  const missing = await guardOf({
    resolve: () => Promise.reject(new Error('getaddrinfo ENOTFOUND')),
  }).check('https://vault.corp.test/')
  expect((secret as EgressRefusal).message).toBe((missing as EgressRefusal).message)
  expect((secret as EgressRefusal).message).not.toContain('10.1.2.3')
  expect((secret as EgressRefusal).detail).toBe('vault.corp.test is at 10.1.2.3: private')
  expect((missing as EgressRefusal).reason).toBe('unresolved')
  expect(await reasonOf('https://empty.test/')).toBe('unresolved')
})

test('gives a base URL as it is to be stored, with the origin its credential belongs to', async () => {
  const guard = guardOf({ allow: ['llm.corp.test'] }, publicAddress)
  const stored: [text: string, baseUrl: string, origin: string][] = [
    ['https://API.example.com', 'https://api.example.com', 'https://api.example.com'],
    ['https://api.example.com.:443/v1//', 'https://api.example.com/v1', 'https://api.example.com'],
    ['http://llm.corp.test:8000/a/../v1/', 'http://llm.corp.test:8000/v1', 'http://llm.corp.test:8000'],
    ['https://bücher.example/v1', 'https://xn--bcher-kva.example/v1', 'https://xn--bcher-kva.example'],
  ]
  for (const [text, baseUrl, origin] of stored) expect(await guard.checkBaseUrl(text)).toEqual({ baseUrl, origin })
  expect(await guard.checkBaseUrl('https://api.example.com/v1?x=')).toMatchObject({ reason: 'url' })
  expect(await guard.checkBaseUrl('http://api.example.com/v1')).toMatchObject({ reason: 'scheme' })
  expect(await guard.checkBaseUrl('https://key:sk-canary@api.example.com/v1')).toMatchObject({ reason: 'url' })
})

test('L1: a refusal does not repeat what stood in the URL', async () => {
  for (const url of ['https://key:sk-canary@api.example.com/v1', 'https://api.example.com/v1#sk-canary', 'sk-canary']) {
    const refusal = await guardOf({}, publicAddress).check(url)
    expect(refusal).toBeInstanceOf(EgressRefusal)
    expect(
      (refusal as EgressRefusal).message + JSON.stringify(refusal) + (refusal as EgressRefusal).detail,
    ).not.toContain('canary')
    expect(inspect((refusal as EgressRefusal).reason)).toMatch(/url|scheme/)
  }
})

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
  /** The Host header of every request, in order. */
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

interface CallOptions {
  readonly addresses?: readonly string[]
  readonly headers?: Record<string, string>
  readonly body?: Uint8Array<ArrayBuffer>
  readonly trusts?: boolean
  readonly isFresh?: boolean
  readonly send?: Send
  readonly credential?: Secret
}

/** A call to a listed host; its name resolves to `addresses`. */
async function call(url: string, options: CallOptions = {}) {
  const {
    addresses = ['127.0.0.1'],
    headers = {},
    body = new Uint8Array(1),
    trusts,
    isFresh = false,
    send,
    credential,
  } = options
  const guard = createEgressGuard({
    allow: [new URL(url).hostname],
    resolve: async () => addresses,
    ...(trusts && { ca }),
  })
  const { signal } = new AbortController()
  const response = await createGuardedTransport(
    guard,
    url,
    send,
  )({ path: '/x', headers, body, signal, isFresh, credential })
  return { status: response.status, text: new TextDecoder().decode(await response.bytes()) }
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'answered',
    (thrown: { code?: unknown }) => thrown.code,
  )

describe.each([
  ['sockets', sendBySocket],
  ['fetch', sendByFetch],
])('by %s:', (_, send) => {
  test('S2: connects to the checked address, says the name, and never resolves it', async () => {
    using upstream = await createUpstream()
    // No resolver knows this name: only the checked address can have been called.
    const headers = { HOST: 'evil.test', 'x-other': '1' }
    expect(await call(`http://a.test:${upstream.port}/v1`, { headers, send })).toEqual({ status: 200, text: 'ok' })
    expect(upstream.seen.hosts).toEqual([`a.test:${upstream.port}`])
  })

  test('S2: the certificate must be for the name, and nothing is sent where it is not', async () => {
    using upstream = await createUpstream({ tls: true })
    const url = (name: string) => `https://${name}:${upstream.port}/v1`
    for (const name of ['a.test', 'b.test']) {
      expect((await call(url(name), { trusts: true, send })).status).toBe(200)
    }
    const sent = upstream.seen.hosts.length
    for (const name of ['c.test', '127.0.0.1']) {
      expect(await codeOf(call(url(name), { trusts: true, send }))).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
    }
    expect(await codeOf(call(url('a.test'), { send }))).toBe('DEPTH_ZERO_SELF_SIGNED_CERT')
    expect(upstream.seen.hosts).toHaveLength(sent)
  })

  test('S2: hosts at one address share no connection, calls of one host do', async () => {
    using upstream = await createUpstream({ tls: true })
    const hostOf = (name: string) => `${name}:${upstream.port}`
    const names = ['a.test', 'a.test', 'b.test', 'a.test', 'b.test']
    for (const name of names) {
      await call(`https://${hostOf(name)}/v1`, { trusts: true, send })
      await connectionsRested()
    }
    expect(upstream.seen.hosts).toEqual(names.map(hostOf))
    expect(upstream.seen.connections).toBe(2)
  })

  if (send === sendBySocket)
    test('calls with different credentials share no connection', async () => {
      using upstream = await createUpstream()
      for (const key of ['a', 'b', 'a', 'b']) {
        await call(`http://a.test:${upstream.port}/v1`, { credential: new Secret(key), send })
        await connectionsRested()
      }
      expect(upstream.seen.connections).toBe(2)
    })

  test('S4: follows no redirect', async () => {
    using canary = await createUpstream()
    const location = `http://127.0.0.1:${canary.port}/`
    using upstream = await createUpstream({
      answer: `HTTP/1.1 307 Temporary Redirect\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`,
    })
    expect((await call(`http://a.test:${upstream.port}/v1`, { send })).status).toBe(307)
    expect(canary.seen.connections).toBe(0)
  })

  test('tries the next address where nothing answers, and none after something was sent', async () => {
    using upstream = await createUpstream()
    const addresses = ['127.0.0.3', '127.0.0.1']
    expect((await call(`http://a.test:${upstream.port}/v1`, { addresses, send })).status).toBe(200)
    using broken = await createUpstream({ answer: '' })
    using spare = await createUpstream({ hostname: '127.0.0.2', port: broken.port })
    const cut = call(`http://a.test:${broken.port}/v1`, { addresses: ['127.0.0.1', '127.0.0.2'], send })
    expect(await codeOf(cut)).toBe('ECONNRESET')
    expect(broken.seen.hosts).toHaveLength(1)
    expect(spare.seen.connections).toBe(0)
  })

  test('a call that asks for a new connection gets one', async () => {
    using upstream = await createUpstream()
    const connectionsAfter = async (isFresh: boolean) => {
      await call(`http://a.test:${upstream.port}/v1`, { isFresh, send })
      await connectionsRested()
      return upstream.seen.connections
    }
    expect(await connectionsAfter(false)).toBe(1)
    expect(await connectionsAfter(false)).toBe(1)
    expect(await connectionsAfter(true)).toBe(2)
  })
})

test('S3: a name that moves after the check is called where it was checked, and refused where it moved', async () => {
  using good = await createUpstream()
  using canary = await createUpstream({ hostname: '127.0.0.2', port: good.port })
  const clock = createJumpClock()
  let answers = ['127.0.0.1']
  const guard = createEgressGuard({ allow: ['127.0.0.1'], resolve: async () => answers, clock })
  const send = createGuardedTransport(guard, `http://rebind.test:${good.port}/v1`)
  const request = { path: '/x', headers: {}, body: new Uint8Array(0), signal: new AbortController().signal }
  await guard.check(`http://rebind.test:${good.port}/v1`)
  answers = ['127.0.0.2']
  expect((await send(request)).status).toBe(200)
  expect((await send(request)).status).toBe(200)
  clock.jump(30)
  expect(await send(request).catch((thrown: Error) => thrown.name)).toBe('EgressRefusal')
  expect(good.seen.hosts).toHaveLength(2)
  expect(canary.seen.connections).toBe(0)
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
