// A connection of the HTTP server on a socket that the test plays: it takes as many bytes as there is room, and lists what
// else is done to it.

import type { SocketHandler, TCPSocketListenOptions } from 'bun'
import { HttpServer, type ServerOptions } from '../../src/http/server/server.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'

type Event = 'open' | 'data' | 'drain' | 'timeout' | 'end' | 'error' | 'close'

export class OwnSocket {
  /** How many bytes it takes before the next `drain`. */
  room = Number.POSITIVE_INFINITY
  readonly calls: string[] = []
  readonly #taken: Buffer[] = []

  get received(): Buffer {
    return Buffer.concat(this.#taken)
  }

  write(bytes: Uint8Array, start = 0, length = bytes.length): number {
    const taken = Math.min(length, this.room)
    this.room -= taken
    if (this.calls.some((call) => call === 'shutdown' || call === 'end' || call === 'terminate'))
      this.calls.push('late write')
    if (taken > 0) this.#taken.push(Buffer.from(bytes.subarray(start, start + taken)))
    return taken
  }

  setNoDelay(): void {}
  pause(): void {}
  resume(): void {}
  timeout(seconds: number): void {
    this.calls.push(`timeout ${seconds}`)
  }
  end(): void {
    this.calls.push('end')
  }
  shutdown(): void {
    this.calls.push('shutdown')
  }
  terminate(): void {
    this.calls.push('terminate')
  }
}

/** `tell`: what happens to the socket, as the runtime reports it. */
export function openOwnSocket({
  serve,
  onDefect,
  clock = systemClock,
}: Pick<ServerOptions, 'serve' | 'onDefect'> & { readonly clock?: Clock }) {
  const { listen } = Bun
  let handlers: SocketHandler<unknown> | undefined
  Bun.listen = ((options: TCPSocketListenOptions<unknown>) => {
    handlers = options.socket
    return { port: 0, stop() {} }
  }) as never
  const place = { host: '', port: 0, sharesPort: false, idleSeconds: 60, clock }
  const limits = { connectionsMax: 100, requestsMax: 100, bodiesBytesMax: () => 2 ** 30 }
  const server = new HttpServer({ ...place, ...limits, serve, onDefect })
  Bun.listen = listen
  const socket = new OwnSocket()
  const tell = (event: Event, given?: Uint8Array | Error): void => {
    const handler = handlers?.[event] as ((...all: unknown[]) => void) | undefined
    handler?.(socket, given)
  }
  tell('open')
  return { server, socket, tell }
}
