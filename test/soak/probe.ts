// Loaded into the gateway's process before it: answers on a separate socket what only the inside knows, such as the
// heap and the timers. It changes nothing of the gateway, and collects garbage only when asked to.

import { heapStats } from 'bun:jsc'

/** The request in one line on the socket. */
export type ProbeQuestion = 'read' | 'collect'

export interface ProbeReading {
  readonly heapBytes: number
  readonly objects: number
  /** Timers that are set, as far as they can be distinguished from those that are not collected yet. */
  readonly timers: number
  /** Listeners of the process, and listeners and signals that wait for an abort. */
  readonly listeners: number
  /** How many objects of each type; only when garbage was collected before. */
  readonly types: Readonly<Record<string, number>> | undefined
}

function read(question: ProbeQuestion): ProbeReading {
  if (question === 'collect') for (let round = 0; round < 3; round++) Bun.gc(true)
  const { heapSize, objectCount, objectTypeCounts } = heapStats()
  const ofProcess = process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
  return {
    heapBytes: heapSize,
    objects: objectCount,
    timers: objectTypeCounts.Timeout ?? 0,
    listeners: ofProcess + (objectTypeCounts.AbortSignal ?? 0),
    types: question === 'collect' ? objectTypeCounts : undefined,
  }
}

const socketPath = process.env.SOAK_PROBE
// The gateway's own threads load this file too.
if (socketPath !== undefined && Bun.isMainThread) {
  Bun.listen({
    unix: socketPath,
    socket: {
      data(socket, bytes) {
        const question = bytes.toString('utf8').trim() === 'collect' ? 'collect' : 'read'
        // Large enough for every type, and the socket of a neighbour takes it at once.
        socket.end(`${JSON.stringify(read(question))}\n`)
      },
    },
  }).unref()
}
