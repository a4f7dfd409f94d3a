import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { openManagement } from '../../../test/parts/management.ts'
import type { Change } from '../../tenancy/changes/change.ts'

const path = '/api/models/acme/large/price'

forEachEngine((engine) => {
  test('other replicas are told of a price by its own commit: with it or not at all', async () => {
    const recorded: Change[] = []
    const told: Change[] = []
    let isAway = true
    await using management = await openManagement(engine, {
      changes: {
        async record(sql, change) {
          if (isAway) throw new Error('lost')
          // Only inside its transaction the price can be seen here.
          const rows = await sql<{ model_id: string }>`SELECT model_id FROM price_overrides`
          if (rows.length === 1 || recorded.length > 0) recorded.push(change)
          return { change }
        },
        tell: async ({ change }) => void told.push(change),
      },
    })
    const { database, ask } = management
    const put = () => ask('PUT', path, { body: { input: '1.00', output: '2.00' } })
    expect((await put()).status).toBe(500)
    expect([...(await database.sql`SELECT model_id FROM price_overrides`)]).toEqual([])
    isAway = false
    expect((await put()).status).toBe(200)
    expect((await ask('DELETE', path)).status).toBe(200)
    const change: Change = { kind: 'price', id: 'acme/large' }
    expect([recorded, told]).toEqual([
      [change, change],
      [change, change],
    ])
    // Nothing was set any more, so there is nothing to tell.
    expect((await ask('DELETE', path)).status).toBe(404)
    expect(told).toHaveLength(2)
  })
})
