// The answer to a streamed request, as the runtime wants one: a stream that is pumped while the client's socket takes more.

import { Pump, type PumpInput } from './pump.ts'

/**
 * What may wait for a client's socket, and one read more. In bytes: a read brings whatever has come meanwhile, and from
 * a fast provider that is a megabyte. Above the size of an event, since a pull that stays in its loop costs a fifth less
 * per event than one call for each (bench/README.md).
 */
const readAheadBytes = 64 * 1024

export function answerStream(input: PumpInput): ReadableStream<Uint8Array> {
  const pump = new Pump(input)
  return new ReadableStream(
    {
      start(controller) {
        // Headers that go out early need bytes to travel with.
        if (input.opening instanceof Promise) controller.enqueue(input.surface.keepAlive)
      },
      pull: (controller) => pump.pull(controller),
      cancel: () => pump.leave(),
    },
    { highWaterMark: readAheadBytes, size: byteLength },
  )
}

function byteLength(chunk: Uint8Array | undefined): number {
  return chunk?.byteLength ?? 0
}
