// The HTTP server behind nginx and HAProxy: requests that two parsers might frame differently are sent through the proxy,
// which reuses its connections to the server. Every request that the server saw must be answered to the client that sent
// it, in order, and nothing else: an answer too many or too few is a request that was smuggled past the proxy.

import { afterAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HttpServer } from '../../src/http/server/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Answer } from '../../src/pipeline/answer.ts'
import { randomFrom, requestPieces } from '../llhttp/requests.ts'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { freePort } from '../parts/free-port.ts'
import { connect } from '../parts/raw-client.ts'

/** The targets that the server has seen; the place of each is in the answer. */
const served: string[] = []
const server = new HttpServer({
  host: '127.0.0.1',
  port: 0,
  sharesPort: false,
  clock: systemClock,
  idleSeconds: 60,
  connectionsMax: 1_000,
  requestsMax: 1_000,
  bodiesBytesMax: () => 2 ** 30,
  async serve(request) {
    const place = served.push(request.url) - 1
    // A body that turns out not to be HTTP is answered too.
    const length = await request.bytes().then(
      (body) => body.length,
      () => -1,
    )
    return new Answer(200, { 'x-place': String(place), 'x-target': encodeURI(request.url) }, `${length}`)
  },
  onDefect(error) {
    throw error
  },
})
const folder = createThrowAwayFolder()
const children: Bun.Subprocess[] = []

afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  void server.stop()
  server.terminate()
  folder[Symbol.dispose]()
})

// As lenient as they can be, with one connection to the server for everyone: what one client leaves behind reaches the next.
const proxies = {
  nginx: (port: number) => ({
    command: (path: string) => ['-p', folder.path, '-c', path, '-e', join(folder.path, 'nginx.log')],
    config: `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
master_process off;
pid nginx.pid;
events {}
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  ignore_invalid_headers off;
  underscores_in_headers on;
  merge_slashes off;
  upstream gateway { server 127.0.0.1:${server.port}; keepalive 1; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://gateway;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_request_buffering off;
      proxy_next_upstream off;
    }
  }
}
`,
  }),
  haproxy: (port: number) => ({
    command: (path: string) => ['-db', '-f', path],
    config: `global
  nbthread 1
defaults
  mode http
  retries 0
  timeout client 30s
  timeout server 30s
  timeout connect 30s
  http-reuse always
  option accept-invalid-http-request
frontend clients
  bind 127.0.0.1:${port}
  default_backend gateway
backend gateway
  server gateway 127.0.0.1:${server.port} pool-max-conn 1
`,
  }),
} as const

type ProxyName = keyof typeof proxies

/** Debian puts them where only root looks for programs. */
const programOf = (name: ProxyName) => Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin` })

async function startProxy(name: ProxyName): Promise<string> {
  const port = freePort()
  const { command, config } = proxies[name](port)
  const path = join(folder.path, `${name}.conf`)
  writeFileSync(path, config)
  const child = Bun.spawn([programOf(name) ?? '', ...command(path)], { stdio: ['ignore', 'ignore', 'inherit'] })
  children.push(child)
  const url = `http://127.0.0.1:${port}`
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`)
    const isUp = await connect(url).then(
      (connection) => {
        connection.leave()
        return true
      },
      () => false,
    )
    if (isUp) return url
    await Bun.sleep(10)
  }
}

const codings = [
  ...[
    'Transfer-Encoding: chunked',
    'Transfer-Encoding : chunked',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: x',
  ],
  ...[
    'Transfer-Encoding:\tchunked',
    'Transfer-Encoding: chunked\t',
    'Transfer-Encoding: "chunked"',
    'X: y\nTransfer-Encoding: chunked',
  ],
  ...[
    'Transfer-Encoding: x, chunked',
    'Transfer-Encoding: chunked, x',
    'Transfer-Encoding\x0b: chunked',
    'transfer_encoding: chunked',
  ],
  ...['Transfer-Encoding: x\r\nTransfer-Encoding: chunked', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: x'],
  ...[
    'Transfer-Encoding:\r\n chunked',
    'Transfer-Encoding: \x0bchunked',
    ' Transfer-Encoding: chunked',
    'Transfer-Encoding: chunked;',
  ],
  ...['Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding', 'X: y', 'Transfer-Encoding: identity'],
]
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
const bodies = [
  `0\r\n\r\n${smuggled}`,
  `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
  `0;a\n${smuggled}`,
]
const lengthsOf = (body: string) => [
  [`Content-Length: ${body.length}`],
  ['Content-Length: 0'],
  [`Content-Length: ${body.length}`, 'Content-Length: 0'],
  [],
]
/** A length against chunks, in every spelling of either that some parser takes. */
const crafted = codings.flatMap((coding) =>
  bodies.flatMap((body) =>
    lengthsOf(body).map(
      (lengths) => `POST /p HTTP/1.1\r\n${['Host: x', ...lengths, coding].join('\r\n')}\r\n\r\n${body}`,
    ),
  ),
)
const generated = (seed: number) => {
  const random = randomFrom(seed)
  return Array.from({ length: 150 }, () => requestPieces(random).join(''))
}

const last = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
const placesIn = (received: string) =>
  [...received.matchAll(/^x-place: ([0-9]+)\r$/gim)].map(([, place]) => Number(place))

const checkPath = '/check-'
const roundsMax = 100

/** Returns what was wrong. Nobody else is served meanwhile but the clients of `check`. */
async function probe(url: string, bytes: string): Promise<string | undefined> {
  const first = served.length
  const expected = () => [...served.keys()].slice(first).filter((place) => !served[place]?.startsWith(checkPath))
  const connection = await connect(url)
  await connection.send(Buffer.from(bytes + last, 'latin1'))
  const isAnswered = () => server.running === 0 && placesIn(connection.received()).length === expected().length
  let problem = await check(url)
  // A proxy that waits for more of a body does not close. It has had its turn when other clients were served meanwhile.
  for (let rounds = 0, quiet = 0; rounds < roundsMax && quiet < 3 && !problem && !connection.isClosed(); rounds++) {
    problem = await check(url)
    quiet = isAnswered() ? quiet + 1 : 0
  }
  const answered = placesIn(connection.received())
  connection.leave()
  if (problem !== undefined || answered.join() === expected().join()) return problem
  return `served ${expected().map((place) => served[place])}, answered ${answered}`
}

/** Whether the next client gets its own answer. */
async function check(url: string): Promise<string | undefined> {
  const target = `${checkPath}${served.length}`
  const next = await connect(url)
  await next.send(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  const response = await next.response()
  next.leave()
  const got = response === 'closed' ? response : response.headers.get('x-target')
  return got === target ? undefined : `another client that asked for ${target} got ${got}`
}

const names: readonly ProxyName[] = ['nginx', 'haproxy']

describe.each(names)('behind %s', (name) => {
  test.skipIf(programOf(name) === null)(`no request is smuggled (${name} must be installed)`, async () => {
    const url = await startProxy(name)
    const probes = [...crafted, ...generated(20_261_118)]
    expect(probes.length).toBeGreaterThan(300)
    const wrong: string[] = []
    for (const bytes of probes) {
      const problem = await probe(url, bytes)
      if (problem !== undefined) wrong.push(`${JSON.stringify(bytes)}: ${problem}`)
    }
    expect(wrong).toEqual([])
    // The proxy forwards part of them; otherwise nothing was tried.
    expect(served.filter((target) => target === '/p').length).toBeGreaterThan(20)
  })
})
