import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { openManagement, type TestManagement } from '../../../test/parts/management.ts'
import { createId } from '../../kernel/ids.ts'
import { createWorkspace } from '../../tenancy/workspaces.ts'

/** All pages of a list, by the sizes they came in. */
async function turnPages({ ask }: TestManagement, path: string, limit: number) {
  const sizes: number[] = []
  const items: { id: string; name: string }[] = []
  let cursor = ''
  do {
    const { body } = await ask('GET', `${path}?limit=${limit}${cursor && `&cursor=${cursor}`}`)
    sizes.push(body.data.length)
    items.push(...body.data)
    cursor = body.next_cursor ?? ''
  } while (cursor !== '')
  return { sizes, items }
}

const act = { actor: 'test', at: 0 }

forEachEngine((engine) => {
  test('120 items come in pages, each once and in order', async () => {
    await using management = await openManagement(engine)
    const names = Array.from({ length: 120 }, (_, at) => `w-${at}`)
    await management.database.transaction(async (sql) => {
      for (const name of names) await createWorkspace(sql, { name }, act)
    })
    const { sizes, items } = await turnPages(management, '/api/workspaces', 50)
    expect(sizes).toEqual([50, 50, 20])
    expect(items.map(({ name }) => name)).toEqual(names)
    expect((await turnPages(management, '/api/workspaces', 60)).sizes).toEqual([60, 60])
    expect((await turnPages(management, '/api/workspaces', 200)).sizes).toEqual([120])
    expect((await management.ask('GET', '/api/workspaces')).body.data).toHaveLength(50)
    const audit = await turnPages(management, '/api/audit', 100)
    expect(audit.sizes).toEqual([100, 20])
    const logged = names.map(() => ({ id: createId('req') }))
    management.logged.push(...logged)
    const requests = await turnPages(management, '/api/requests', 100)
    expect(requests.items.map(({ id }) => id)).toEqual(logged.map(({ id }) => id).reverse())
    expect((await turnPages(management, '/api/catalog', 2)).sizes).toEqual([2, 1])
  })

  test('transfers are paged newest first', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const made: string[] = []
    for (let at = 0; at < 5; at++) {
      made.push((await management.make(`/api/workspaces/${id}/topups`, { amount: '1' })).id)
    }
    const { sizes, items } = await turnPages(management, `/api/workspaces/${id}/transfers`, 2)
    expect(sizes).toEqual([2, 2, 1])
    expect(items.map((transfer) => transfer.id)).toEqual(made.reverse())
  })

  test('a wrong limit or cursor is refused by name', async () => {
    await using management = await openManagement(engine)
    for (const limit of ['0', '201', '-1', '1.5', 'x', '']) {
      const reply = await management.ask('GET', `/api/workspaces?limit=${limit}`)
      expect([limit, reply.status, reply.body.error.param]).toEqual([limit, 400, 'limit'])
      expect(reply.body.error.message).toBe('`limit` must be a whole number from 1 to 200.')
    }
    for (const cursor of ['', '%00', 'AAAA', 'x'.repeat(1000)]) {
      const reply = await management.ask('GET', `/api/workspaces?cursor=${cursor}`)
      expect([cursor, reply.status, reply.body.error.param]).toEqual([cursor, 400, 'cursor'])
    }
  })
})
