// A relay to PostgreSQL that can hold back the replies of the server: from the confirmation of the next charge's COMMIT
// on, no reply passes on any connection, until `resume` is called.

import type { Socket } from 'bun'
import { pass } from './slow-network.ts'

export interface CommitProxy extends Disposable {
  readonly port: number
  /** Resolves when a charge has been committed; its confirmation and all later replies are held back. */
  stallAtNextCharge(): Promise<void>
  /** Forwards what was held back to the clients that are still connected. */
  resume(): void
}

interface Ends {
  /** Not yet taken by the other side. */
  readonly toServer: Uint8Array[]
  readonly toClient: Uint8Array[]
  server: Socket<Ends> | undefined
  /** A charge was sent, and its COMMIT was not confirmed. */
  hasCharge: boolean
  /** The end of what was looked at, either way: a word may be cut between two reads. */
  sentTail: string
  repliedTail: string
}

/** A member of a charged row, and of no other. */
const chargeWord = '"charge":'
/** How the server confirms a COMMIT. The client sends the word only once per connection, and then its prepared name. */
const confirmation = 'COMMIT\0'

export function startCommitProxy(serverPort: number): CommitProxy {
  let stall: PromiseWithResolvers<void> | undefined
  let isStalled = false
  const clients = new Map<Socket<Ends>, Ends>()

  const lookForCharge = (ends: Ends, chunk: Uint8Array) => {
    const text = ends.sentTail + Buffer.from(chunk).toString('latin1')
    ends.sentTail = text.slice(1 - chargeWord.length)
    if (text.includes(chargeWord)) ends.hasCharge = true
  }
  const lookForConfirmation = (ends: Ends, chunk: Uint8Array) => {
    const text = ends.repliedTail + Buffer.from(chunk).toString('latin1')
    ends.repliedTail = text.slice(1 - confirmation.length)
    if (!ends.hasCharge || !text.includes(confirmation)) return
    ends.hasCharge = false
    if (!stall) return
    isStalled = true
    stall.resolve()
  }
  const listener = Bun.listen<Ends>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      async open(client) {
        const ends: Ends = {
          toServer: [],
          toClient: [],
          server: undefined,
          hasCharge: false,
          sentTail: '',
          repliedTail: '',
        }
        client.data = ends
        clients.set(client, ends)
        ends.server = await Bun.connect<Ends>({
          hostname: '127.0.0.1',
          port: serverPort,
          data: ends,
          socket: {
            data(_, chunk) {
              lookForConfirmation(ends, chunk)
              ends.toClient.push(Uint8Array.from(chunk))
              if (!isStalled) pass(client, ends.toClient)
            },
            drain: (server) => pass(server, ends.toServer),
            close: () => void client.end(),
            error() {},
          },
        }).catch(() => undefined)
        if (ends.server) pass(ends.server, ends.toServer)
        else client.end()
      },
      data(client, chunk) {
        lookForCharge(client.data, chunk)
        client.data.toServer.push(Uint8Array.from(chunk))
        if (client.data.server) pass(client.data.server, client.data.toServer)
      },
      drain: (client) => void (isStalled || pass(client, client.data.toClient)),
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
      for (const [client, { toClient }] of clients) pass(client, toClient)
    },
    [Symbol.dispose]: () => listener.stop(true),
  }
}
