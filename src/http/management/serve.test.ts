import { expect, test } from 'bun:test'
import { forEachEngine, testWith } from '../../../test/parts/engines.ts'
import { createTestTimers, holdOf, settlementOf } from '../../../test/parts/ledger.ts'
import type { Reply } from '../../../test/parts/manage.ts'
import { openManagement, type TestManagement } from '../../../test/parts/management.ts'
import { createId } from '../../kernel/ids.ts'
import { unavailable } from '../../ledger/account.ts'
import { clean } from '../../ledger/clean.ts'
import type { Funding } from '../../ledger/fund.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import { createToken } from '../../tenancy/management-tokens.ts'
import { addMember, insertPerson } from '../../tenancy/people.ts'
import { createWorkspace } from '../../tenancy/workspaces.ts'

// The clock of the tests stands at 1 800 000 000 s.
const now = '2027-01-15T08:00:00.000Z'

forEachEngine((engine) => {
  const storeTest = testWith(() => openManagement(engine))

  storeTest('creates, reads and lists a workspace', async (management) => {
    const workspace = await management.make('/api/workspaces', { name: 'Ünïcode & <b>co</b>' })
    expect(workspace).toEqual({
      id: expect.stringMatching(/^ws_[0-9A-Z]{26}$/),
      name: 'Ünïcode & <b>co</b>',
      limits: {},
      spend: [],
      shares_routes: false,
      low_balance: '1.00',
      price_list: null,
      managed_by: 'api',
      created_at: now,
    })
    expect((await management.ask('GET', `/api/workspaces/${workspace.id}`)).body).toEqual(workspace)
    expect((await management.ask('GET', '/api/workspaces')).body).toEqual({ data: [workspace], next_cursor: null })
  })

  storeTest('adds a top-up to an empty wallet at once, and lists transfers newest first', async (management) => {
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const wallet = async () => (await management.ask('GET', `/api/workspaces/${id}/wallet`)).body
    expect(await wallet()).toEqual({
      balance: '0.00',
      held: '0.00',
      available: '0.00',
      credit: '0.00',
      currency: 'USD',
    })
    const first = await management.make(`/api/workspaces/${id}/topups`, { amount: '25', reference: 'invoice 17' })
    expect(first).toEqual({ id: expect.stringMatching(/^tr_/), amount: '25.00', balance: '25.00' })
    const second = await management.make(`/api/workspaces/${id}/topups`, { amount: '0.000000001', reference: null })
    expect(second).toMatchObject({ amount: '0.000000001', balance: '25.000000001' })
    expect((await management.ledger.hold(holdOf(id, 2_500_000_000n))).kind).toBe('held')
    expect(await wallet()).toEqual({
      balance: '25.000000001',
      held: '2.50',
      available: '22.500000001',
      credit: '0.00',
      currency: 'USD',
    })
    const { body } = await management.ask('GET', `/api/workspaces/${id}/transfers`)
    const accounts = { debit_account: 'funding', credit_account: `wallet:${id}` }
    const topUp = { kind: 'topup', direction: 'in', ...accounts, request_id: null, price_version: null, usage: null }
    expect(body).toEqual({
      data: [
        { ...topUp, id: second.id, amount: '0.000000001', reference: null, estimated: false, created_at: now },
        { ...topUp, id: first.id, amount: '25.00', reference: 'invoice 17', estimated: false, created_at: now },
      ],
      next_cursor: null,
    })
  })

  storeTest('lists a charge as a transfer out of the wallet', async (management) => {
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    await management.make(`/api/workspaces/${id}/topups`, { amount: '1.00' })
    const requestId = createId('req')
    await management.ledger.hold(holdOf(id, 300_000_000n, requestId))
    await management.ledger.settle(settlementOf(requestId, 250_000_000n, { usage: '{"output":7}' }))
    const { body } = await management.ask('GET', `/api/workspaces/${id}/transfers?limit=1`)
    expect(body.data).toMatchObject([
      { kind: 'charge', direction: 'out', amount: '0.25', request_id: requestId, usage: { output: 7 } },
    ])
    expect(body.next_cursor).toBeString()
  })

  storeTest(
    'B1: refuses an amount that is not a positive decimal within bounds, and credits nothing',
    async (management) => {
      const { id } = await management.make('/api/workspaces', { name: 'acme' })
      for (const amount of ['0', '0.00', '-1', '1e3', '1000000.01', '0.0000000001', '', ' 1', 5, null, {}, undefined]) {
        const reply = await management.ask('POST', `/api/workspaces/${id}/topups`, { body: { amount } })
        expect([amount, reply.status, reply.body.error.param]).toEqual([amount, 400, 'amount'])
        if (amount !== '1000000.01') continue
        expect(reply.body.error.message).toBe(
          '`amount` of $1000000.01 is above $1000000.00, the maximum of one transfer.',
        )
      }
      expect((await management.ask('GET', `/api/workspaces/${id}/transfers`)).body.data).toEqual([])
      expect((await management.ask('GET', `/api/workspaces/${id}/wallet`)).body.balance).toBe('0.00')
    },
  )

  storeTest('allows a balance above the maximum of one top-up', async (management) => {
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    await management.make(`/api/workspaces/${id}/topups`, { amount: '1000000' })
    expect((await management.make(`/api/workspaces/${id}/topups`, { amount: '1000000' })).balance).toBe('2000000.00')
  })

  storeTest('creates, changes, reads and lists a project', async (management) => {
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const path = `/api/workspaces/${workspace.id}/projects`
    const open = await management.make(path, { name: 'open' })
    expect(open).toEqual({
      id: expect.stringMatching(/^prj_/),
      workspace_id: workspace.id,
      name: 'open',
      models: null,
      aliases: {},
      limits: {},
      spend: [],
      managed_by: 'api',
      exports_content: false,
      created_at: now,
      archived_at: null,
    })
    const narrow = await management.make(path, { name: 'narrow', models: ['openai/*', 'a/b'] })
    expect(narrow.models).toEqual(['openai/*', 'a/b'])
    const change = (body: object) => management.ask('PATCH', `/api/projects/${narrow.id}`, { body })
    expect((await change({ name: 'renamed' })).body).toEqual({ ...narrow, name: 'renamed' })
    expect((await change({ models: null })).body).toEqual({ ...narrow, name: 'renamed', models: null })
    expect((await change({ models: ['c/*'] })).body.models).toEqual(['c/*'])
    expect((await change({ exports_content: true })).body.exports_content).toBe(true)
    expect((await management.ask('GET', `/api/projects/${open.id}`)).body).toEqual(open)
    const { body } = await management.ask('GET', path)
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(['open', 'renamed'])
  })

  storeTest(
    'K4: stores, replaces and deletes a credential, and shows its last four characters only',
    async (management) => {
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
      expect(audit.body.data.map(({ action }: { action: string }) => action)).toEqual(
        'credential.delete credential.put credential.put workspace.create'.split(' '),
      )
    },
  )

  storeTest('refuses an unusable credential by its field, without repeating the key', async (management) => {
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
      [{ api_key: key }, 'unknown', 404, null],
    ]
    for (const [body, provider, status, param] of cases) {
      const reply = await put(body, provider)
      expect([body, reply.status, reply.body.error.param]).toEqual([body, status, param])
      expect(reply.text).not.toContain('canary')
    }
  })

  storeTest('lists and finds requests, and sorts the complete catalog', async (management) => {
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

  storeTest('G2: records changes in the audit log with actor, action and request id', async (management) => {
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

  storeTest('reports a credited top-up as credited even if the audit log cannot be written', async (management) => {
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    await management.database.transaction((sql) => sql`DELETE FROM audit_head`)
    await management.make(`/api/workspaces/${id}/topups`, { amount: '5' })
    expect((await management.ask('GET', `/api/workspaces/${id}/wallet`)).body.balance).toBe('5.00')
    expect(management.defects).toHaveLength(1)
  })
})

const byFile = { 'x-tollgate-managed-by': 'file' }

forEachEngine((engine) => {
  test('changes what a file created only for a file', async () => {
    await using management = await openManagement(engine)
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    expect(workspace.managed_by).toBe('api')
    const path = `/api/workspaces/${workspace.id}/projects`
    const { body: project } = await management.ask('POST', path, { body: { name: 'web' }, headers: byFile })
    expect(project.managed_by).toBe('file')
    const change = (headers: Record<string, string>) =>
      management.ask('PATCH', `/api/projects/${project.id}`, { body: { models: ['acme/*'] }, headers })
    for (const headers of [{}, { 'x-tollgate-managed-by': 'api' }]) {
      const refused = await change(headers)
      expect([refused.status, refused.body.error.code]).toEqual([400, 'INVALID_REQUEST'])
      expect(refused.body.error.message).toStartWith('This project is managed by a file; change it there')
    }
    expect((await change(byFile)).body.models).toEqual(['acme/*'])
    const { body: audit } = await management.ask('GET', '/api/audit')
    // The actor stays who sent the header.
    type Entry = { readonly actor: string; readonly details: { readonly managed_by?: string } }
    expect(audit.data.map(({ actor, details }: Entry) => [actor, details.managed_by])).toEqual([
      ['management token', 'file'],
      ['management token', 'file'],
      ['management token', undefined],
    ])
  })

  test('refuses any other manager by name, and does not accept the header as a token', async () => {
    await using management = await openManagement(engine)
    const wrong = await management.ask('POST', '/api/workspaces', {
      body: { name: 'acme' },
      headers: { 'x-tollgate-managed-by': 'me' },
    })
    expect([wrong.status, wrong.body.error.param]).toEqual([400, 'x-tollgate-managed-by'])
    const stranger = await management.ask('POST', '/api/workspaces', {
      body: { name: 'acme' },
      headers: byFile,
      token: null,
    })
    expect(stranger.status).toBe(401)
  })
})

/** All pages of a list, by the sizes they came in. */
async function turnPages({ ask }: TestManagement, path: string, limit: number) {
  const sizes: number[] = []
  const items: { id: string; name: string }[] = []
  let cursor = ''
  do {
    const { body } = await ask(
      'GET',
      `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${cursor && `&cursor=${cursor}`}`,
    )
    sizes.push(body.data.length)
    items.push(...body.data)
    cursor = body.next_cursor ?? ''
  } while (cursor !== '')
  return { sizes, items }
}

const act = { actor: 'test', at: 0 }

forEachEngine((engine) => {
  const storeTest = testWith(() => openManagement(engine))

  storeTest('returns 120 items in pages, each once and in order', async (management) => {
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

  storeTest('filters the audit log by actor, action, object and time, in pages and as a file', async (management) => {
    const ada = await management.database.transaction(async (sql) => {
      const id = await insertPerson(sql, { email: 'ada@example.com', name: 'Ada' }, 0)
      await addMember(sql, id, { role: 'operator', workspaceId: undefined }, 'invitation', 0)
      return id
    })
    const { token } = await management.database.transaction((sql) =>
      createToken(
        sql,
        { personId: ada, role: 'operator', workspaceId: undefined, name: 'cli', days: 30 },
        { actor: ada, at: 1 },
      ),
    )
    const entries = [
      { actor: ada, action: 'key.create', object: 'key_1', at: 10 },
      { actor: token.id, action: 'key.revoke', object: 'key_1', at: 20 },
      { actor: 'console', action: 'keyring.open', object: 'key_2', at: 30, details: { text: '=1+1' } },
    ] as const
    for (const entry of entries) await management.database.transaction((sql) => appendAudit(sql, entry))
    const times = async (query: string) => {
      const { items } = await turnPages(management, `/api/audit?${query}`, 1)
      return items.map((item) => Date.parse((item as unknown as { at: string }).at))
    }
    // The token was made by Ada at 1.
    const questions = [
      ['', [30, 20, 10, 1]],
      ['actor=console', [30]],
      [`actor=${ada}`, [20, 10, 1]],
      ['actor=Ada%40example.com', [20, 10, 1]],
      ['actor=nobody%40example.com', []],
      [`actor=${token.id}`, [20]],
      ['action=key', [20, 10]],
      ['action=key.revoke', [20]],
      ['object=key_1&action=key', [20, 10]],
      ['from=1970-01-01T00:00:00.010Z&to=1970-01-01T00:00:00.030Z', [20, 10]],
    ] as const
    for (const [query, found] of questions)
      expect({ query, found: await times(query) }).toEqual({ query, found: [...found] })
    for (const [query, param] of [
      ['action=KEY', 'action'],
      ['actor=', 'actor'],
      ['from=monday', 'from'],
    ]) {
      const reply = await management.ask('GET', `/api/audit?${query}`)
      expect([query, reply.status, reply.body.error.param]).toEqual([query ?? '', 400, param])
    }
    const file = await management.ask('GET', '/api/audit/export?actor=ada%40example.com&action=key')
    const [head, ...lines] = file.text.trimEnd().split('\r\n')
    expect(head).toBe('sequence,at,actor,actor_email,action,object,details,request_id,hash')
    expect(lines.map((line) => line.split(',').slice(2, 6))).toEqual([
      [token.id, 'ada@example.com', 'key.revoke', 'key_1'],
      [ada, 'ada@example.com', 'key.create', 'key_1'],
    ])
    const json = await management.ask('GET', '/api/audit/export?format=jsonl&actor=console')
    expect(JSON.parse(json.text)).toMatchObject({ actor: 'console', actor_email: null, details: { text: '=1+1' } })
  })

  storeTest('pages transfers newest first', async (management) => {
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const made: string[] = []
    for (let at = 0; at < 5; at++) {
      made.push((await management.make(`/api/workspaces/${id}/topups`, { amount: '1' })).id)
    }
    const { sizes, items } = await turnPages(management, `/api/workspaces/${id}/transfers`, 2)
    expect(sizes).toEqual([2, 2, 1])
    expect(items.map((transfer) => transfer.id)).toEqual(made.reverse())
  })

  storeTest('refuses a wrong limit or cursor by name', async (management) => {
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

async function countsOf({ ask, database }: TestManagement) {
  const [audit] = await database.sql<{ rows: bigint }>`SELECT COUNT(*) AS rows FROM audit`
  const { body } = await ask('GET', '/api/workspaces')
  return { workspaces: body.data.length, audit: Number(audit?.rows) }
}

const keyed = (key: string, body: unknown) => ({ headers: { 'Idempotency-Key': key }, body })
const day = 24 * 60 * 60 * 1000

forEachEngine((engine) => {
  const storeTest = testWith(() => openManagement(engine))

  storeTest('replays the first answer for a used idempotency key, and does nothing twice', async (management) => {
    const first = await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 'acme' }))
    management.clock.advance(1000)
    const again = await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 'acme' }))
    expect([again.status, again.text]).toEqual([201, first.text])
    expect([first, again].map(({ headers }) => headers.get('x-tollgate-replayed'))).toEqual([null, 'true'])
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    expect(await countsOf(management)).toEqual({ workspaces: 1, audit: 1 })
    const other = await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 'other' }))
    expect([other.status, other.body.error.param]).toEqual([400, 'Idempotency-Key'])
    management.clock.advance(day - 1000)
    await clean({ ...management, timers: createTestTimers() }, management.clock.now())
    expect((await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 'other' }))).status).toBe(201)
    expect(await countsOf(management)).toEqual({ workspaces: 2, audit: 2 })
  })

  storeTest(
    'says that an unconfirmed top-up may have been made, and credits it once for its key',
    async (management) => {
      const { id } = await management.make('/api/workspaces', { name: 'acme' })
      const { fund } = management.ledger
      Object.assign(management.ledger, {
        async fund(funding: Funding) {
          Object.assign(management.ledger, { fund })
          await fund(funding)
          return unavailable
        },
      })
      const topUp = () => management.ask('POST', `/api/workspaces/${id}/topups`, keyed('k-1', { amount: '5.00' }))
      const lost = await topUp()
      expect([lost.status, lost.headers.get('retry-after')]).toEqual([503, '1'])
      expect(lost.body.error.message).toContain('unknown whether')
      expect(lost.body.error.message).not.toContain('nothing was credited')
      expect((await topUp()).body).toMatchObject({ amount: '5.00', balance: '5.00' })
      expect((await management.ask('GET', `/api/workspaces/${id}/wallet`)).body.balance).toBe('5.00')
    },
  )

  storeTest('leaves the key free for the corrected request after a refusal', async (management) => {
    expect((await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 17 }))).status).toBe(400)
    expect((await management.ask('POST', '/api/workspaces', keyed('k-1', { name: '' }))).status).toBe(400)
    expect((await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 'acme' }))).status).toBe(201)
    for (const key of ['', 'x'.repeat(256), 'é']) {
      const reply = await management.ask('POST', '/api/workspaces', keyed(key, { name: 'acme' }))
      expect([key, reply.status, reply.body.error.param]).toEqual([key, 400, 'Idempotency-Key'])
    }
  })

  storeTest('replays the creation of a key with the same secret, and stores no secret', async (management) => {
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const project = await management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    const path = `/api/projects/${project.id}/keys`
    const first = await management.ask('POST', path, keyed('k-1', { name: 'ci' }))
    const again = await management.ask('POST', path, keyed('k-1', { name: 'ci' }))
    expect(again.body).toEqual(first.body)
    const rotate = `/api/keys/${first.body.id}/rotate`
    const rotated = await management.ask('POST', rotate, keyed('k-1', {}))
    expect((await management.ask('POST', rotate, keyed('k-1', {}))).body.secret).toBe(rotated.body.secret)
    const rows = await management.database.sql<{ response: string }>`SELECT response FROM idempotency`
    expect(rows).toHaveLength(2)
    for (const { response } of rows) {
      for (const { secret } of [first.body, rotated.body]) {
        expect(`${response} ${Buffer.from(response, 'base64url')}`).not.toContain(secret.slice(6))
      }
    }
    expect((await management.ask('GET', '/api/keys')).body.data).toHaveLength(1)
  })

  storeTest(
    'B1: credits a top-up once for its idempotency key, and repeats the balance of that time',
    async (management) => {
      const { id } = await management.make('/api/workspaces', { name: 'acme' })
      const path = `/api/workspaces/${id}/topups`
      const first = await management.ask('POST', path, keyed('pay-1', { amount: '5.00' }))
      await management.ask('POST', path, keyed('pay-2', { amount: '1.00' }))
      const again = await management.ask('POST', path, keyed('pay-1', { amount: '5.00' }))
      expect([again.status, again.body]).toEqual([201, first.body])
      expect(again.body.balance).toBe('5.00')
      const other = await management.ask('POST', path, keyed('pay-1', { amount: '6.00' }))
      expect([other.status, other.body.error.param]).toEqual([400, 'Idempotency-Key'])
      expect((await management.ask('GET', `/api/workspaces/${id}/wallet`)).body.balance).toBe('6.00')
      const { body } = await management.ask('GET', '/api/audit')
      expect(body.data.filter(({ action }: { action: string }) => action === 'wallet.topup')).toHaveLength(2)
    },
  )

  test.each([
    ['topups', { amount: '5.00' }, 'wallet.topup'],
    ['corrections', { amount: '5.00', direction: 'add', reason: 'missing' }, 'wallet.correct'],
  ])(
    'writes one audit entry for each of %s, also if the first call was interrupted before it',
    async (what, body, action) => {
      await using management = await openManagement(engine)
      const { id } = await management.make('/api/workspaces', { name: 'acme' })
      const { database, defects } = management
      const { transaction } = database
      const move = () => management.ask('POST', `/api/workspaces/${id}/${what}`, keyed('k', body))
      const cutOff: typeof transaction = (work, shape) =>
        transaction(async (sql) => {
          const result = await work(sql)
          if ((await sql`SELECT 1 FROM audit WHERE action = ${action}`).length > 0) throw new Error('cut off')
          return result
        }, shape)
      Object.assign(database, { transaction: cutOff })
      const first = await move()
      expect([first.status, defects.splice(0)]).toMatchObject([201, [{ message: 'cut off' }]])
      Object.assign(database, { transaction })
      expect((await move()).body).toEqual(first.body)
      expect((await move()).body).toEqual(first.body)
      const { data } = (await management.ask('GET', '/api/audit')).body
      const lines = data.filter((line: { action: string }) => line.action === action)
      expect(lines).toMatchObject([
        { object: id, details: { transfer: first.body.id, amount: '5.00', repeated: true } },
      ])
    },
  )

  test.each(['/api/workspaces', 'topups'] as const)(
    'does the work of %s once for simultaneous requests with one key',
    async (what) => {
      await using management = await openManagement(engine)
      const { id } = await management.make('/api/workspaces', { name: 'acme' })
      const path = what === 'topups' ? `/api/workspaces/${id}/topups` : what
      const body = what === 'topups' ? { amount: '5.00' } : { name: 'twin' }
      const replies: Reply[] = await Promise.all(
        Array.from({ length: 12 }, () => management.ask('POST', path, keyed('twin', body))),
      )
      // Requests during the first one are refused; later ones get its answer.
      const done = replies.filter(({ status }) => status === 201)
      expect(done.length).toBeGreaterThan(0)
      expect(new Set(done.map(({ text }) => text)).size).toBe(1)
      for (const refused of replies.filter(({ status }) => status !== 201)) {
        expect([refused.status, refused.body.error.code, refused.headers.get('retry-after')]).toEqual([
          429,
          'LIMIT_EXCEEDED',
          '1',
        ])
      }
      const late = await management.ask('POST', path, keyed('twin', body))
      expect(late.text).toBe(done[0]?.text ?? '')
      expect(await countsOf(management)).toEqual({ workspaces: what === 'topups' ? 1 : 2, audit: 2 })
    },
  )

  storeTest('does the work once for simultaneous requests on two replicas', async (management) => {
    const server = management.secondReplica()
    const replies = await Promise.all([
      management.ask('POST', '/api/workspaces', keyed('twin', { name: 'twin' })),
      server.ask('POST', '/api/workspaces', keyed('twin', { name: 'twin' })),
    ])
    expect(replies.map(({ status }) => status)).toEqual([201, 201])
    expect(replies[0]?.text).toBe(replies[1]?.text ?? '')
    expect(await countsOf(management)).toEqual({ workspaces: 1, audit: 1 })
  })
})
