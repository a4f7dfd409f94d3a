// A request with an idempotency key whose process stood still between its claim and its hold: another replica has taken
// the key over, and only the other one may ask a provider.

import { describe, expect, test } from 'bun:test'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { startGateway, upstreamConfig } from '../parts/gateway.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { startSlowNetwork } from '../parts/slow-network.ts'
import { bodyOf, bothSurfaces } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { openPostgresStore } from './postgres-store.ts'

describe.skipIf(findPostgresPrograms() === undefined)('a key that was taken over before anything was sent', () => {
  test.each(bothSurfaces)('is reported on the $name surface, and nothing is held, sent or charged', async (surface) => {
    await using store = await openPostgresStore()
    const { database } = store
    const upstream = startUpstream((_, reply) => reply.json(200, {}))
    const wrapLedger = (real: Ledger): Ledger => ({
      ...real,
      async hold(request) {
        await database.transaction((sql) => sql`UPDATE idempotency SET request_id = ${'req_twin'}`)
        return real.hold(request)
      },
    })
    const env = { DATABASE_URL: store.url }
    const gateway = await startGateway({ config: upstreamConfig(upstream.url), env, wrapLedger })
    try {
      const headers = { ...surface.headers, 'x-api-key': gateway.key, 'content-type': 'application/json' }
      const answer = await fetch(gateway.url + surface.path, {
        method: 'POST',
        headers: { ...headers, 'idempotency-key': 'k' },
        body: bodyOf(surface),
      })
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '1'])
      expect(await answer.text()).toContain('Another request has taken over this idempotency key')
      expect(upstream.calls).toEqual([])
      while ((await database.sql`SELECT 1 FROM holds WHERE state = 'open'`).length > 0) await Bun.sleep(1)
      expect(await database.sql`SELECT 1 FROM transfers WHERE kind = 'charge'`).toEqual([])
      // The twin's claim is the twin's.
      expect(await database.sql`SELECT request_id FROM idempotency`).toEqual([{ request_id: 'req_twin' }])
    } finally {
      await gateway.stop()
      upstream.stop()
    }
  })

  test('is not taken for ours where the database is lost before it can say so', async () => {
    await using store = await openPostgresStore()
    const { database } = store
    const address = new URL(store.url)
    using network = startSlowNetwork(Number(address.port), 0)
    address.port = String(network.port)
    const upstream = startUpstream((_, reply) => reply.json(200, {}))
    const wrapLedger = (real: Ledger): Ledger => ({
      ...real,
      async hold(request) {
        const outcome = await real.hold(request)
        network.loseConnections()
        return outcome
      },
    })
    const env = { DATABASE_URL: address.href }
    const gateway = await startGateway({ config: upstreamConfig(upstream.url), env, wrapLedger, timeoutFactor: 1 })
    try {
      const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'x-api-key': gateway.key, 'content-type': 'application/json', 'idempotency-key': 'k' },
        body: JSON.stringify({ model: 'test/chat', messages: [{ role: 'user', content: 'hi' }] }),
      })
      expect([answer.status, answer.headers.has('retry-after')]).toEqual([503, true])
      expect(upstream.calls).toEqual([])
      while ((await database.sql`SELECT 1 FROM holds WHERE state = 'open'`).length > 0) await Bun.sleep(10)
      while ((await database.sql`SELECT 1 FROM idempotency`).length > 0) await Bun.sleep(10)
      expect(await database.sql`SELECT 1 FROM transfers WHERE kind = 'charge'`).toEqual([])
    } finally {
      await gateway.stop()
      upstream.stop()
    }
  })
})
