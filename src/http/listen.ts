// The socket: starts the runtime's server with the limits it must have, and stops it without cutting anyone off.

import type { BunRequest } from 'bun'
import type { Handler, SocketControl } from './handler.ts'
import { isPlainSegment, segmentsMax } from './path.ts'

export interface Listening {
  readonly url: string
  /**
   * Takes no new connections and waits for running requests. When that takes too long `onOverdue` ends them, and those
   * that do not even end then are cut off. Answers whether all ended by themselves.
   */
  stop(patience: StopPatience, onOverdue: () => void): Promise<boolean>
  /** Somebody is in a hurry: a stop that runs waits only a few seconds more. */
  hurry(): void
  /** Requests that are being answered now. */
  running(): number
  /** Who opened the connection of a request that is being answered. */
  socketAddress(request: Request): string | undefined
}

export interface StopPatience {
  /**
   * How long connections are still taken, to tell them to go elsewhere: a balancer needs a moment to learn that this
   * gateway is not ready any more.
   */
  readonly delayMs: number
  /** How long running requests are waited for after that. */
  readonly drainMs: number
}

export interface ListenOptions {
  readonly host: string
  readonly port: number
  readonly idleSeconds: number
  readonly handler: Handler
  /** Answers a request whose path is not plain: see `isPlainSegment`. */
  readonly refusePath: Handler
  /** Other processes of ours listen on the same port, and the kernel deals connections out. Default: a port of its own. */
  readonly sharesPort?: boolean
  /** An answer for what no one expected; details go to the log, never to the caller. */
  onDefect(error: unknown): Response
}

/** The port is taken or may not be used; the code says which. */
export class ListenFault {
  constructor(readonly code: string) {}
}

export function listen(options: ListenOptions): Listening | ListenFault {
  const { host, port, idleSeconds, handler, refusePath, sharesPort = false, onDefect } = options
  let server: ReturnType<typeof Bun.serve>
  try {
    server = Bun.serve({
      hostname: host,
      port,
      // Otherwise it is on (Bun 1.4.4, development off), and a second process would silently take half of the traffic.
      reusePort: sharesPort,
      idleTimeout: idleSeconds,
      // Bodies are bounded where they are read, so that an oversized one gets an answer in the caller's dialect.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // Off, or an uncaught error would be answered with source code.
      development: false,
      routes: plainPaths(handler, refusePath),
      fetch: (request, socket) => refusePath(request, socket),
      error: onDefect,
    })
  } catch (error) {
    return new ListenFault(error instanceof Error && 'code' in error ? String(error.code) : 'unknown')
  }
  const hurried = Promise.withResolvers<boolean>()
  const shownHost = host.includes(':') ? `[${host}]` : host
  return {
    url: `http://${shownHost}:${server.port}`,
    async stop({ delayMs, drainMs }, onOverdue) {
      if (delayMs > 0) await within(delayMs, hurried.promise)
      const stopped = server.stop().then(() => true)
      if (await within(drainMs, Promise.race([stopped, hurried.promise]))) return true
      onOverdue()
      if (!(await within(lastWordsMs, stopped))) await server.stop(true)
      return false
    },
    hurry: () => void setTimeout(() => hurried.resolve(false), hurryMs).unref(),
    running: () => server.pendingRequests,
    socketAddress: (request) => server.requestIP(request)?.address,
  }
}

/**
 * One pattern per number of segments, with and without a slash at the end. The runtime matches patterns against the path
 * as it was sent, while `request.url` has `..`, `%2e%2e` and backslashes resolved already (Bun 1.4.4). A proxy that guards
 * `/api/` sees what was sent, so only paths that mean the same in both forms are served. Patterns do not match empty
 * segments: a path with `//` falls through to `fetch`.
 */
function plainPaths(handler: Handler, refusePath: Handler) {
  const serve = (request: BunRequest, socket: SocketControl): Response | Promise<Response> => {
    const { params } = request
    for (const name in params) {
      if (!isPlainSegment(params[name] ?? '')) return refusePath(request, socket)
    }
    return handler(request, socket)
  }
  const routes: Record<string, typeof serve> = { '/': serve }
  let pattern = ''
  for (let at = 1; at <= segmentsMax; at++) {
    pattern += `/:s${at}`
    routes[pattern] = serve
    routes[`${pattern}/`] = serve
  }
  return routes
}

/** What a second signal leaves of the time to drain. */
const hurryMs = 5_000

/** How long an error that ends a stream may take to reach its client. */
const lastWordsMs = 2_000

/** Whether the promise came true in time. */
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
