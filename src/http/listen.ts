// Starts the HTTP server with its limits and stops it without cutting off running requests.

import { readFileSync } from 'node:fs'
import type { Clock } from '../kernel/clock.ts'
import { Answer, type AnyAnswer } from '../pipeline/answer.ts'
import type { ClientRequest } from '../pipeline/exchange.ts'
import type { Handler, PathHandler, SocketControl } from './handler.ts'
import { isPlainPath, sentPath } from './request.ts'
import { HttpServer, IncomingRequest } from './server.ts'

interface StopTimes {
  /**
   * How long connections are still accepted and answered with 503: a load balancer needs a moment to notice that this
   * gateway is no longer ready.
   */
  readonly delayMs: number
  /** How long to wait for running requests after that. */
  readonly drainMs: number
}

interface ListenOptions {
  readonly host: string
  readonly port: number
  readonly idleSeconds: number
  readonly clock: Clock
  readonly handler: Handler
  /** Handlers of single paths, spelled exactly so; the others go to `handler`. */
  readonly exact?: PathHandler['exact']
  /** Answers a request whose path is not plain. */
  refusePath(request: ClientRequest): Response
  /** Other workers listen on the same port and the kernel distributes connections. Default: false. */
  readonly sharesPort?: boolean
  /** The response to an unexpected error; its details go to the log, never to the caller. */
  onDefect(error: unknown): Response
}

/** The port is in use or not permitted; the code says which. */
export class ListenFault {
  constructor(readonly code: string) {}
}

export function listen(options: ListenOptions) {
  const { handler, exact = {}, refusePath, sharesPort = false } = options
  const exactPaths = new Map(Object.entries(exact))
  /** Of requests that are handed on as a `Request`. */
  const addresses = new WeakMap<object, IncomingRequest>()
  const serve = async (request: IncomingRequest, socket: SocketControl): Promise<Answer> => {
    const path = sentPath(request.url)
    // A path that is spelled exactly so is plain.
    const known = exactPaths.get(path)
    if (known) return toAnswer(await known(request, socket))
    if (!isPlainPath(utf8Of(path))) return toAnswer(refusePath(request))
    const whole = toRequest(request)
    addresses.set(whole, request)
    return toAnswer(await handler(whole, socket))
  }
  let server: HttpServer
  try {
    server = new HttpServer({
      ...options,
      onDefect: (error) => toAnswer(options.onDefect(error)),
      connectionsMax: connectionLimit(),
      sharesPort,
      serve,
    })
  } catch (error) {
    return new ListenFault(error instanceof Error && 'code' in error ? String(error.code) : 'unknown')
  }
  const shortened = Promise.withResolvers<boolean>()
  const shownHost = options.host.includes(':') ? `[${options.host}]` : options.host
  return {
    url: `http://${shownHost}:${server.port}`,
    /**
     * Stops accepting connections and waits for running requests. After `drainMs`, `onOverdue` ends them, and requests that
     * still do not end are cut off. Resolves to whether all ended by themselves.
     */
    async stop({ delayMs, drainMs }: StopTimes, onOverdue: () => void): Promise<boolean> {
      server.isLeaving = true
      if (delayMs > 0) await within(delayMs, shortened.promise)
      const stopped = server.stop().then(() => true)
      if (await within(drainMs, Promise.race([stopped, shortened.promise]))) return true
      onOverdue()
      if (!(await within(lastErrorMs, stopped))) server.terminate()
      return false
    },
    /** Shortens a running stop to a few seconds, after a second signal. */
    shortenDrain: () => void setTimeout(() => shortened.resolve(false), shortDrainMs).unref(),
    /** The address of the connection of a request being answered. */
    socketAddress: (request: ClientRequest) =>
      (request instanceof IncomingRequest ? request : addresses.get(request))?.connection.address,
  }
}

/**
 * The request in the form of the runtime, for everything but the busiest paths. Its URL has the path as it was sent, because
 * only plain paths get here; a host that is not one changes nothing.
 */
function toRequest(request: IncomingRequest): Request {
  const { headers, method, url: target } = request
  const query = target.indexOf('?')
  const sent = sentPath(target) + (query < 0 ? '' : target.slice(query))
  const url = `http://${hostOf(headers.get('host') ?? '')}${utf8Of(sent)}`
  const leaving = new AbortController()
  request.signal.addEventListener('abort', () => leaving.abort())
  const takesBody = method !== 'GET' && method !== 'HEAD'
  return new Request(url, {
    method,
    headers: [...headers],
    body: takesBody ? bodyOf(request) : null,
    signal: leaving.signal,
  })
}

function toAnswer(answer: AnyAnswer): Answer {
  if (answer instanceof Answer) return answer
  const { status, body } = answer
  const headers = { ...Object.fromEntries(answer.headers), 'set-cookie': answer.headers.getSetCookie() }
  if (!body) return new Answer(status, headers)
  const reader = body.getReader()
  return new Answer(status, headers, {
    async run(sink) {
      await sink.write(new Uint8Array(0))
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) await sink.write(piece.value)
    },
    clientLeft: () => reader.cancel(),
  })
}

/** Only a host: anything else could move the start of the path, or could not be part of a URL at all. */
function hostOf(sent: string): string {
  const isHost = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/i.test(sent)
  return isHost && URL.canParse(`http://${sent}`) ? sent : 'localhost'
}

/** Each character of a target is a byte of it. */
function utf8Of(text: string): string {
  return Buffer.from(text, 'latin1').toString()
}

function bodyOf(request: IncomingRequest): Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null {
  if (request.body === null) return null
  const whole = request.takeWhole()
  if (whole) return whole as Uint8Array<ArrayBuffer>
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const { done, value } = await request.read()
    if (done || !value) controller.close()
    else controller.enqueue(value)
  }
  // Nothing is read before the handler asks: a client that waits for a 100 must not get it from us.
  return new ReadableStream<Uint8Array>({ pull, cancel: () => request.cancel() }, { highWaterMark: 0 })
}

/**
 * Half of the files that the process may open, because a request may need a second connection, to a provider. Without any file
 * left, the process could not even accept a connection to refuse it.
 */
function connectionLimit(): number {
  try {
    const [, files] = /^Max open files\s+([0-9]+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return files === undefined ? Number.POSITIVE_INFINITY : Math.floor(Number(files) / 2)
  } catch {
    // Not Linux.
    return Number.POSITIVE_INFINITY
  }
}

/** The time left to drain after a second signal. */
const shortDrainMs = 5_000

/** How long the error that ends a stream may take to reach its client. */
const lastErrorMs = 2_000

/** Whether the promise resolved to true in time. */
async function within(milliseconds: number, promise: Promise<boolean>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
