import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { openManagement } from '../../../test/parts/management.ts'
import { Failure } from '../../kernel/failure.ts'
import type { Checkout } from '../payments/stripe-checkout.ts'

forEachEngine((engine) => {
  test('a workspace is renamed and shares routes; what is left out stays, and each change is on record', async () => {
    await using management = await openManagement(engine)
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const path = `/api/workspaces/${workspace.id}`
    const change = (body: object) => management.ask('PATCH', path, { body })
    expect((await change({ shares_routes: true })).body).toEqual({ ...workspace, shares_routes: true })
    expect((await change({ name: 'acme inc' })).body).toEqual({ ...workspace, name: 'acme inc', shares_routes: true })
    expect((await change({})).body).toEqual({ ...workspace, name: 'acme inc', shares_routes: true })
    expect((await management.ask('GET', path)).body.shares_routes).toBe(true)
    const { body: audit } = await management.ask('GET', '/api/audit')
    expect(audit.data).toMatchObject([
      { action: 'workspace.update', object: workspace.id, details: { renamed: true } },
      { action: 'workspace.update', object: workspace.id, details: { shares_routes: true } },
      { action: 'workspace.create' },
    ])
  })

  test('T4: what a workspace is not asked for is refused by name', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const cases: [object, string][] = [
      [{ balance: '5.00' }, 'balance'],
      [{ id: 'ws_1' }, 'id'],
      [{ shares_routes: 'yes' }, 'shares_routes'],
      [{ shares_routes: null }, 'shares_routes'],
      [{ name: '' }, 'name'],
    ]
    for (const [body, param] of cases) {
      const reply = await management.ask('PATCH', `/api/workspaces/${id}`, { body })
      expect([reply.status, reply.body.error.param]).toEqual([400, param])
    }
  })

  test('without payments there is no call that starts one', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const reply = await management.ask('POST', `/api/workspaces/${id}/checkouts`, { body: { amount: '25.00' } })
    expect(reply.status).toBe(404)
    expect((await management.ask('GET', '/api/openapi.json')).text).not.toContain('/checkouts')
  })

  test('a payment is started for the workspace and the amount, once for each Idempotency-Key', async () => {
    const started: [string, bigint][] = []
    const checkout: Checkout = async (workspaceId, amount) => {
      started.push([workspaceId, amount])
      return { id: `cs_test_${started.length}`, url: `https://checkout.stripe.test/${started.length}` }
    }
    await using management = await openManagement(engine, { checkout })
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const ask = (amount: string, key?: string) =>
      management.ask('POST', `/api/workspaces/${id}/checkouts`, {
        body: { amount },
        ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
      })
    const plain = await ask('25.00')
    expect([plain.status, plain.body]).toEqual([201, { id: 'cs_test_1', url: 'https://checkout.stripe.test/1' }])
    const first = await ask('7.5', 'invoice-17')
    expect(first.body.id).toBe('cs_test_2')
    expect((await ask('7.5', 'invoice-17')).body).toEqual(first.body)
    const other = await ask('8', 'invoice-17')
    expect([other.status, other.body.error.param]).toEqual([400, 'Idempotency-Key'])
    expect(started).toEqual([
      [id, 25_000_000_000n],
      [id, 7_500_000_000n],
    ])
  })

  test('a payment that could not be started leaves its Idempotency-Key free', async () => {
    const answers = [new Failure('OVERLOADED', 'Later.', { retryAfterMs: 3000 }), { id: 'cs_1', url: 'https://s.test' }]
    await using management = await openManagement(engine, { checkout: async () => answers.shift() as Failure })
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const ask = () =>
      management.ask('POST', `/api/workspaces/${id}/checkouts`, {
        body: { amount: '1' },
        headers: { 'idempotency-key': 'again' },
      })
    expect([(await ask()).status, (await ask()).status]).toEqual([503, 201])
  })
})
