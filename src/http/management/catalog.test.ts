import { expect, test } from 'bun:test'
import { createEngine, forEachEngine } from '../../../test/parts/engines.ts'
import { createJumpClock } from '../../../test/parts/jump-clock.ts'
import { openManagement } from '../../../test/parts/management.ts'
import type { Change } from '../../tenancy/changes.ts'
import { installation } from '../../tenancy/principal.ts'
import { createPageBudget, type PageBudget } from '../../web/page-budget.ts'

const path = '/api/models/acme/large/price'

forEachEngine((engine) => {
  test('announces a price to other replicas in the commit that sets it, or not at all', async () => {
    const recorded: Change[] = []
    const announced: Change[] = []
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
        tell: async ({ change }) => void announced.push(change),
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
    expect([recorded, announced]).toEqual([
      [change, change],
      [change, change],
    ])
    // Nothing was set any more, so there is nothing to tell.
    expect((await ask('DELETE', path)).status).toBe(404)
    expect(announced).toHaveLength(2)
  })
})

const stranger = { token: null }

test('shows the catalog to everyone, unless the operator makes it private', async () => {
  let isPublic = true
  await using management = await openManagement(createEngine('sqlite'), { catalogIsPublic: () => isPublic })
  const statuses = async () => [
    (await management.ask('GET', '/api/catalog', stranger)).status,
    (await management.ask('GET', '/api/catalog')).status,
    (await management.ask('GET', '/api/openapi.json', stranger)).status,
  ]
  expect(await statuses()).toEqual([200, 200, 200])
  isPublic = false
  expect(await statuses()).toEqual([401, 200, 200])
})

test('R8: limits the work done for strangers in the catalog, and always serves the token', async () => {
  const clock = createJumpClock()
  const budget = createPageBudget(clock)
  await using management = await openManagement(createEngine('sqlite'), {
    budget,
    catalog: () => {
      clock.jump(1)
      return [{ id: 'a/one' }]
    },
  })
  const asked = []
  for (let times = 0; times < 4; times++) asked.push(await management.ask('GET', '/api/catalog', stranger))
  // A second each, of which a quarter is forgiven; up to two are granted.
  expect(asked.map(({ status }) => status)).toEqual([200, 200, 200, 503])
  expect(asked[3]?.headers.get('retry-after')).toBe('1')
  expect(asked[3]?.body.error.code).toBe('OVERLOADED')
  expect((await management.ask('GET', '/api/catalog')).body.data).toMatchObject([{ id: 'a/one' }])
})

test('serves a console session outside the budget for strangers', async () => {
  const real = createPageBudget(createJumpClock())
  let inLine = 0
  const budget: PageBudget = {
    ...real,
    spend(run) {
      inLine++
      return real.spend(run)
    },
  }
  await using management = await openManagement(createEngine('sqlite'), {
    budget,
    sessionOf: async (request) => (request.headers.has('cookie') ? installation('console session') : undefined),
    catalog: () => [{ id: 'a/one' }],
  })
  const statusOf = async (headers: Record<string, string>) =>
    (await management.ask('GET', '/api/catalog', { ...stranger, headers })).status
  expect([await statusOf({ cookie: 'c=1' }), inLine]).toEqual([200, 0])
  expect([await statusOf({}), inLine]).toEqual([200, 1])
})
