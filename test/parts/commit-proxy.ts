// A relay to PostgreSQL that can lose the replies of the server: it forwards the COMMIT of the next charge and then holds
// back everything the server says, on all connections, until it is told to go on.

import type { Socket } from 'bun'

export interface CommitProxy extends Disposable {
  readonly port: number
  /** Resolves when the COMMIT of a charge has been forwarded; no reply passes from then on. */
  stallAtNextCharge(): Promise<void>
  /** What was held back is passed on to whoever is still connected. */
  resume(): void
}

interface Ends {
  /** Not yet taken by the other side. */
  readonly toServer: Uint8Array[]
  readonly toClient: Uint8Array[]
  server: Socket<Ends> | undefined
  /** A charge was sent, and its COMMIT was not. */
  hasCharge: boolean
  /** The end of what was looked at: a word may be cut between two reads. */
  tail: string
}

const chargeWord = '"kind":"charge"'
/** One byte less than the longest word that is looked for, so that no word is seen twice. */
const longestWord = chargeWord.length - 1

export function startCommitProxy(serverPort: number): CommitProxy {
  let stall: PromiseWithResolvers<void> | undefined
  let isStalled = false
  const clients = new Map<Socket<Ends>, Ends>()

  const look = (ends: Ends, chunk: Uint8Array) => {
    const text = ends.tail + Buffer.from(chunk).toString('latin1')
    ends.tail = text.slice(-longestWord)
    const chargeAt = text.indexOf(chargeWord)
    if (chargeAt >= 0) ends.hasCharge = true
    // Not the COMMIT of an earlier transaction that is still in the tail.
    if (!ends.hasCharge || text.indexOf('COMMIT', chargeAt + 1) < 0) return
    ends.hasCharge = false
    ends.tail = ''
    if (!stall) return
    isStalled = true
    stall.resolve()
  }
  const listener = Bun.listen<Ends>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      async open(client) {
        const ends: Ends = { toServer: [], toClient: [], server: undefined, hasCharge: false, tail: '' }
        client.data = ends
        clients.set(client, ends)
        ends.server = await Bun.connect<Ends>({
          hostname: '127.0.0.1',
          port: serverPort,
          data: ends,
          socket: {
            data(_, chunk) {
              ends.toClient.push(Uint8Array.from(chunk))
              if (!isStalled) flush(client, ends.toClient)
            },
            drain: (server) => flush(server, ends.toServer),
            close: () => void client.end(),
            error() {},
          },
        }).catch(() => undefined)
        if (ends.server) flush(ends.server, ends.toServer)
        else client.end()
      },
      data(client, chunk) {
        look(client.data, chunk)
        client.data.toServer.push(Uint8Array.from(chunk))
        if (client.data.server) flush(client.data.server, client.data.toServer)
      },
      drain: (client) => void (isStalled || flush(client, client.data.toClient)),
      close(client) {
        clients.delete(client)
        client.data.server?.end()
      },
      error() {},
    },
  })
  return {
    port: listener.port,
    stallAtNextCharge() {
      stall = Promise.withResolvers()
      return stall.promise
    },
    resume() {
      stall = undefined
      isStalled = false
      for (const [client, { toClient }] of clients) flush(client, toClient)
    },
    [Symbol.dispose]: () => listener.stop(true),
  }
}

/** A socket takes what it can at the moment; the rest goes when it says so. */
function flush(to: Socket<Ends>, waiting: Uint8Array[]): void {
  for (let next = waiting[0]; next; next = waiting[0]) {
    const taken = to.write(next)
    if (taken < next.length) {
      if (taken > 0) waiting[0] = next.subarray(taken)
      return
    }
    waiting.shift()
  }
}
