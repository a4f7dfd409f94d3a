import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { openManagement } from '../../../test/parts/management.ts'
import { createId, type KeyId, type ProjectId, type WorkspaceId } from '../../kernel/ids.ts'
import { listRequests } from '../../telemetry/list-requests.ts'
import { createRequestLog } from '../../telemetry/request-log.ts'
import { createRecord } from '../../telemetry/request-record.ts'
import { createRequestReader } from './explain-request.ts'
import { pieceStream } from './piece-stream.ts'

forEachEngine((engine) => {
  test('the file has every request of the filter, newest first, and no cell of it is a formula', async () => {
    await using management = await openManagement(engine)
    // More than a page, of which every third is another project's.
    const mine = createId('prj')
    const ids = Array.from({ length: 450 }, () => createId('req'))
    for (const [at, id] of ids.entries()) {
      const reason = at === 0 ? '=HYPERLINK("http://x","y")' : null
      management.logged.push({ id, project_id: at % 3 === 0 ? mine : 'prj_1', reason, client: '@SUM(A1)', total_ms: 7 })
    }
    const wanted = ids.filter((_, at) => at % 3 === 0).reverse()

    const csv = await management.ask('GET', `/api/requests/export?project_id=${mine}`)
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="requests.csv"')
    expect(csv.headers.get('cache-control')).toBe('no-store')
    const [head, ...lines] = csv.text.trimEnd().split('\r\n')
    expect(head).toStartWith('started_at,id,workspace_id,project_id,key_id,path,stream,model,status,code,')
    expect(lines.map((line) => line.split(',')[1])).toEqual(wanted)
    expect(lines[0]).toEndWith(`,7,'@SUM(A1),`)
    expect(lines.at(-1)).toEndWith(`,7,'@SUM(A1),"'=HYPERLINK(""http://x"",""y"")"`)

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

  test('usage is a file of sums, for whoever has the token, and wrong questions are named', async () => {
    await using management = await openManagement(engine)
    expect((await management.ask('GET', '/api/usage/export', { token: null })).status).toBe(401)
    const empty = await management.ask('GET', '/api/usage/export?group_by=workspace,day&format=csv')
    expect(empty.headers.get('content-disposition')).toBe('attachment; filename="usage.csv"')
    expect(empty.text).toBe(
      'workspace_id,day,requests,failed_requests,estimated_requests,input_tokens,cache_read_tokens,' +
        'cache_write_tokens,cache_write_1h_tokens,output_tokens,cost_usd\n',
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
  test.each([...outOfRange, ...late, ...none])('a time of "%s" is a 400 that names its field', async (time) => {
    await using management = await openManagement(engine)
    for (const path of ['/api/usage/export', '/api/requests/export', '/api/requests', '/api/stats']) {
      for (const field of ['from', 'to']) {
        const reply = await management.ask('GET', `${path}?${field}=${time}`)
        expect([path, reply.status, reply.body.error?.param]).toEqual([path, 400, field])
      }
    }
  })

  test('the first and the last time that there are work', async () => {
    await using management = await openManagement(engine)
    for (const path of ['/api/usage/export', '/api/requests/export', '/api/requests']) {
      for (const query of ['to=1970-01-01T00:00:00Z', 'from=1970-01-01T00:00:00Z&to=9999-12-31T23:59:59.999Z']) {
        expect((await management.ask('GET', `${path}?${query}`)).status).toBe(200)
      }
    }
  })

  test('the file is for whoever has the token, and wrong filters are named', async () => {
    await using management = await openManagement(engine)
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

  test('requests of a project are found through its keys, and through the log where it has many', async () => {
    await using management = await openManagement(engine)
    const { database, clock } = management
    const { id: workspace } = await management.make('/api/workspaces', { name: 'acme' })
    const newProject = async (): Promise<ProjectId> =>
      (await management.make(`/api/workspaces/${workspace}/projects`, { name: 'p' })).id
    const newKey = async (project: ProjectId): Promise<KeyId> =>
      (await management.make(`/api/projects/${project}/keys`, { name: 'k' })).id
    const [small, large] = [await newProject(), await newProject()]
    const keys = new Map<ProjectId, readonly KeyId[]>([
      [small, [await newKey(small), await newKey(small)]],
      // One more than are asked one by one.
      [large, await Promise.all(Array.from({ length: 41 }, () => newKey(large)))],
    ])
    const log = createRequestLog({ database, onLost: (_count, error) => void management.defects.push(error) })
    const written = new Map<ProjectId, string[]>([
      [small, []],
      [large, []],
    ])
    for (let turn = 0; turn < 12; turn++) {
      for (const [projectId, ofProject] of keys) {
        const record = createRecord(createId('req'), clock.now(), '/v1/messages')
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
      expect(await list({ outcome: 'ok', workspaceId: workspace })).toEqual(all.filter((_, at) => (11 - at) % 4 !== 0))
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
  })
})

test('a file is read no faster than it is taken, and no further once nobody takes it', async () => {
  let read = 0
  let isLeft = false
  async function* pieces() {
    try {
      for (;;) yield `${++read}\n`
    } finally {
      isLeft = true
    }
  }
  const reader = pieceStream(pieces(), () => {}).getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('1\n')
  await reader.read()
  expect(read).toBeLessThanOrEqual(3)
  await reader.cancel()
  expect(isLeft).toBe(true)
})

test('a file that breaks off does not end like a whole one', async () => {
  const faults: unknown[] = []
  async function* pieces() {
    yield 'first\n'
    throw new Error('the database is gone')
  }
  const response = new Response(pieceStream(pieces(), (thrown) => void faults.push(thrown)))
  expect(response.text()).rejects.toThrow('the database is gone')
  await Bun.sleep(0)
  expect(faults).toHaveLength(1)
})
