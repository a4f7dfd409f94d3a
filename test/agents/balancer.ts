// A load balancer in front of gateways that keeps what agents send. Each request goes to the next gateway; those to the
// management API go to the first, whose token the caller has.

export interface SentRequest {
  readonly path: string
  readonly body: string
}

export interface Balancer {
  readonly url: string
  readonly sent: SentRequest[]
  stop(): Promise<void>
}

export function startBalancer(gateways: readonly { readonly url: string }[]): Balancer {
  const sent: SentRequest[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname: path, search } = new URL(request.url)
      const body = await request.text()
      const isManagement = path.startsWith('/api/')
      const gateway = gateways[isManagement ? 0 : sent.length % gateways.length]
      if (!isManagement) sent.push({ path, body })
      return fetch(`${gateway?.url}${path}${search}`, {
        method: request.method,
        // With the address that the client knows, which the gateway repeats in the addresses of a sign-in.
        headers: request.headers,
        ...(body !== '' && { body }),
        redirect: 'manual',
        decompress: false,
      })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, sent, stop: () => server.stop(true) }
}
