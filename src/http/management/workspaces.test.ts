import { expect, test } from 'bun:test'
import { storeRequests } from '../../../test/observe/stored-requests.ts'
import { forEachEngine, type TestEngine, testWith } from '../../../test/parts/engines.ts'
import { openManagement, type TestManagement } from '../../../test/parts/management.ts'
import { Failure } from '../../kernel/failure.ts'
import type { Nano } from '../../kernel/money.ts'
import { verifyAudit } from '../../tenancy/audit.ts'
import type { Checkout } from '../payments/stripe-checkout.ts'

forEachEngine((engine) => {
  const storeTest = testWith(() => openManagement(engine))

  storeTest(
    'renames a workspace and lets it share routes, keeps absent fields, and audits each change',
    async (management) => {
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
    },
  )

  storeTest('T4: refuses fields that a workspace does not have by name', async (management) => {
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

  storeTest('names the settings if a payment is started and payments are not configured', async (management) => {
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const reply = await management.ask('POST', `/api/workspaces/${id}/checkouts`, { body: { amount: '25.00' } })
    const message = expect.stringContaining('Set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET')
    expect([reply.status, reply.body.error.message]).toEqual([404, message])
  })

  test('starts a payment for the workspace and the amount, once for each Idempotency-Key', async () => {
    const started: [string, bigint][] = []
    const checkout: Checkout = async (workspaceId, { amount }) => {
      started.push([workspaceId, amount])
      return {
        id: `cs_test_${started.length}`,
        url: `https://checkout.stripe.test/${started.length}`,
        payment_id: 'pay_1',
      }
    }
    await using management = await openManagement(engine, { checkout })
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const ask = (amount: string, key?: string) =>
      management.ask('POST', `/api/workspaces/${id}/checkouts`, {
        body: { amount },
        ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
      })
    const plain = await ask('25.00')
    expect([plain.status, plain.body]).toEqual([
      201,
      { id: 'cs_test_1', url: 'https://checkout.stripe.test/1', payment_id: 'pay_1' },
    ])
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

  test('leaves the Idempotency-Key of a payment that could not be started free', async () => {
    const failures = [new Failure('OVERLOADED', 'Later.', { retryAfterMs: 3000 })]
    const checkout = async () => {
      for (const failure of failures.splice(0)) throw failure
      return { id: 'cs_1', url: 'https://s.test', payment_id: 'pay_1' }
    }
    await using management = await openManagement(engine, { checkout })
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const ask = () =>
      management.ask('POST', `/api/workspaces/${id}/checkouts`, {
        body: { amount: '1' },
        headers: { 'idempotency-key': 'again' },
      })
    expect([(await ask()).status, (await ask()).status]).toEqual([503, 201])
  })
})

interface Household {
  readonly management: TestManagement
  readonly id: string
  readonly projectId: string
  readonly keyId: string
  readonly secret: string
}

const person = 'Jane Roe'

/** A workspace of a person with everything that is kept of one, and the requests of somebody else beside it. */
async function openHousehold(engine: TestEngine): Promise<Household & AsyncDisposable> {
  const management = await openManagement(engine)
  const make = async (name: string) => {
    const { id } = await management.make('/api/workspaces', { name })
    const project = await management.make(`/api/workspaces/${id}/projects`, { name: `project of ${name}` })
    const key = await management.make(`/api/projects/${project.id}/keys`, {
      name: `key of ${name}`,
      sources: ['203.0.113.7'],
    })
    await management.make(`/api/workspaces/${id}/topups`, { amount: '5.00', reference: 'invoice 17' })
    const caller = { workspaceId: id, projectId: project.id, keyId: key.id }
    // Without a charge, which would be a transfer.
    const facts = { startedAt: 1_790_000_000_000, caller, charge: undefined }
    return { id, projectId: project.id, keyId: key.id, secret: key.secret as string, facts }
  }
  const [jane, other] = [await make(person), await make('somebody else')]
  await management.ask('PUT', `/api/workspaces/${jane.id}/credentials/acme`, { body: { api_key: 'sk-of-jane-4711' } })
  // Nearly a portion of them, one that was charged, and one of somebody else's.
  const charged = { ...jane.facts, charge: 450_000n as Nano }
  const uncharged = Array.from({ length: 402 }, () => jane.facts)
  await storeRequests(management.database, [charged, ...uncharged, other.facts])
  const dispose = () => management[Symbol.asyncDispose]()
  return { ...jane, management, [Symbol.asyncDispose]: dispose }
}

async function requestsOf({ database }: TestManagement, workspaceId: string): Promise<number> {
  const [row] = await database.sql<{
    n: bigint
  }>`SELECT COUNT(*) AS n FROM requests WHERE workspace_id = ${workspaceId}`
  return Number(row?.n)
}

/** Every text in every table that a person may be named in. */
async function everything({ database: { sql } }: TestManagement): Promise<string> {
  const tables = [
    'workspaces',
    'projects',
    'api_keys',
    'credentials',
    'auto_topups',
    'audit',
    'rotated_secrets',
    'idempotency',
  ]
  const rows = await Promise.all(tables.map((table) => sql`SELECT * FROM ${sql(table)}`))
  return JSON.stringify(rows, (_, value) => (typeof value === 'bigint' ? String(value) : value))
}

forEachEngine((engine) => {
  test('G3: exports every row of the workspace, none of another, and no secret', async () => {
    await using home = await openHousehold(engine)
    const { management, id, projectId, keyId, secret } = home
    management.logged.push({ id: 'req_1', workspace_id: id }, { id: 'req_2', workspace_id: 'ws_other' })
    const url = `${management.url}/api/workspaces/${id}/export`
    const response = await fetch(url, { headers: { authorization: 'Bearer token-of-the-operator-0123456789' } })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
    const text = await response.text()
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ record, id, object }) => `${record} ${object ?? id ?? ''}`.trim())).toEqual([
      `workspace ${id}`,
      'wallet',
      'plan',
      `project ${projectId}`,
      `key ${keyId}`,
      expect.stringMatching(/^credential cred_/),
      // The charge, then the top-up.
      expect.stringMatching(/^transfer tr_/),
      expect.stringMatching(/^transfer tr_/),
      'request req_1',
      // Changes of the workspace, its project and its key.
      ...[`audit ${id}`, `audit ${id}`, `audit ${id}`, `audit ${id}`],
      ...[`audit ${projectId}`, `audit ${keyId}`],
    ])
    expect(lines[1]).toMatchObject({ balance: '5.00' })
    expect(lines.filter(({ record }) => record === 'audit').map(({ action }) => action)).toEqual([
      ...['workspace.create', 'wallet.topup', 'credential.put', 'workspace.export', 'project.create', 'key.create'],
    ])
    for (const hidden of [secret, 'sk-of-jane', 'somebody else']) expect(text).not.toContain(hidden)
  })

  test('G3: erases names, keys, addresses, provider keys and requests, but not the money or other workspaces', async () => {
    await using home = await openHousehold(engine)
    const { management, id, secret } = home
    const authenticate = () => management.authenticator.authenticate(new Headers({ authorization: `Bearer ${secret}` }))
    expect(await authenticate()).toMatchObject({ workspaceId: id })
    const topUp = { workspace_id: id, is_on: 1n, threshold: 1n, amount: 1n, month_max: 1n, card: person }
    await management.database.transaction((sql) => sql`INSERT INTO auto_topups ${sql([topUp])}`)
    const erase = () => management.ask('POST', `/api/workspaces/${id}/erase`, { body: { confirm: 'erase' } })
    const { body } = await erase()
    expect(body).toEqual({ id, keys: 1, credentials: 1, responses: 0, batches: 0, requests: 403 })

    expect(await authenticate()).toMatchObject({ code: 'UNAUTHORIZED' })
    expect(management.forgotten).toContain(id)
    const left = await everything(management)
    for (const gone of [person, 'sk-of-jane']) expect(left).not.toContain(gone)
    expect(left).toContain('somebody else')
    expect(await requestsOf(management, id)).toBe(0)
    expect((await management.ask('GET', `/api/workspaces/${id}`)).body.name).toBe('erased')
    const [key] = (await management.ask('GET', `/api/keys?workspace_id=${id}`)).body.data
    expect(key).toMatchObject({ name: 'erased', last4: '', sources: null, status: 'revoked' })

    expect((await management.ask('GET', `/api/workspaces/${id}/wallet`)).body.balance).toBe('5.00')
    const { data } = (await management.ask('GET', `/api/workspaces/${id}/transfers`)).body
    expect(data).toHaveLength(2)
    expect(data).toContainEqual(expect.objectContaining({ kind: 'charge', amount: '0.00045' }))
    expect(data).toContainEqual(expect.objectContaining({ kind: 'topup', amount: '5.00', reference: 'invoice 17' }))
    const [last] = (await management.ask('GET', '/api/audit')).body.data
    expect(last).toMatchObject({ action: 'workspace.erase', object: id, details: { keys: 1, credentials: 1 } })
    expect((await verifyAudit(management.database)).findings).toEqual([])
    const { data: all } = (await management.ask('GET', '/api/workspaces')).body
    const other = all.find((each: { name: string }) => each.name === 'somebody else')
    expect(await requestsOf(management, other.id)).toBe(1)

    expect((await erase()).body).toEqual({ id, keys: 0, credentials: 0, responses: 0, batches: 0, requests: 0 })
  })

  test('erases nothing without the confirmation, and no workspace that a file declares', async () => {
    await using management = await openManagement(engine)
    const headers = { 'x-tollgate-managed-by': 'file' }
    const { body: declared } = await management.ask('POST', '/api/workspaces', { body: { name: person }, headers })
    const workspace = await management.make('/api/workspaces', { name: person })
    for (const body of [{}, { confirm: person }, { confirm: 'Erase' }, { confirm: true }]) {
      const reply = await management.ask('POST', `/api/workspaces/${workspace.id}/erase`, { body })
      expect([reply.status, reply.body.error.param]).toEqual([400, 'confirm'])
    }
    const body = { confirm: 'erase' }
    expect((await management.ask('POST', `/api/workspaces/${declared.id}/erase`, { body })).status).toBe(400)
    expect((await everything(management)).split(`"${person}"`)).toHaveLength(3)
  })
})
