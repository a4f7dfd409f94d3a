// Starts the HTTP server with its limits and stops it without cutting off running requests.

import { connectionsMax } from '../kernel/open-files.ts'
import { HttpServer, type ServerOptions } from './server/server.ts'

interface StopTimes {
  /**
   * How long connections are still accepted and answered with 503: a load balancer needs a moment to notice that this
   * gateway is no longer ready.
   */
  readonly delayMs: number
  /** How long to wait for running requests after that. */
  readonly drainMs: number
}

/** The port is in use or not permitted; the code says which. */
export class ListenFault {
  constructor(readonly code: string) {}
}

export function listen(options: ServerOptions) {
  let server: HttpServer
  try {
    server = new HttpServer(options)
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
  }
}

/** The share of connections that requests leave to probes and to clients that are still sending. */
const reservedShare = 1 / 8
/** Each takes up to 100 KB; more than this is a malfunction rather than traffic. */
const requestsLimit = 10_000

export function connectionLimits(): Pick<ServerOptions, 'connectionsMax' | 'requestsMax'> {
  const most = connectionsMax()
  return { connectionsMax: most, requestsMax: Math.min(requestsLimit, Math.floor(most * (1 - reservedShare))) }
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
