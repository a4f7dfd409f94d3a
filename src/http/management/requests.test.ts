import { expect, test } from 'bun:test'
import { forEachEngine, testWith } from '../../../test/parts/engines.ts'
import { bodyOf } from '../../../test/parts/http.ts'
import { managementToken, openManagement, type TestManagement } from '../../../test/parts/management.ts'
import { tokenCounts } from '../../../test/parts/token-counts.ts'
import { requestSchema } from '../../api/requests.ts'
import { createPrice } from '../../catalog/price.ts'
import { recordPrices } from '../../catalog/price-versions.ts'
import { explainText } from '../../cli/explain-text.ts'
import { systemClock } from '../../kernel/clock.ts'
import { createId, type KeyId, type ProjectId, type WorkspaceId } from '../../kernel/ids.ts'
import type { Nano, Pico } from '../../kernel/money.ts'
import type { Usage } from '../../kernel/usage.ts'
import { walletOf } from '../../ledger/account.ts'
import type { Transfer, TransferKind } from '../../ledger/transfer.ts'
import { BrokenOff, textStream } from '../../pipeline/answer.ts'
import type { Database } from '../../store/database.ts'
import { createRequestLog, listRequests } from '../../telemetry/request-log.ts'
import { chargedRequestRow, type LoggedRequest, RequestRecord } from '../../telemetry/request-record.ts'
import type { RequestTail, TailListener } from '../../telemetry/request-tail.ts'
import { createRequestReader } from './requests.ts'

/** $1.00 a million in, $2.00 out. */
const price = createPrice({ input: 1_000_000n as Pico, output: 2_000_000n as Pico })
const reported: Usage = {
  ...tokenCounts(100, 200),
  source: 'reported',
}
/** 100 × 1,000 + 200 × 2,000 nano-dollars. */
const full = 500_000n

interface Sketch {
  /** The cost that the caller was quoted. */
  readonly quoted: bigint
  readonly moved: Partial<Record<TransferKind, bigint>>
  readonly held?: bigint
  readonly usage?: Usage
  /** A call on the workspace's own credential has none. */
  readonly isPriced?: boolean
}

/** One request as the API explains it, and what the command line says to that. */
async function explain(database: Database, { quoted, moved, held = full, usage = reported, isPriced = true }: Sketch) {
  const models = [{ id: 'acme/large', price, source: 'tollgate.yaml:3' }]
  const priceVersion = (await recordPrices({ database, clock: systemClock, models })).versions.get('acme/large')
  const [id, workspaceId] = [createId('req'), createId('ws')]
  const request: LoggedRequest = {
    ...{ id, workspaceId, startedAt: 0, projectId: createId('prj'), keyId: createId('key') },
    ...{
      path: '/v1/messages',
      stream: true,
      model: 'acme/large',
      status: 200,
      code: undefined,
      cause: undefined,
      requestedModel: undefined,
      reason: undefined,
    },
    ...{ provider: 'acme', upstreamModel: 'l', lane: 'bytes', candidates: [], attempts: [], warnings: [], notes: [] },
    ...{ usage, held: held as Nano, charge: quoted as Nano, firstEventMs: 1, totalMs: 2, client: undefined },
    ...{ session: undefined, agent: undefined, endUser: undefined, tags: {}, upstreamCost: undefined },
    ...{ costVersion: undefined, batchId: undefined },
    // From the plan: only the ledger knows which route served in the end.
    priceVersion,
  }
  const transfers = Object.entries(moved).map(([kind, amount]): Transfer => {
    const isCharge = kind === 'charge'
    return {
      ...{ id: createId('tr'), requestId: id, reference: undefined, paymentId: undefined, createdAt: 0 },
      kind: isCharge ? 'charge' : 'writeoff',
      debitAccount: isCharge ? walletOf(workspaceId) : 'writeoff',
      creditAccount: 'revenue',
      amount: amount as Nano,
      priceVersion: isCharge && isPriced ? priceVersion : undefined,
      usage: isCharge ? JSON.stringify(usage) : undefined,
      estimated: usage.source === 'estimated',
    }
  })
  const requests = { list: async () => [], find: async () => request }
  const explained = await createRequestReader({
    database,
    requests,
    ledger: { transfersOf: async () => transfers },
  }).find(id)
  if (!explained) throw new Error('the request was not found')
  return { explained, fault: explainText(explained).fault, priceVersion }
}

forEachEngine((_, storeTest) => {
  storeTest('adds up the lines of a charge, as the command line does', async ({ database }) => {
    const { explained, fault, priceVersion } = await explain(database, { quoted: full, moved: { charge: full } })
    expect(explained).toMatchObject({ cost: '0.0005', price_version: String(priceVersion) })
    expect(explained?.charge).toMatchObject({
      lines: [
        { kind: 'input', amount: '0.0001' },
        { kind: 'output', amount: '0.0004' },
      ],
      total: '0.0005',
      written_off: '0.00',
      charged: '0.0005',
      released: '0.00',
    })
    expect(fault).toBeUndefined()
  })

  storeTest(
    'subtracts what the wallet could not pay from the total, whatever the caller was quoted',
    async ({ database }) => {
      // Where several processes share the wallet, the full price is quoted before it is known that it cannot be paid.
      for (const quoted of [300_000n, full]) {
        const moved = { charge: 300_000n, writeoff: 200_000n }
        const { explained, fault } = await explain(database, { quoted, moved, held: 250_000n })
        expect(explained?.charge).toMatchObject({ total: '0.0005', written_off: '0.0002', charged: '0.0003' })
        expect(explained?.charge?.released).toBe('0.00')
        expect(fault).toBeUndefined()
      }
    },
  )

  storeTest('charges at most the hold for an estimate', async ({ database }) => {
    const usage = { ...reported, source: 'estimated' } as const
    const moved = { charge: 400_000n }
    const { explained, fault } = await explain(database, { quoted: 400_000n, moved, held: 400_000n, usage })
    expect(explained?.charge).toMatchObject({ total: '0.0004', written_off: '0.00', charged: '0.0004' })
    expect(fault).toBeUndefined()
  })

  storeTest('reports a transfer that differs from the sum of the lines', async ({ database }) => {
    const { fault } = await explain(database, { quoted: full, moved: { charge: 400_000n } })
    expect(fault).toBe('the transfers come to $0.0004, not to $0.0005')
  })

  storeTest("shows no price for a call on the workspace's own key, though its plan had one", async ({ database }) => {
    for (const fee of [0n, 25_000n]) {
      const { explained, fault } = await explain(database, {
        quoted: fee,
        moved: { charge: fee },
        isPriced: false,
      })
      expect(explained).toMatchObject({ price_version: null, charge: null })
      expect(explained?.cost).toBe(explained?.transfers[0]?.amount ?? '')
      expect(fault).toBeUndefined()
    }
  })
})

forEachEngine((engine) => {
  const storeTest = testWith(() => openManagement(engine))

  storeTest('exports every request of the filter, newest first, and no cell as a formula', async (management) => {
    // More than a page, of which every third is another project's.
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const { id: mine } = await management.make(`/api/workspaces/${workspace.id}/projects`, { name: '=web' })
    const ids = Array.from({ length: 450 }, () => createId('req'))
    for (const [at, id] of ids.entries()) {
      const reason = at === 0 ? '=HYPERLINK("http://x","y")' : null
      const place = { workspace_id: workspace.id, project_id: at % 3 === 0 ? mine : 'prj_1', key_id: 'key_gone' }
      management.logged.push({ id, ...place, reason, client: '@SUM(A1)', total_ms: 7 })
    }
    const wanted = ids.filter((_, at) => at % 3 === 0).reverse()

    const csv = await management.ask('GET', `/api/requests/export?project_id=${mine}`)
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="requests.csv"')
    expect(csv.headers.get('cache-control')).toBe('no-store')
    const [head, ...lines] = csv.text.trimEnd().split('\r\n')
    expect(head).toStartWith(
      'started_at,id,workspace_id,project_id,key_id,path,stream,model,requested_model,status,code,cause,',
    )
    expect(lines.map((line) => line.split(',')[1])).toEqual(wanted)
    expect(head).toEndWith(',reason,workspace,project,key')
    expect(lines[0]).toEndWith(`,7,'@SUM(A1),,,,,,acme,'=web,`)
    expect(lines.at(-1)).toEndWith(`,7,'@SUM(A1),,,,,"'=HYPERLINK(""http://x"",""y"")",acme,'=web,`)

    const jsonl = await management.ask('GET', `/api/requests/export?format=jsonl&project_id=${mine}`)
    expect(jsonl.headers.get('content-type')).toBe('application/x-ndjson')
    const objects = jsonl.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(objects.map(({ id }) => id)).toEqual(wanted)
    // As they were said: an apostrophe is for spreadsheets.
    expect(objects.at(-1)).toMatchObject({ reason: '=HYPERLINK("http://x","y")', client: '@SUM(A1)' })
  })

  storeTest('exports usage sums with the token only, and names a wrong parameter', async (management) => {
    expect((await management.ask('GET', '/api/usage/export', { token: null })).status).toBe(401)
    const empty = await management.ask('GET', '/api/usage/export?group_by=workspace,day&format=csv')
    expect(empty.headers.get('content-disposition')).toBe('attachment; filename="usage.csv"')
    expect(empty.text).toBe(
      'workspace_id,workspace,day,requests,failed_requests,estimated_requests,input_tokens,cache_read_tokens,' +
        'cache_write_tokens,cache_write_1h_tokens,output_tokens,cost_usd,cache_saved_usd\n',
    )
    for (const [query, param] of [
      ['group_by=hour', 'group_by'],
      ['group_by=', 'group_by'],
      ['format=xlsx', 'format'],
      ['workspace_id=key_1', 'workspace_id'],
      ['from=yesterday', 'from'],
    ]) {
      const reply = await management.ask('GET', `/api/usage/export?${query}`)
      expect([param, reply.status, reply.body.error.param]).toEqual([param, 400, param])
    }
  })

  // 1970 is where request ids begin, and a year of five digits is no ISO 8601.
  const outOfRange = ['1969-12-31T23:59:59.999Z', '0001-01-01T00:00:00Z', '1970-01-01T00:00:00%2B00:01']
  const late = ['9999-12-31T23:59:59-00:01', '10000-01-01T00:00:00Z', '%2B275760-09-13T00:00:00Z']
  const none = ['', 'NaN', '-1', '1e400', '2026-02-30T00:00:00Z', '2026-11-15T25:00:00Z']
  test.each([...outOfRange, ...late, ...none])(
    'answers a time of "%s" with a 400 that names its field',
    async (time) => {
      await using management = await openManagement(engine)
      for (const path of ['/api/usage/export', '/api/requests/export', '/api/requests', '/api/stats']) {
        for (const field of ['from', 'to']) {
          const reply = await management.ask('GET', `${path}?${field}=${time}`)
          expect([path, reply.status, reply.body.error?.param]).toEqual([path, 400, field])
        }
      }
    },
  )

  storeTest('accepts the first and the last possible time', async (management) => {
    for (const path of ['/api/usage/export', '/api/requests/export', '/api/requests']) {
      for (const query of ['to=1970-01-01T00:00:00Z', 'from=1970-01-01T00:00:00Z&to=9999-12-31T23:59:59.999Z']) {
        expect((await management.ask('GET', `${path}?${query}`)).status).toBe(200)
      }
    }
  })

  storeTest('exports requests with the token only, and names a wrong filter', async (management) => {
    expect((await management.ask('GET', '/api/requests/export', { token: null })).status).toBe(401)
    for (const [query, param] of [
      ['format=xlsx', 'format'],
      ['project_id=key_1', 'project_id'],
      ['from=yesterday', 'from'],
      ['limit=5', 'limit'],
    ]) {
      const reply = await management.ask('GET', `/api/requests/export?${query}`)
      expect([param, reply.status, reply.body.error.param]).toEqual([param, 400, param])
    }
    const empty = await management.ask('GET', '/api/requests/export')
    expect([empty.status, empty.text.split('\r\n').length]).toEqual([200, 2])
  })

  storeTest(
    'finds the requests of a project through its keys, or through the log if it has many keys',
    async (management) => {
      const { database, clock } = management
      const { id: workspace } = await management.make('/api/workspaces', { name: 'acme' })
      const newProject = async (): Promise<ProjectId> =>
        (await management.make(`/api/workspaces/${workspace}/projects`, { name: 'p' })).id
      const newKey = async (project: ProjectId): Promise<KeyId> =>
        (await management.make(`/api/projects/${project}/keys`, { name: 'k' })).id
      const [small, large] = [await newProject(), await newProject()]
      const keys = new Map<ProjectId, readonly KeyId[]>([
        [small, [await newKey(small), await newKey(small)]],
        // One more than are read one by one.
        [large, await Promise.all(Array.from({ length: 41 }, () => newKey(large)))],
      ])
      const log = createRequestLog({ database, onLost: (_count, error) => void management.defects.push(error) })
      const written = new Map<ProjectId, string[]>([
        [small, []],
        [large, []],
      ])
      for (let turn = 0; turn < 12; turn++) {
        for (const [projectId, ofProject] of keys) {
          const record = new RequestRecord(createId('req'), clock.now(), '/v1/messages')
          const keyId = ofProject[turn % ofProject.length] ?? 'key_'
          record.caller = { workspaceId: workspace as WorkspaceId, projectId, keyId }
          record.status = turn % 4 === 0 ? 429 : 200
          record.code = turn % 4 === 0 ? 'LIMIT_EXCEEDED' : undefined
          log.write(record)
          written.get(projectId)?.unshift(record.id)
        }
      }
      await log.close()
      for (const projectId of [small, large]) {
        const all = written.get(projectId) ?? []
        const list = async (more: object = {}) =>
          (await listRequests(database.sql, { projectId, limit: 100, ...more })).map(({ id }) => id as string)
        expect(await list()).toEqual(all)
        expect(await list({ limit: 5 })).toEqual(all.slice(0, 5))
        expect(await list({ limit: 5, before: all[4] })).toEqual(all.slice(5, 10))
        expect(await list({ outcome: 'failed' })).toEqual(all.filter((_, at) => (11 - at) % 4 === 0))
        expect(await list({ outcome: 'ok', workspaceId: workspace })).toEqual(
          all.filter((_, at) => (11 - at) % 4 !== 0),
        )
        expect(await list({ keyId: keys.get(projectId)?.[1] })).not.toEqual([])
      }
      const other = keys.get(large)?.[0]
      const crossed = await listRequests(database.sql, { projectId: small, limit: 100, ...(other && { keyId: other }) })
      expect(crossed).toEqual([])
      const reader = createRequestReader({
        database,
        ledger: management.ledger,
        requests: { list: (query) => listRequests(database.sql, query), find: async () => undefined },
      })
      const page = await reader.list({ projectId: small, limit: 11 })
      expect([page.items.length, page.nextCursor]).toEqual([11, written.get(small)?.[10]])
      expect(management.defects).toEqual([])
    },
  )
})

test('reads a file no faster than the client, and stops when the client leaves', async () => {
  let read = 0
  let isLeft = false
  async function* pieces() {
    try {
      for (;;) yield `${++read}\n`
    } finally {
      isLeft = true
    }
  }
  const reader = bodyOf(textStream(pieces(), () => {})).getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('1\n')
  await reader.read()
  expect(read).toBeLessThanOrEqual(3)
  await reader.cancel()
  expect(isLeft).toBe(true)
})

test('gives other requests a turn between the pieces of a file, however fast its client is', async () => {
  let turns = 0
  const turnsAt: number[] = []
  async function* pieces() {
    for (let piece = 0; piece < 5; piece++) {
      turnsAt.push(turns)
      setImmediate(() => turns++)
      yield `${piece}\n`
    }
  }
  await new Response(bodyOf(textStream(pieces(), () => {}))).text()
  expect(turnsAt).toEqual([0, 1, 2, 3, 4])
})

test('does not end a file that broke off like a complete one', async () => {
  const faults: unknown[] = []
  async function* pieces() {
    yield 'first\n'
    throw new Error('the database is gone')
  }
  const response = new Response(bodyOf(textStream(pieces(), (thrown) => void faults.push(thrown))))
  expect(await response.text().catch((thrown) => thrown)).toBeInstanceOf(BrokenOff)
  expect(faults.map(String)).toEqual(['Error: the database is gone'])
})

interface Place {
  readonly workspace: `ws_${string}`
  readonly project: `prj_${string}`
  readonly key: `key_${string}`
}

async function openPlace(management: TestManagement): Promise<Place> {
  const { id: workspace } = await management.make('/api/workspaces', { name: 'acme' })
  const { id: project } = await management.make(`/api/workspaces/${workspace}/projects`, { name: 'web' })
  const { id: key } = await management.make(`/api/projects/${project}/keys`, { name: 'ci' })
  return { workspace, project, key }
}

/** The cost of 10 tokens in and 6 out, at $1.00 and $2.00 per million: 22,000 nano-dollars. */
async function writeRequest(management: TestManagement, { workspace, project, key }: Place, code?: string) {
  const { database, clock } = management
  const log = createRequestLog({ database, onLost: (_count, error) => void management.defects.push(error) })
  const record = new RequestRecord(createId('req'), clock.now() - 60_000, '/v1/chat/completions')
  record.caller = { workspaceId: workspace, projectId: project, keyId: key }
  record.model = 'acme/large'
  record.status = code === undefined ? 200 : 429
  record.code = code
  if (code === undefined) {
    const cache = { cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0 }
    record.usage = { inputTokens: 10, ...cache, outputTokens: 6, source: 'reported' }
    record.firstEventMs = 100
    // A charge is written with its request, by the ledger.
    const { ledger } = management
    const [requestId, cost] = [record.id, 22_000n as Nano]
    await ledger.fund({ workspaceId: workspace, amount: cost, kind: 'topup' })
    await ledger.hold({ requestId, workspaceId: workspace, projectId: project, keyId: key, amount: cost })
    await ledger.settle({ requestId, cost, estimated: false, row: (charge) => chargedRequestRow(record, charge) })
  } else log.write(record)
  await log.close()
  return record.id
}

forEachEngine((engine) => {
  test('estimates that only groups without sums, and hours that a day cuts, are read from the log', async () => {
    await using management = await openManagement(engine)
    const place = await openPlace(management)
    for (let count = 0; count < 3; count++) await writeRequest(management, place)
    // All three started at 07:59.
    const period = 'from=2027-01-08T00:00:00Z&to=2027-01-15T08:00:00Z'
    const rowsOf = async (group: string, offsetMinutes = 0) => {
      const query = `report=series&interval=1d&utc_offset_minutes=${offsetMinutes}&group_by=${group}&${period}`
      return (await management.ask('GET', `/api/usage/estimate?${query}`)).body.rows
    }
    const summed = [
      'model',
      'person',
      'group',
      'key',
      'project',
      'provider',
      'route',
      'agent',
      'session',
      'cause',
      'workspace',
    ]
    for (const value of summed) {
      // Days in India begin at 18:30 in UTC, days seven and a half hours behind it at 07:30.
      const rows = [await rowsOf(value), await rowsOf(value, 330), await rowsOf(value, -450)]
      expect([value, ...rows]).toEqual([value, 0, 0, 3])
    }
    expect([await rowsOf('user'), await rowsOf('tag:team')]).toEqual([3, 3])
  })

  test('sums up by person and by group as plain SQL does, where groups overlap and the total does not', async () => {
    await using management = await openManagement(engine)
    const { database } = management
    const place = await openPlace(management)
    const people = [createId('per'), createId('per')] as const
    await database.transaction(async (sql) => {
      for (const [at, id] of people.entries()) {
        await sql`INSERT INTO people (id, email, name, created_at) VALUES (${id}, ${`${at}@x.org`}, ${`P${at}`}, 0)`
        await sql`INSERT INTO members (id, person_id, workspace_id, role, source, created_at)
          VALUES (${createId('mem')}, ${id}, ${place.workspace}, 'member', 'invitation', 0)`
      }
    })
    const keys = [place.key]
    for (const owner of [...people, undefined]) {
      const { id } = await management.make(`/api/projects/${place.project}/keys`, { name: `of ${owner}` })
      if (owner) await database.transaction((sql) => sql`UPDATE api_keys SET owner_id = ${owner} WHERE id = ${id}`)
      keys.push(id as KeyId)
    }
    const group = (name: string, ...members: string[]) =>
      management.make(`/api/workspaces/${place.workspace}/groups`, { name, members })
    // The first person is in both groups, and in one of them by a key as well; the last key is in none.
    await group('design', people[0], String(keys[1]), place.key)
    await group('all hands', ...people)
    for (const [at, key] of keys.entries()) {
      for (let count = 0; count <= at; count++) await writeRequest(management, { ...place, key: key as KeyId })
    }
    const plain = await database.sql<{ name: string | null; requests: bigint; cost: bigint }>`
      SELECT s.name, COUNT(*) AS requests, CAST(SUM(r.charge) AS BIGINT) AS cost FROM requests r
      JOIN api_keys k ON k.id = r.key_id LEFT JOIN (SELECT DISTINCT g.name, a.id FROM groups g, group_members m, api_keys a
        WHERE m.group_id = g.id AND m.member_id IN (a.id, a.owner_id)) s ON s.id = k.id GROUP BY s.name ORDER BY 1`
    // 1 + 2, 2 + 3 and 4 of ten requests, of 22,000 nano-dollars each.
    const expected = [
      { name: 'all hands', requests: 5n, cost: 110_000n },
      { name: 'design', requests: 3n, cost: 66_000n },
      { name: null, requests: 4n, cost: 88_000n },
    ]
    expect(plain.toSorted((a, b) => String(a.name).localeCompare(String(b.name)))).toEqual(expected)
    const period = 'from=2027-01-08T00:00:00Z&to=2027-01-16T00:00:00Z'
    type Row = { readonly requests: number; readonly cost: string }
    const shown = (rows: readonly Row[], nameOf: (row: Row) => unknown) =>
      rows.map((row) => `${nameOf(row)} ${row.requests} ${row.cost}`).sort()
    const { body } = await management.ask('GET', `/api/usage?group_by=group&${period}`)
    const sums = ['all hands 5 0.00011', 'design 3 0.000066', 'null 4 0.000088']
    expect(shown(body.groups, (row) => (row as unknown as { names: string[] }).names[0] ?? null)).toEqual(sums)
    expect(body.total).toMatchObject({ requests: 10, cost: '0.00022' })
    const series = (await management.ask('GET', `/api/usage/series?group_by=group&${period}`)).body
    expect(shown(series.series, (row) => (row as unknown as { name: string }).name)).toEqual(sums)
    expect(series.total).toMatchObject({ requests: 10, cost: '0.00022' })
    const csv = await management.ask('GET', `/api/usage/export?group_by=person,group&format=csv&${period}`)
    const lines = csv.text.split('\n')
    expect(lines[0]).toStartWith('person_id,person,group_id,group,requests,')
    const cells = lines.slice(1, -1).map((line) => line.split(','))
    expect(cells.map(([, person, , name, requests]) => [person, name, requests].join(' ')).sort()).toEqual(
      ['P0 all hands 2', 'P0 design 2', 'P1 all hands 3', ' design 1', '  4'].sort(),
    )
  })

  test('sums up requests by hour and by key, with names', async () => {
    await using management = await openManagement(engine)
    const place = await openPlace(management)
    await writeRequest(management, place)
    await writeRequest(management, place)
    await writeRequest(management, place, 'LIMIT_EXCEEDED')
    const { body, status } = await management.ask('GET', `/api/stats?group=key&workspace_id=${place.workspace}`)
    expect(status).toBe(200)
    // Half of two that took between 50 and 100 ms, estimated in proportion: 75; 95 % of the way: 97.5, rounded.
    const first = { count: 2, p50: 75, p95: 98 }
    const figures = {
      requests: 3,
      errors: 1,
      input_tokens: 20,
      output_tokens: 12,
      cost: '0.000044',
      first_event_ms: first,
    }
    expect(body.total).toEqual(figures)
    expect(body.groups).toEqual([{ id: place.key, name: 'ci', ...figures }])
    expect(body.hours).toHaveLength(1)
    expect(body.groups_left_off).toBe(0)
    const byProject = await management.ask('GET', '/api/stats?group=project')
    expect(byProject.body.groups).toMatchObject([{ id: place.project, name: 'web' }])
    const elsewhere = await management.ask('GET', `/api/stats?workspace_id=${createId('ws')}`)
    expect(elsewhere.body.total).toMatchObject({ requests: 0, cost: '0.00', first_event_ms: null })
  })

  test('refuses a span that ends before it begins, or is too long, by its field', async () => {
    await using management = await openManagement(engine)
    for (const [query, words] of [
      ['from=2026-11-15T00:00:00Z&to=2026-11-14T00:00:00Z', '`from` must be before'],
      ['from=2026-01-01T00:00:00Z&to=2026-11-14T00:00:00Z', 'At most 92 days'],
      ['group=colour', '`group` must be model, project or key'],
    ]) {
      const { status, body } = await management.ask('GET', `/api/stats?${query}`)
      expect([status, body.error.message]).toEqual([400, expect.stringContaining(words ?? '')])
    }
  })

  test('streams requests as they end to callers with the token', async () => {
    let listener: TailListener | undefined
    const tail: RequestTail = {
      listen(next) {
        listener = next
        return () => {}
      },
      close() {},
    }
    await using management = await openManagement(engine, { tail })
    const place = await openPlace(management)
    const address = `${management.url}/api/requests/events?outcome=failed`
    expect((await fetch(address)).status).toBe(401)
    expect(listener).toBeUndefined()
    const response = await fetch(address, { headers: { authorization: `Bearer ${managementToken}` } })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    await writeRequest(management, place)
    const failed = await writeRequest(management, place, 'LIMIT_EXCEEDED')
    listener?.onRequests(await listRequests(management.database.sql, { limit: 10 }))
    listener?.onEnd()
    const text = await response.text()
    const events = [...text.matchAll(/^event: request\ndata: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? ''))
    expect(events).toMatchObject([{ id: failed, code: 'LIMIT_EXCEEDED', key_id: place.key }])
    // One request looks the same in the stream and in the list.
    expect(requestSchema.parse(events[0])).toEqual(events[0])
  })
})
