import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { holdOf, settlementOf } from '../../../test/parts/ledger.ts'
import { openManagement } from '../../../test/parts/management.ts'
import { createId } from '../../kernel/ids.ts'

// The clock of the tests stands at 1 800 000 000 s.
const now = '2027-01-15T08:00:00.000Z'

forEachEngine((engine) => {
  test('a workspace is made, read and listed', async () => {
    await using management = await openManagement(engine)
    const workspace = await management.make('/api/workspaces', { name: 'Ünïcode & <b>co</b>' })
    expect(workspace).toEqual({
      id: expect.stringMatching(/^ws_[0-9A-Z]{26}$/),
      name: 'Ünïcode & <b>co</b>',
      limits: {},
      shares_routes: false,
      managed_by: 'api',
      created_at: now,
    })
    expect((await management.ask('GET', `/api/workspaces/${workspace.id}`)).body).toEqual(workspace)
    expect((await management.ask('GET', '/api/workspaces')).body).toEqual({ data: [workspace], next_cursor: null })
  })

  test('a new wallet is empty, a top-up is in it at once, and the ledger lists it newest first', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const wallet = async () => (await management.ask('GET', `/api/workspaces/${id}/wallet`)).body
    expect(await wallet()).toEqual({ balance: '0.00', held: '0.00', available: '0.00', currency: 'USD' })
    const first = await management.make(`/api/workspaces/${id}/topups`, { amount: '25', reference: 'invoice 17' })
    expect(first).toEqual({ id: expect.stringMatching(/^tr_/), amount: '25.00', balance: '25.00' })
    const second = await management.make(`/api/workspaces/${id}/topups`, { amount: '0.000000001', reference: null })
    expect(second).toMatchObject({ amount: '0.000000001', balance: '25.000000001' })
    expect((await management.ledger.hold(holdOf(id, 2_500_000_000n))).kind).toBe('held')
    expect(await wallet()).toEqual({
      balance: '25.000000001',
      held: '2.50',
      available: '22.500000001',
      currency: 'USD',
    })
    const { body } = await management.ask('GET', `/api/workspaces/${id}/transfers`)
    const topUp = { kind: 'topup', direction: 'in', request_id: null, price_version: null, usage: null }
    expect(body).toEqual({
      data: [
        { ...topUp, id: second.id, amount: '0.000000001', reference: null, estimated: false, created_at: now },
        { ...topUp, id: first.id, amount: '25.00', reference: 'invoice 17', estimated: false, created_at: now },
      ],
      next_cursor: null,
    })
  })

  test('a charge is a transfer out of the wallet', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    await management.make(`/api/workspaces/${id}/topups`, { amount: '1.00' })
    const requestId = createId('req')
    await management.ledger.hold(holdOf(id, 300_000_000n, requestId))
    await management.ledger.settle({ ...settlementOf(requestId, 250_000_000n), usage: '{"output":7}' })
    const { body } = await management.ask('GET', `/api/workspaces/${id}/transfers?limit=1`)
    expect(body.data).toMatchObject([
      { kind: 'charge', direction: 'out', amount: '0.25', request_id: requestId, usage: { output: 7 } },
    ])
    expect(body.next_cursor).toBeString()
  })

  test('B1: an amount that is no positive decimal within bounds is refused by name and credits nothing', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    for (const amount of ['0', '0.00', '-1', '1e3', '1000000.01', '0.0000000001', '', ' 1', 5, null, {}, undefined]) {
      const reply = await management.ask('POST', `/api/workspaces/${id}/topups`, { body: { amount } })
      expect([amount, reply.status, reply.body.error.param]).toEqual([amount, 400, 'amount'])
      if (amount !== '1000000.01') continue
      expect(reply.body.error.message).toBe('`amount` must be more than 0 and at most 1000000.00.')
    }
    expect((await management.ask('GET', `/api/workspaces/${id}/transfers`)).body.data).toEqual([])
    expect((await management.ask('GET', `/api/workspaces/${id}/wallet`)).body.balance).toBe('0.00')
  })

  test('a balance may exceed what one top-up may', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    await management.make(`/api/workspaces/${id}/topups`, { amount: '1000000' })
    expect((await management.make(`/api/workspaces/${id}/topups`, { amount: '1000000' })).balance).toBe('2000000.00')
  })

  test('a project is made, changed, read and listed', async () => {
    await using management = await openManagement(engine)
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const path = `/api/workspaces/${workspace.id}/projects`
    const open = await management.make(path, { name: 'open' })
    expect(open).toEqual({
      id: expect.stringMatching(/^prj_/),
      workspace_id: workspace.id,
      name: 'open',
      models: null,
      limits: {},
      managed_by: 'api',
      created_at: now,
    })
    const narrow = await management.make(path, { name: 'narrow', models: ['openai/*', 'a/b'] })
    expect(narrow.models).toEqual(['openai/*', 'a/b'])
    const change = (body: object) => management.ask('PATCH', `/api/projects/${narrow.id}`, { body })
    expect((await change({ name: 'renamed' })).body).toEqual({ ...narrow, name: 'renamed' })
    expect((await change({ models: null })).body).toEqual({ ...narrow, name: 'renamed', models: null })
    expect((await change({ models: ['c/*'] })).body.models).toEqual(['c/*'])
    expect((await management.ask('GET', `/api/projects/${open.id}`)).body).toEqual(open)
    const { body } = await management.ask('GET', path)
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(['open', 'renamed'])
  })

  test('K4: a credential is written, shown by its last four, replaced and deleted', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const list = `/api/workspaces/${id}/credentials`
    const path = `${list}/acme`
    const put = await management.ask('PUT', path, { body: { api_key: 'sk-canary-0123456789-9f3e' } })
    expect([put.status, put.body]).toEqual([
      200,
      {
        id: expect.stringMatching(/^cred_/),
        provider: 'acme',
        last4: '9f3e',
        base_url: null,
        created_at: now,
        updated_at: now,
      },
    ])
    expect((await management.ask('GET', list)).body).toEqual({ data: [put.body], next_cursor: null })
    expect((await management.ask('GET', path)).body).toEqual(put.body)
    const elsewhere = { api_key: 'sk-canary-0123456789-aaaa', base_url: 'https://llm.example.test/v1' }
    const replaced = await management.ask('PUT', path, { body: elsewhere })
    expect(replaced.body).toMatchObject({ last4: 'aaaa', base_url: 'https://llm.example.test/v1' })
    const deleted = await management.ask('DELETE', path)
    expect([deleted.status, deleted.text]).toEqual([204, ''])
    expect((await management.ask('DELETE', path)).status).toBe(404)
    expect((await management.ask('GET', path)).status).toBe(404)
    expect(management.forgotten).toEqual([id, id, id])
    const audit = await management.ask('GET', '/api/audit')
    expect(audit.text).not.toContain('canary')
    expect(audit.body.data.map(({ action }: { action: string }) => action)).toEqual([
      'credential.delete',
      'credential.put',
      'credential.put',
      'workspace.create',
    ])
  })

  test('a credential that cannot be used is refused by field, without repeating the key', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const put = (body: object, provider = 'acme') =>
      management.ask('PUT', `/api/workspaces/${id}/credentials/${provider}`, { body })
    const key = 'sk-canary-0123456789'
    const cases: [object, string, number, string | null][] = [
      [{ api_key: `${key} ${key}` }, 'acme', 400, 'api_key'],
      [{ api_key: '' }, 'acme', 400, 'api_key'],
      [{ api_key: 17 }, 'acme', 400, 'api_key'],
      [{}, 'acme', 400, 'api_key'],
      [{ api_key: key, base_url: 'http://127.0.0.1' }, 'acme', 400, 'base_url'],
      [{ api_key: key }, 'nobody', 404, null],
    ]
    for (const [body, provider, status, param] of cases) {
      const reply = await put(body, provider)
      expect([body, reply.status, reply.body.error.param]).toEqual([body, status, param])
      expect(reply.text).not.toContain('canary')
    }
  })

  test('requests are listed and found, the catalog is sorted and whole', async () => {
    await using management = await openManagement(engine)
    const [one, two] = [createId('ws'), createId('ws')]
    const [a, b] = [createId('key'), createId('key')]
    const ids = [createId('req'), createId('req'), createId('req')]
    management.logged.push(
      { id: ids[0] ?? '', workspace_id: one, key_id: a, attempts: [] },
      { id: ids[1] ?? '', workspace_id: one, key_id: b, attempts: [] },
      { id: ids[2] ?? '', workspace_id: two, key_id: createId('key'), attempts: [] },
    )
    const listed = async (query: string) =>
      (await management.ask('GET', `/api/requests${query}`)).body.data.map(({ id }: { id: string }) => id)
    expect(await listed('')).toEqual([ids[2], ids[1], ids[0]])
    expect(await listed(`?workspace_id=${one}`)).toEqual([ids[1], ids[0]])
    expect(await listed(`?workspace_id=${one}&key_id=${a}`)).toEqual([ids[0]])
    expect((await management.ask('GET', `/api/requests/${ids[0]}`)).body).toMatchObject({
      id: ids[0],
      workspace_id: one,
      transfers: [],
    })
    expect((await management.ask('GET', `/api/requests/${createId('req')}`)).status).toBe(404)
    const catalog = await management.ask('GET', '/api/catalog', { token: null })
    expect(catalog.body.data.map(({ id }: { id: string }) => id)).toEqual(['a/one', 'b/two', 'c/three'])
    expect(catalog.body.next_cursor).toBeNull()
  })

  test('G2: changes stand in the audit log with who, what and the request that made them', async () => {
    await using management = await openManagement(engine)
    const made = await management.ask('POST', '/api/workspaces', { body: { name: 'acme' } })
    const path = `/api/workspaces/${made.body.id}/topups`
    const topUp = await management.ask('POST', path, { body: { amount: '5' } })
    const { body } = await management.ask('GET', '/api/audit')
    expect(body.data).toMatchObject([
      {
        sequence: 2,
        at: now,
        actor: 'management token',
        action: 'wallet.topup',
        object: made.body.id,
        details: { transfer: topUp.body.id, amount: '5.00' },
        request_id: topUp.headers.get('x-request-id'),
      },
      { sequence: 1, action: 'workspace.create', request_id: made.headers.get('x-request-id') },
    ])
  })

  test('a top-up that was credited is told as such, even where the audit log cannot be written', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    await management.database.transaction((sql) => sql`DELETE FROM audit_head`)
    await management.make(`/api/workspaces/${id}/topups`, { amount: '5' })
    expect((await management.ask('GET', `/api/workspaces/${id}/wallet`)).body.balance).toBe('5.00')
    expect(management.defects).toHaveLength(1)
  })
})
