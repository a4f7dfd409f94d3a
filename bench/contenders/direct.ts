// No proxy at all: the load generator against the fake upstream. Its latency is what "added" is added to, and its CPU is
// the upstream's own, there to show that neither of the two is what limits the others.

import type { Contender } from './contender.ts'

export const direct: Contender = {
  name: 'direct',
  cells: 'all',
  byDefault: true,
  async start(setting) {
    return {
      version: 'the upstream itself',
      running: {
        pid: setting.upstreamPid,
        port: Number(new URL(setting.upstreamUrl).port),
        call: (surface, provider) => (surface === provider ? { model: 'direct', headers: {} } : undefined),
        stop: async () => {},
      },
    }
  },
}
