// URLs that were made for getting through, each tried against a listener on loopback that counts who comes.

import { expect, test } from 'bun:test'
import { createEgressGuard, createGuardedTransport, EgressRefusal } from './egress-guard.ts'

const words = (text: string) =>
  text
    .trim()
    .split(/ *\n */)
    .flatMap((line) => line.split(' '))

/** By the reason that the guard gives. PORT is the canary's; every name is at loopback. */
const corpus: Readonly<Record<string, readonly string[]>> = {
  address: words(`
    http://127.0.0.1:PORT/ https://127.0.0.1:PORT/ http://127.0.0.2:PORT/ http://127.255.255.254:PORT/
    http://127.1:PORT/ http://127.0.1:PORT/ http://0x7f.1:PORT/ http://0x7f000001:PORT/ http://2130706433:PORT/
    http://017700000001:PORT/ http://0177.0.0.1:PORT/ http://00000177.1:PORT/ http://127.0x0.0.01:PORT/
    http://0:PORT/ http://0.0.0.0:PORT/ http://0x0:PORT/ http://127.0.0.1.:PORT/ HTTP://127.0.0.1:PORT/
    http://１２７.０.０.１:PORT/ http://①②⑦.0.0.1:PORT/ http://127。0。0。1:PORT/ http://%31%32%37.0.0.1:PORT/
    http://127.0.0.1\u200b:PORT/ http://127.0.0.1\u00ad:PORT/ http://127.0.0.1:PORT?@api.example.com/
    http://[::1]:PORT/ http://[::]:PORT/ http://[0:0:0:0:0:0:0:1]:PORT/ http://[::ffff:127.0.0.1]:PORT/
    http://[::ffff:7f00:1]:PORT/ http://[0:0:0:0:0:FFFF:7F00:0001]:PORT/ http://[::127.0.0.1]:PORT/
    http://[::ffff:0:7f00:1]:PORT/ http://[64:ff9b::7f00:1]:PORT/ http://[64:ff9b:1::7f00:1]:PORT/
    http://[2002:7f00:1::]:PORT/ http://[2001::80ff:fffe]:PORT/ http://[2606:4700::5efe:7f00:1]:PORT/
    http://localhost:PORT/ http://localhost.:PORT/ http://LOCALHOST:PORT/ http://ⓛocalhost:PORT/
    http://sub.localhost:PORT/ http://127.0.0.1.nip.test:PORT/ http://0x7f000001.test:PORT/ http://1.2.3.4e:PORT/
    http://10.0.0.1/ http://172.16.0.1/ http://192.168.0.1/ http://0300.0250.1/ http://100.64.0.1/ http://198.18.0.1/
    https://169.254.169.254/latest/meta-data/ http://0xa9fea9fe/ http://2852039166/ http://0251.0376.0251.0376/
    http://[fd00:ec2::254]/latest/ http://[::ffff:169.254.169.254]/ http://168.63.129.16/ http://100.100.100.200/
    http://metadata.google.internal/ http://[fe80::1]/ http://[fc00::1]/ http://[fec0::1]/ http://[ff02::1]/
    http://224.0.0.1/ http://240.0.0.1/ http://255.255.255.255/ http://192.0.2.1/ http://[2001:db8::1]/`),
  url: [
    ...words(`
      http://user@127.0.0.1:PORT/ http://user:password@127.0.0.1:PORT/ http://@127.0.0.1:PORT/
      https://api.example.com@127.0.0.1:PORT/ https://api.example.com:443@127.0.0.1:PORT/
      http://127.0.0.1:PORT#@api.example.com/ https://api.example.com#@127.0.0.1:PORT/ http://127.0.0.1:PORT/#
      https://api.example.com\\@127.0.0.1:PORT/ http://127.0.0.1:PORT\\@api.example.com/ http://127.0.0.1:PORT\\.test/
      http://127.0.0.1%00.example.com:PORT/ http://api.example.com%0d%0a:PORT/ http://[::1%25lo]:PORT/
      http://[::1%lo]:PORT/ http://[127.0.0.1]:PORT/ http://[::1:PORT/ http://256.1.1.1/ http://1.2.3.4.5/
      http://4294967296/ http://127.0.0.1..:PORT/ http://.:PORT/ http://..:PORT/ http://a..b:PORT/
      http://-a.example.com/ http:/// http:// http://:PORT/ http://127.0.0.1:99999/ http://127.0.0.1:PORT:80/`),
    'http://127.0.0.1:PORT/\r\nHost: api.example.com',
    'http://127.0.\r\n0.1:PORT/',
    'http://127.0.0.1\t:PORT/',
    'http://127.0.0.1 :PORT/',
    'http://127.0.0.1:PORT/ ',
    'http://127.0.0.1:PORT/\u0000',
    'http://127.0.0.1:PORT/\u0085',
    'http://127.0.0.1:PORT/\u2028',
    `http://127.0.0.1:PORT/${'a'.repeat(2048)}`,
  ],
  scheme: [
    ...words(`
      //127.0.0.1:PORT/ http:127.0.0.1:PORT/ http:/127.0.0.1:PORT/ http:\\\\127.0.0.1:PORT/ 127.0.0.1:PORT
      file:///etc/passwd ftp://127.0.0.1:PORT/ gopher://127.0.0.1:PORT/ data:text/plain,x unix:///tmp/socket
      ws://127.0.0.1:PORT/ blob:http://127.0.0.1:PORT/ javascript:0 s3://bucket/key`),
    '',
    ' http://127.0.0.1:PORT/',
    '\thttp://127.0.0.1:PORT/',
    'ht\ntp://127.0.0.1:PORT/',
  ],
}

function createCanary() {
  let connections = 0
  const server = Bun.listen({
    hostname: '0.0.0.0',
    port: 0,
    socket: {
      open(socket) {
        connections++
        socket.end('HTTP/1.1 204 No Content\r\n\r\n')
      },
      data() {},
    },
  })
  return { port: server.port, connections: () => connections, [Symbol.dispose]: () => server.stop(true) }
}

for (const [reason, urls] of Object.entries(corpus)) {
  test(`S3: no connection by any of ${urls.length} URLs that are refused for their ${reason}`, async () => {
    using canary = createCanary()
    for (const listed of urls) {
      const url = listed.replaceAll('PORT', String(canary.port))
      // http is allowed, so that the scheme does not hide the address.
      const guard = createEgressGuard({ allow: [], plainHttp: true, resolve: async () => ['127.0.0.1'] })
      const outcome = await guard.check(url)
      const actual = outcome instanceof EgressRefusal ? outcome.reason : 'may be called'
      expect(`${listed} ${actual}`).toBe(`${listed} ${reason}`)
      const call = createGuardedTransport(
        guard,
        url,
      )({
        path: '',
        headers: { authorization: 'Bearer sk-canary' },
        body: new Uint8Array(0),
        signal: new AbortController().signal,
      })
      expect(await call.catch((thrown: unknown) => thrown)).toBeInstanceOf(EgressRefusal)
    }
    expect(canary.connections()).toBe(0)
    // The canary works: it sees a direct call.
    await fetch(`http://0x7f.1:${canary.port}/`)
    expect(canary.connections()).toBe(1)
  })
}

test('S3: no call of the names that the system itself has for loopback', async () => {
  const guard = createEgressGuard({ allow: [], plainHttp: true })
  for (const url of ['http://localhost/', 'http://localhost./', 'https://LOCALHOST/']) {
    expect(await guard.check(url)).toMatchObject({ reason: 'address' })
  }
})
