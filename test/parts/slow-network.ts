// A relay on the loopback that answers later than its target, as a network between two machines does: what the target
// sends is handed on after a delay, in order. What goes to the target is not delayed, so the delay is that of a round trip.

import type { Socket } from 'bun'

export interface SlowNetwork extends Disposable {
  readonly port: number
  /** From now on; what is under way keeps the delay it began with, unless that would change the order. */
  delayMs: number
  /** How often something was sent to the target: of who waits for each answer, the round trips. */
  readonly sends: number
  /** The connections of now go silent for ever, as when a machine vanishes; new ones work. */
  loseConnections(): void
}

interface Ends {
  /** Handed to the socket that asks, and not yet taken by it. */
  readonly back: Uint8Array[]
  readonly there: Uint8Array[]
  target: Socket<Ends> | undefined
  dueMs: number
  isLost: boolean
}

export function startSlowNetwork(targetPort: number, delayMs: number): SlowNetwork {
  const network = { delayMs, sends: 0 }
  const pairs = new WeakMap<Socket<Ends>, Socket<Ends>>()
  const askers = new Set<Socket<Ends>>()
  const targetHandlers = {
    data(target: Socket<Ends>, chunk: Buffer) {
      const asker = pairs.get(target)
      if (!asker || asker.data.isLost) return
      const bytes = Uint8Array.from(chunk)
      const { data } = asker
      data.dueMs = Math.max(data.dueMs, performance.now() + network.delayMs)
      setTimeout(() => pass(asker, data.back, bytes), Math.max(0, data.dueMs - performance.now()))
    },
    drain: (target: Socket<Ends>) => pass(target, target.data.there),
    close: (target: Socket<Ends>) => void (target.data.isLost || pairs.get(target)?.end()),
    error() {},
  }
  const listener = Bun.listen<Ends>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      async open(asker) {
        const data: Ends = { back: [], there: [], target: undefined, dueMs: 0, isLost: false }
        asker.data = data
        askers.add(asker)
        try {
          const target = await Bun.connect<Ends>({
            hostname: '127.0.0.1',
            port: targetPort,
            data,
            socket: targetHandlers,
          })
          pairs.set(target, asker)
          data.target = target
          pass(target, data.there)
        } catch {
          asker.end()
        }
      },
      data(asker, chunk) {
        network.sends++
        if (asker.data.isLost) return
        const { target, there } = asker.data
        if (target) pass(target, there, Uint8Array.from(chunk))
        else there.push(Uint8Array.from(chunk))
      },
      drain: (asker) => pass(asker, asker.data.back),
      close(asker) {
        askers.delete(asker)
        asker.data.target?.end()
      },
      error() {},
    },
  })
  return Object.assign(network, {
    port: listener.port,
    loseConnections() {
      for (const { data } of askers) data.isLost = true
    },
    [Symbol.dispose]: () => listener.stop(true),
  })
}

/** A socket takes what it can at the moment; the rest goes when it says so. */
export function pass(to: Pick<Socket, 'write'>, waiting: Uint8Array[], ...more: Uint8Array[]): void {
  waiting.push(...more)
  for (;;) {
    const next = waiting[0]
    if (!next) return
    const taken = to.write(next)
    if (taken < next.length) {
      if (taken > 0) waiting[0] = next.subarray(taken)
      return
    }
    waiting.shift()
  }
}
