// The HTTP/1.1 server, on plain sockets (docs/decisions/0083): listens, limits the number of connections, and stops without
// cutting off answers. What happens on a connection is in connection.ts.

import type { SocketHandler, TCPSocketListener } from 'bun'
import { type ConnectionOptions, type ConnectionServer, ServerConnection } from './connection.ts'

export interface ServerOptions extends ConnectionOptions {
  readonly host: string
  readonly port: number
  readonly sharesPort: boolean
  readonly connectionsMax: number
  /** Fewer than connections, so that probes are answered while as many requests are running as may. */
  readonly requestsMax: number
  /** What the bodies that are being received may hold together. */
  bodiesBytesMax(): number
}

export class HttpServer implements ConnectionServer {
  readonly #connections = new Set<ServerConnection>()
  /** Those that wait for their clients, the one that waits longest first. */
  readonly #waiting = new Set<ServerConnection>()
  /** Connections that were sent their last answer and whose clients have not closed them, the oldest first. */
  readonly #lingering = new Set<ServerConnection>()
  readonly #listener: TCPSocketListener<ServerConnection>
  readonly #stopped = Promise.withResolvers<void>()
  #dateSecond = 0
  #dateLine = ''
  running = 0
  /** What bodies that are being received hold. */
  bodyBytes = 0
  /** Set before stopping, so that clients connect elsewhere. */
  isLeaving = false
  #isStopping = false

  /** Throws if the port cannot be used; the error has a code. */
  constructor(readonly options: ServerOptions) {
    const { host, port, sharesPort } = options
    const listen = {
      hostname: host,
      port,
      reusePort: sharesPort,
      exclusive: !sharesPort,
      socket: handlersOf(this),
    }
    this.#listener = Bun.listen<ServerConnection>(listen)
  }

  get port(): number {
    return this.#listener.port
  }

  get lingeringConnections(): number {
    return this.#lingering.size
  }

  get isFull(): boolean {
    return this.running >= this.options.requestsMax
  }

  dateLine(): string {
    const second = Math.floor(this.options.clock.now() / 1000)
    if (second !== this.#dateSecond) {
      this.#dateSecond = second
      this.#dateLine = `date: ${new Date(second * 1000).toUTCString()}\r\n`
    }
    return this.#dateLine
  }

  opened(connection: ServerConnection): void {
    this.#connections.add(connection)
    this.#waiting.add(connection)
  }

  waits(connection: ServerConnection): void {
    this.#waiting.delete(connection)
    this.#waiting.add(connection)
  }

  waitsNoMore(connection: ServerConnection): void {
    this.#waiting.delete(connection)
  }

  hold(connection: ServerConnection, bytes: number): boolean {
    this.bodyBytes += bytes
    const bytesMax = this.options.bodiesBytesMax()
    if (this.bodyBytes <= bytesMax) return true
    // Bodies that are sent slowly would keep out all others for minutes.
    for (const other of this.#waiting) {
      if (other !== connection) other.giveWayIfSlow()
      if (this.bodyBytes <= bytesMax) return true
    }
    return false
  }

  release(bytes: number): void {
    this.bodyBytes -= bytes
  }

  lingers(connection: ServerConnection): void {
    this.#forget(connection)
    this.#lingering.add(connection)
  }

  closed(connection: ServerConnection): void {
    this.#lingering.delete(connection)
    this.#forget(connection)
  }

  #forget(connection: ServerConnection): void {
    this.#connections.delete(connection)
    if (this.#isStopping && this.#connections.size === 0) this.#stopped.resolve()
  }

  /**
   * Closes a connection if there are too many: one that was answered, or else the one whose client has kept it waiting
   * longest: between two requests, within one, or for the client to take its answer. Only if requests are running on all
   * others, that is the new one.
   */
  limitConnections(): void {
    if (this.#connections.size + this.#lingering.size <= this.options.connectionsMax) return
    const [answered] = this.#lingering
    if (answered) return answered.close()
    const [longest] = this.#waiting
    longest?.evict()
  }

  /** Accepts no more connections, closes idle ones, and resolves when the others have ended with their answers. */
  stop(): Promise<void> {
    this.#isStopping = this.isLeaving = true
    this.#listener.stop()
    for (const connection of [...this.#connections]) connection.stop()
    if (this.#connections.size === 0) this.#stopped.resolve()
    return this.#stopped.promise
  }

  /** Cuts off what is left. */
  terminate(): void {
    for (const connection of [...this.#connections]) connection.close()
  }
}

function handlersOf(server: HttpServer): SocketHandler<ServerConnection> {
  return {
    binaryType: 'uint8array',
    open(socket) {
      socket.data = new ServerConnection(server, socket)
      server.limitConnections()
    },
    data: (socket, bytes) => socket.data.received(bytes),
    drain: (socket) => socket.data.drained(),
    timeout: (socket) => socket.data.timedOut(),
    end: (socket) => socket.data.close(),
    error(socket, error) {
      // An error of the network has the code of the system; the others are thrown by the functions here.
      if (!('code' in error) || String(error.code).startsWith('ERR_')) server.options.onDefect(error)
      socket.data.close()
    },
    close: (socket) => socket.data.closed(),
  }
}
