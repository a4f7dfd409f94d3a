// The listener of `tollgate proxy`: passes requests of programs on this machine to the gateway with the person's current
// token. It serves loopback only, needs its own key, and changes nothing else: answers pass byte for byte as they arrive.

import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { surfaceFor } from '../dialects/registry.ts'
import { Failure } from '../kernel/failure.ts'
import { createId } from '../kernel/ids.ts'
import { failureAnswer, requestIdHeaders } from '../pipeline/answer.ts'
import type { OptionDefinition } from './command.ts'
import { exitCodes, Refusal, usageRefusal } from './refusal.ts'
import { readText, writeText } from './settings-file.ts'
import { type SignIn, tollgateFolder } from './stored-sign-ins.ts'

export const proxyPort = 8480

export const portOption: OptionDefinition = { value: 'N', help: `the port of the local proxy (${proxyPort})` }

export function readPort(typed: string | undefined): number {
  if (typed === undefined) return proxyPort
  if (/^[0-9]{1,5}$/.test(typed) && Number(typed) <= 65_535) return Number(typed)
  throw usageRefusal(`--port must be a number up to 65535, not "${typed}".`, `--port ${proxyPort}`)
}

export function proxyUrl(port: number): string {
  return `http://127.0.0.1:${port}`
}

const keyBytes = 24

/** The key of the proxy, the same for every gateway and sign-in, so that programs stay connected after a new sign-in. */
export function localKey(configFolder: string): string {
  const file = join(tollgateFolder(configFolder), 'proxy-key')
  const stored = readText(file)?.trim()
  if (stored) return stored
  const key = `local-${crypto.getRandomValues(new Uint8Array(keyBytes)).toBase64({ alphabet: 'base64url' })}`
  writeText(file, `${key}\n`)
  return key
}

export interface ProxyOptions {
  readonly gateway: string
  readonly key: string
  readonly port: number
  /** The current sign-in; throws a Refusal when signed out. */
  token(): Promise<SignIn>
}

export interface LocalProxy {
  readonly url: string
  /** Running requests are ended. */
  stop(): Promise<void>
}

export async function startProxy({ gateway, key, port, token }: ProxyOptions): Promise<LocalProxy> {
  let fetching: Promise<SignIn> | undefined
  /** Requests that arrive during a refresh wait for the same one. */
  const currentToken = (): Promise<SignIn> => {
    fetching ??= token().finally(() => {
      fetching = undefined
    })
    return fetching
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Before the key: a page whose name resolves to this machine must learn nothing.
    if (!isOwnHost(request)) return refuseHost(response, request)
    const headers = headersFor(headersOf(request), key)
    if (headers === undefined) return refuse(request, response, withoutKey())
    try {
      const { access_token } = await currentToken()
      await forward(request, response, { gateway, headers: headers(access_token) })
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown
      refuse(request, response, signedOutFailure(thrown))
    }
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((thrown: unknown) => {
      process.stderr.write(`tollgate: a request failed: ${thrown}\n`)
      response.destroy()
    })
  })
  // The gateway decides how long a request and its answer may take.
  server.requestTimeout = 0
  await listen(server, port)
  return {
    url: proxyUrl((server.address() as AddressInfo).port),
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}

async function listen(server: Server, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(port, '127.0.0.1', resolve)
  try {
    await promise
  } catch (thrown) {
    const isBusy = thrown instanceof Error && 'code' in thrown && thrown.code === 'EADDRINUSE'
    if (!isBusy) throw thrown
    const what = `port ${port} is in use, perhaps by another tollgate proxy.`
    throw new Refusal(exitCodes.failed, what, `--port ${port + 1}, also for tollgate connect`)
  }
}

function isOwnHost({ headers, socket }: IncomingMessage): boolean {
  return headers.host === `127.0.0.1:${socket.localPort}` || headers.host === `localhost:${socket.localPort}`
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')
  return headers
}

/** Every place where clients send a key. */
const keyHeaders = ['authorization', 'x-api-key', 'x-goog-api-key']
/** They concern one connection; `host` is that of the gateway. */
const ownHeaders = [
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'te',
  'upgrade',
  'expect',
]

/**
 * The headers for the gateway, by its token: it stands where the local key stood, because the gateway recognises some
 * clients by that header. A key of another kind is dropped. undefined = the local key is missing.
 */
function headersFor(sent: Headers, key: string): ((token: string) => Headers) | undefined {
  const places = keyHeaders.filter((name) => isKey(sent.get(name)?.replace(/^bearer +/i, '') ?? '', key))
  if (places.length === 0) return undefined
  return (token) => {
    const headers = new Headers(sent)
    for (const name of [...ownHeaders, ...keyHeaders]) headers.delete(name)
    for (const name of places) headers.set(name, name === 'authorization' ? `Bearer ${token}` : token)
    // Otherwise fetch would ask for encodings that the client may not know.
    if (!headers.has('accept-encoding')) headers.set('accept-encoding', 'identity')
    return headers
  }
}

function isKey(text: string, key: string): boolean {
  const [given, expected] = [Buffer.from(text), Buffer.from(key)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

interface Forwarding {
  readonly gateway: string
  readonly headers: Headers
}

async function forward(request: IncomingMessage, response: ServerResponse, { gateway, headers }: Forwarding) {
  const left = new AbortController()
  response.once('close', () => left.abort())
  const { method = 'GET', url } = request
  try {
    const body = method === 'GET' || method === 'HEAD' ? undefined : await readBody(request)
    const answer = await fetch(gateway + url, {
      ...{ method, headers, body, signal: left.signal, redirect: 'manual', tls: { rejectUnauthorized: true } },
      ...{ decompress: false, timeout: false },
    } as RequestInit)
    const passed = [...answer.headers].filter(([name]) => !ownHeaders.includes(name))
    response.writeHead(answer.status, passed.flat())
    response.flushHeaders()
    for await (const bytes of answer.body ?? []) {
      if (!response.write(bytes)) await once(response, 'drain', { signal: left.signal })
    }
    response.end()
  } catch {
    // The client has left, or the gateway broke its answer off: then this one has no end either.
    if (left.signal.aborted || response.headersSent) return void response.destroy()
    const message = `Tollgate's local proxy cannot reach ${gateway}. Check the network, then retry.`
    refuse(request, response, new Failure('UNAVAILABLE', message, { retryAfterMs: 1000 }))
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts)
}

function refuse(request: IncomingMessage, response: ServerResponse, failure: Failure): void {
  const id = createId('req')
  const surface = surfaceFor(headersOf(request), (request.url ?? '').replace(/\?.*/s, ''))
  const { status, headers, body } = failureAnswer(surface, failure, requestIdHeaders(id), id)
  response.writeHead(status, headers as Record<string, string>).end(body)
}

/** As a person reads it in a coding agent. */
function signedOutFailure({ message, attempt }: Refusal): Failure {
  return new Failure('UNAUTHORIZED', `Tollgate's local proxy: ${message} Run \`${attempt}\`, then retry.`)
}

function withoutKey(): Failure {
  const message =
    "This is Tollgate's local proxy. It takes only the key that `tollgate connect` writes into a program's settings."
  return new Failure('UNAUTHORIZED', message)
}

function refuseHost(response: ServerResponse, { socket }: IncomingMessage): void {
  const { localPort: port } = socket
  const text = `This is a local proxy of Tollgate. It is served as 127.0.0.1:${port} and localhost:${port} only.\n`
  response.writeHead(403, { 'content-type': 'text/plain' }).end(text)
}
