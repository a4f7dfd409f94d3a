import { expect, test } from 'bun:test'
import { generateLoad, type LoadPlan } from './load.ts'

function plan(port: number, fields: Partial<LoadPlan>): LoadPlan {
  return {
    port,
    path: '/',
    headers: [{ a: 'b' }],
    bodies: ['{}'],
    connections: 1,
    arrivalsPerSecond: 0,
    warmupMs: 0,
    windowMs: 400,
    pid: process.pid,
    eventsExpected: 0,
    ...fields,
  }
}

test('an open loop counts requests that could not even begin, a closed one never has them', async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Promise<Response>(() => {}) })
  try {
    const one = { connections: 1, windowMs: 400, drainMs: 50 }
    const closed = await generateLoad(plan(server.port ?? 0, one))
    const open = await generateLoad(plan(server.port ?? 0, { ...one, arrivalsPerSecond: 200 }))
    expect(closed).toMatchObject({ requests: 0, unanswered: 0, p50Ms: null, errors: 0 })
    // 200 per second over 400 ms are 80, of which one is sent and the others wait for its connection.
    expect(open).toMatchObject({ requests: 0, errors: 0 })
    expect(open.unanswered).toBeGreaterThanOrEqual(79)
    expect(open.p50Ms).not.toBeNull()
  } finally {
    await server.stop(true)
  }
})

test('takes turns with callers and bodies', async () => {
  const seen = new Set<string>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      seen.add(`${request.headers.get('caller')} ${await request.text()}`)
      return new Response('{}')
    },
  })
  try {
    const headers = ['a', 'b', 'c', 'd'].map((caller) => ({ caller }))
    await generateLoad(plan(server.port ?? 0, { headers, bodies: ['1', '2'], windowMs: 200 }))
    expect([...seen].sort()).toEqual(['a 1', 'b 2', 'c 1', 'd 2'])
  } finally {
    await server.stop(true)
  }
})
