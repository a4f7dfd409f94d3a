// Starts the HTTP server with its limits and stops it without cutting off running requests.

import type { BunRequest } from 'bun'
import type { Handler, SocketControl } from './handler.ts'
import { isPlainSegment, segmentsMax } from './request.ts'

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
  readonly handler: Handler
  /** Handlers of single paths, spelled exactly so; the others go to `handler`. */
  readonly exact?: Readonly<Record<string, Handler>>
  /** Answers a request whose path is not plain: see `isPlainSegment`. */
  readonly refusePath: Handler
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
  const { host, port, idleSeconds, handler, exact, refusePath, sharesPort = false, onDefect } = options
  let server: ReturnType<typeof Bun.serve>
  try {
    server = Bun.serve({
      hostname: host,
      port,
      // It is on by default (Bun 1.4.4, development off), and a second process would silently get half of the traffic.
      reusePort: sharesPort,
      idleTimeout: idleSeconds,
      // Bodies are limited where they are read, so that an oversized one gets an error in the caller's dialect.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // Otherwise an uncaught error would be answered with source code.
      development: false,
      // A path that is spelled exactly so is plain.
      routes: { ...plainPaths(handler, refusePath), ...exact },
      fetch: (request, socket) => refusePath(request, socket),
      error: onDefect,
    })
  } catch (error) {
    return new ListenFault(error instanceof Error && 'code' in error ? String(error.code) : 'unknown')
  }
  const shortened = Promise.withResolvers<boolean>()
  const shownHost = host.includes(':') ? `[${host}]` : host
  return {
    url: `http://${shownHost}:${server.port}`,
    /**
     * Stops accepting connections and waits for running requests. After `drainMs`, `onOverdue` ends them, and requests that
     * still do not end are cut off. Resolves to whether all ended by themselves.
     */
    async stop({ delayMs, drainMs }: StopTimes, onOverdue: () => void): Promise<boolean> {
      if (delayMs > 0) await within(delayMs, shortened.promise)
      const stopped = server.stop().then(() => true)
      if (await within(drainMs, Promise.race([stopped, shortened.promise]))) return true
      onOverdue()
      if (!(await within(lastErrorMs, stopped))) await server.stop(true)
      return false
    },
    /** Shortens a running stop to a few seconds, after a second signal. */
    shortenDrain: () => void setTimeout(() => shortened.resolve(false), shortDrainMs).unref(),
    /** The address of the connection of a request being answered. */
    socketAddress: (request: Request) => server.requestIP(request)?.address,
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
