// Loaded into a gateway's process before it, by tests that share a busy machine: the gateway looks again and again how
// late it is, and turns requests away for seconds when it often is. With this it never looks; nothing else changes.

import { sampleMs } from '../../src/http/shedding.ts'

if (Bun.isMainThread) {
  const realInterval = globalThis.setInterval
  Reflect.set(globalThis, 'setInterval', (work: () => void, milliseconds?: number, ...rest: unknown[]) =>
    realInterval(milliseconds === sampleMs ? () => {} : work, milliseconds, ...rest),
  )
}
