import { expect, test } from 'bun:test'
import { forEachEngine, testWith } from '../../../test/parts/engines.ts'
import { openManagement, type TestManagement } from '../../../test/parts/management.ts'
import { createId } from '../../kernel/ids.ts'
import { type RequestRow, requestColumns, writeRequests } from '../../store/request-rows.ts'

// The clock of the tests stands at 1 800 000 000 s.
const now = '2027-01-15T08:00:00.000Z'

async function makeProject(management: TestManagement) {
  const workspace = await management.make('/api/workspaces', { name: 'acme' })
  return await management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
}

async function writeRequest(
  { database, clock }: TestManagement,
  key: { id: string; project_id: string; workspace_id: string },
) {
  const numbers = { started_at: clock.now(), stream: 0, status: 200, total_ms: 1, estimated: 0 }
  const empty = Object.fromEntries(requestColumns.map((column) => [column, null]))
  const ids = { workspace_id: key.workspace_id, project_id: key.project_id, key_id: key.id, path: '/v1/messages' }
  const row = { ...empty, ...numbers, ...ids, id: createId('req') } as RequestRow
  await database.transaction((sql) => writeRequests(sql, database.engine, [row]))
}

async function judge({ authenticator }: TestManagement, secret: string) {
  return await authenticator.authenticate(new Headers({ authorization: `Bearer ${secret}` }))
}

forEachEngine((engine) => {
  const storeTest = testWith(() => openManagement(engine))

  storeTest('creates a working key and shows its secret once', async (management) => {
    const project = await makeProject(management)
    const created = await management.make(`/api/projects/${project.id}/keys`, {
      name: 'ci',
      models: ['a/*'],
      limits: { requests_per_minute: 60, spend_per_day: '5' },
      expires_at: '2027-02-01T00:00:00+01:00',
      sources: ['10.0.0.0/8'],
    })
    const { secret, ...key } = created
    expect(secret).toMatch(/^sk-tg-[0-9A-Za-z]{34}$/)
    expect(key).toEqual({
      id: expect.stringMatching(/^key_/),
      kind: 'secret',
      workspace_id: project.workspace_id,
      project_id: project.id,
      name: 'ci',
      last4: secret.slice(-4),
      status: 'active',
      models: ['a/*'],
      sources: ['10.0.0.0/8'],
      limits: { requests_per_minute: 60, spend_per_day: '5.00' },
      spend: [
        {
          ...{ period: 'day', limit: '5.00', spent: '0.00' },
          ...{ starts_at: '2027-01-15T00:00:00.000Z', resets_at: '2027-01-16T00:00:00.000Z' },
        },
      ],
      managed_by: 'api',
      owner_id: null,
      created_at: now,
      expires_at: '2027-01-31T23:00:00.000Z',
      revoked_at: null,
      last_used_at: null,
    })
    expect(await judge(management, secret)).toMatchObject({ keyId: key.id, workspaceId: project.workspace_id })
    for (const path of [`/api/keys/${key.id}`, '/api/keys', '/api/audit', `/api/keys?project_id=${project.id}`]) {
      expect((await management.ask('GET', path)).text).not.toContain(secret.slice(6, -4))
    }
    expect((await management.ask('GET', `/api/keys/${key.id}`)).body).toEqual(key)
  })

  storeTest('lists keys by workspace and by project', async (management) => {
    const projects = [await makeProject(management), await makeProject(management)]
    const made: string[] = []
    for (const { id } of projects) made.push((await management.make(`/api/projects/${id}/keys`, { name: 'k' })).id)
    const listed = async (query: string) =>
      (await management.ask('GET', `/api/keys${query}`)).body.data.map(({ id }: { id: string }) => id)
    expect(await listed('')).toEqual(made)
    expect(await listed(`?project_id=${projects[1].id}`)).toEqual(made.slice(1))
    expect(await listed(`?workspace_id=${projects[0].workspace_id}`)).toEqual(made.slice(0, 1))
    expect(await listed(`?workspace_id=${createId('ws')}`)).toEqual([])
    const wrong = await management.ask('GET', `/api/keys?workspace_id=${projects[0].id}`)
    expect([wrong.status, wrong.body.error.param]).toEqual([400, 'workspace_id'])
  })

  storeTest('answers a rotation and a revocation with the key, and rotates no revoked key', async (management) => {
    const project = await makeProject(management)
    const { id } = await management.make(`/api/projects/${project.id}/keys`, { name: 'k' })
    const rotate = (body?: object) =>
      management.ask('POST', `/api/keys/${id}/rotate`, body === undefined ? {} : { body })
    const { secret, ...rotated } = (await rotate()).body
    expect(rotated).toMatchObject({ id, last4: secret.slice(-4), status: 'active' })
    expect(await judge(management, secret)).toMatchObject({ keyId: id })
    expect((await rotate({ overlap_seconds: -1 })).body.error.param).toBe('overlap_seconds')
    const revoked = await management.ask('POST', `/api/keys/${id}/revoke`)
    expect([revoked.status, revoked.body.status, revoked.body.revoked_at]).toEqual([200, 'revoked', now])
    management.clock.advance(1000)
    expect((await management.ask('POST', `/api/keys/${id}/revoke`)).body.revoked_at).toBe(now)
    expect((await rotate()).status).toBe(400)
  })

  storeTest('deletes a project that made no request, with its keys', async (management) => {
    const project = await makeProject(management)
    const { id, secret } = await management.make(`/api/projects/${project.id}/keys`, { name: 'ci' })
    await management.ask('POST', `/api/keys/${id}/rotate`, { body: { overlap_seconds: 60 } })
    expect(await judge(management, secret)).toMatchObject({ keyId: id })
    const ended = await management.make(`/api/projects/${project.id}/keys`, { name: 'old' })
    await management.ask('POST', `/api/keys/${ended.id}/revoke`)
    const deleted = await management.ask('DELETE', `/api/projects/${project.id}`)
    expect([deleted.status, deleted.body]).toEqual([200, { id: project.id, outcome: 'deleted', keys: 1 }])
    expect(await judge(management, secret)).toMatchObject({ code: 'UNAUTHORIZED' })
    for (const path of [`/api/projects/${project.id}`, `/api/keys/${id}`]) {
      expect([path, (await management.ask('GET', path)).status]).toEqual([path, 404])
    }
    expect((await management.ask('DELETE', `/api/projects/${project.id}`)).status).toBe(404)
    const listed = await management.ask('GET', `/api/workspaces/${project.workspace_id}/projects?archived=true`)
    expect(listed.body.data).toEqual([])
    const [entry] = (await management.ask('GET', '/api/audit')).body.data
    const details = { workspace: project.workspace_id, keys: 1 }
    expect(entry).toMatchObject({ action: 'project.delete', object: project.id, details })
  })

  storeTest(
    'archives a project that made requests: unlisted, named in reports, its keys refused',
    async (management) => {
      const project = await makeProject(management)
      const place = `/api/workspaces/${project.workspace_id}/projects`
      const other = await management.make(place, { name: 'web' })
      const key = await management.make(`/api/projects/${project.id}/keys`, { name: 'ci' })
      await writeRequest(management, key)
      expect(await judge(management, key.secret)).toMatchObject({ keyId: key.id })
      const answer = (keys: number) => [200, { id: project.id, outcome: 'archived', keys }]
      const remove = async () => {
        const { status, body } = await management.ask('DELETE', `/api/projects/${project.id}`)
        return [status, body]
      }
      expect(await remove()).toEqual(answer(1))
      expect(await judge(management, key.secret)).toMatchObject({
        message: expect.stringContaining('revoked 2027-01-15'),
      })
      const idsIn = async (query: string) =>
        (await management.ask('GET', `${place}${query}`)).body.data.map(({ id }: { id: string }) => id)
      expect(await idsIn('')).toEqual([other.id])
      expect(await idsIn('?archived=true')).toEqual([project.id, other.id])
      expect((await management.ask('GET', `${place}?archived=yes`)).status).toBe(400)
      expect((await management.ask('GET', `/api/projects/${project.id}`)).body).toEqual({
        ...project,
        archived_at: now,
      })
      expect((await management.ask('GET', `/api/keys/${key.id}`)).body).toMatchObject({ status: 'revoked', name: 'ci' })

      const refused = { message: 'Project "web" was deleted 2027-01-15. Create a new project.' }
      for (const [method, path, body] of [
        ['POST', `/api/projects/${project.id}/keys`, { name: 'again' }],
        ['PATCH', `/api/projects/${project.id}`, { name: 'again' }],
      ] as const) {
        const reply = await management.ask(method, path, { body })
        expect([path, reply.status, reply.body.error]).toEqual([path, 400, expect.objectContaining(refused)])
      }
      // Again: nothing changes, and the log has one entry.
      management.clock.advance(1000)
      expect(await remove()).toEqual(answer(0))
      const { data } = (await management.ask('GET', '/api/audit')).body
      const entries = data.filter(({ action }: { action: string }) => /^project\.(archive|delete)$/.test(action))
      const details = { workspace: project.workspace_id, keys: 1 }
      expect(entries).toMatchObject([{ action: 'project.archive', object: project.id, details }])
    },
  )

  storeTest('archives a project whose requests were removed after their retention', async (management) => {
    const project = await makeProject(management)
    const key = await management.make(`/api/projects/${project.id}/keys`, { name: 'ci' })
    const use = { key_id: key.id, last_used_at: 1_700_000_000_000n }
    await management.database.transaction((sql) => sql`INSERT INTO key_uses ${sql([use])}`)
    const deleted = await management.ask('DELETE', `/api/projects/${project.id}`)
    expect(deleted.body).toEqual({ id: project.id, outcome: 'archived', keys: 1 })
  })

  storeTest('refuses to delete a project of a file, except for config apply', async (management) => {
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const headers = { 'x-tollgate-managed-by': 'file' }
    const made = await management.ask('POST', `/api/workspaces/${workspace.id}/projects`, {
      body: { name: 'web' },
      headers,
    })
    const path = `/api/projects/${made.body.id}`
    const refused = await management.ask('DELETE', path)
    expect([refused.status, refused.body.error.message]).toEqual([
      400,
      'This project is managed by a file; change it there and run `tollgate config apply FILE`.',
    ])
    expect((await management.ask('DELETE', path, { headers })).status).toBe(200)
  })

  storeTest('never leaves a working key when a key is created while its project is deleted', async (management) => {
    for (const _ of Array.from({ length: 5 })) {
      const project = await makeProject(management)
      const [created, deleted] = await Promise.all([
        management.ask('POST', `/api/projects/${project.id}/keys`, { body: { name: 'late' } }),
        management.ask('DELETE', `/api/projects/${project.id}`),
      ])
      expect(deleted.status).toBe(200)
      expect([201, 404]).toContain(created.status)
      if (created.status === 201) {
        expect(await judge(management, created.body.secret)).toMatchObject({ code: 'UNAUTHORIZED' })
      }
    }
    expect(management.defects).toEqual([])
  })

  test.each(['workspaces', 'projects', 'keys'] as const)('replaces all limits of %s', async (place) => {
    await using management = await openManagement(engine)
    const project = await makeProject(management)
    const key = await management.make(`/api/projects/${project.id}/keys`, { name: 'k' })
    const id = { workspaces: project.workspace_id, projects: project.id, keys: key.id }[place]
    const before = await judge(management, key.secret)
    const limits = { requests_per_minute: 60, concurrent_requests: 5, spend_per_month: '50.50' }
    const put = (body: object) => management.ask('PUT', `/api/${place}/${id}/limits`, { body })
    expect((await put(limits)).body).toEqual(limits)
    expect((await management.ask('GET', `/api/${place}/${id}`)).body.limits).toEqual(limits)
    expect(await judge(management, key.secret)).not.toEqual(before)
    expect((await put({ tokens_per_minute: 1000, requests_per_minute: null })).body).toEqual({
      tokens_per_minute: 1000,
    })
    expect((await put({})).body).toEqual({})
    for (const [field, value] of [
      ['requests_per_minute', 0],
      ['requests_per_minute', 1.5],
      ['tokens_per_minute', '60'],
      ['concurrent_requests', 1e15],
      ['spend_per_day', 5],
      ['spend_per_day', '0'],
      ['spend_per_month', '-1'],
    ] as const) {
      const reply = await put({ [field]: value })
      expect([value, reply.status, reply.body.error.param]).toEqual([value, 400, field])
    }
  })
})
