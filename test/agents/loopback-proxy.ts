// An HTTP proxy that connects to loopback only, so that agents reach the gateway and nothing else: no telemetry, no
// updates, no lists of models. Some agents send everything through a proxy and ignore NO_PROXY.

import { createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'

export interface LoopbackProxy {
  readonly url: string
  stop(): void
}

const loopback = '127.0.0.1'

export async function startLoopbackProxy(): Promise<LoopbackProxy> {
  const server = createServer((incoming, outgoing) => {
    const { hostname: host, port, pathname, search } = new URL(incoming.url ?? '', 'http://unknown')
    if (host !== loopback) return void outgoing.writeHead(403).end()
    const { method, headers } = incoming
    const onward = request({ host, port, path: pathname + search, method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  server.on('connect', (incoming, socket) => {
    const [host, port] = (incoming.url ?? '').split(':')
    if (host !== loopback) return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    const onward = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      onward.pipe(socket)
      socket.pipe(onward)
    })
    onward.on('error', () => socket.destroy())
    socket.on('error', () => onward.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, loopback, resolve))
  return {
    url: `http://${loopback}:${(server.address() as AddressInfo).port}`,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}
