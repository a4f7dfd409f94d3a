// An address on this machine that neither takes nor refuses connections: a listener whose queue is full, so that the
// system drops every other connection. Firewalls and dead lines look the same.

import { test } from 'bun:test'

/** For tests that need one; where there is no Python to open it they are skipped by name. */
export const holeTest = test.skipIf(Bun.which('python3') === null)

/** Fills the queue of a listener that never accepts again. */
const fill = `
import socket, sys
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(0)
knocking = []
def fill():
    for _ in range(3):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(listener.getsockname())
        knocking.append(one)
`

const hole = `${fill}
fill()
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
`

/** Reads one request, fills its queue, and answers with the line that it is given. */
const busy = `${fill}
print(listener.getsockname()[1], flush=True)
call, _ = listener.accept()
received = b''
while not received.endswith(b'}'):
    received += call.recv(65536)
fill()
print('received', flush=True)
reply = sys.stdin.readline().strip().encode()
call.sendall(b'HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n%s' % (len(reply), reply))
sys.stdin.read()
`

export interface BlackHole {
  readonly port: number
  stop(): Promise<void>
}

export async function openBlackHole(): Promise<BlackHole> {
  const { port, stop } = await run(hole)
  return { port, stop }
}

/** A server that accepts one connection and then no other, like one with a full accept queue. */
export interface BusyServer extends BlackHole {
  /** Resolves once it has received a whole request. */
  received(): Promise<void>
  /** Ends the call with this JSON. */
  reply(body: unknown): void
}

export async function startBusyServer(): Promise<BusyServer> {
  const { holder, nextLine, ...server } = await run(busy)
  return {
    ...server,
    async received() {
      await nextLine()
    },
    reply(body) {
      holder.stdin.write(`${JSON.stringify(body)}\n`)
      void holder.stdin.flush()
    },
  }
}

async function run(program: string) {
  const holder = Bun.spawn(['python3', '-c', program], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const reader = holder.stdout.getReader()
  const nextLine = async () => new TextDecoder().decode((await reader.read()).value)
  const port = Number(await nextLine())
  if (!(port > 0)) throw new Error('python3 did not open a port')
  return {
    holder,
    nextLine,
    port,
    async stop() {
      holder.kill()
      await holder.exited
    },
  }
}
