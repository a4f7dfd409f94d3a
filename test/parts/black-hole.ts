// An address on this machine that neither takes nor refuses connections: a listener whose queue is full, so that the
// system drops whoever else knocks. Firewalls and dead lines look the same.

import { test } from 'bun:test'

/** For tests that need one; where there is no Python to open it they are skipped by name. */
export const holeTest = test.skipIf(Bun.which('python3') === null)

const program = `
import socket, sys
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(0)
knocking = []
for _ in range(3):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(listener.getsockname())
    knocking.append(one)
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
`

export interface BlackHole {
  readonly port: number
  stop(): Promise<void>
}

export async function openBlackHole(): Promise<BlackHole> {
  const holder = Bun.spawn(['python3', '-c', program], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const { value } = await holder.stdout.getReader().read()
  const port = Number(new TextDecoder().decode(value))
  if (!(port > 0)) throw new Error('python3 did not open a port')
  return {
    port,
    async stop() {
      holder.kill()
      await holder.exited
    },
  }
}
