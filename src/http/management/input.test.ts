import { expect, test } from 'bun:test'
import { forEachEngine, testWith } from '../../../test/parts/engines.ts'
import { openManagement } from '../../../test/parts/management.ts'

forEachEngine((engine) => {
  const storeTest = testWith(() => openManagement(engine))

  storeTest('T4: refuses an unknown field by name and suggests the nearest known one', async (management) => {
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const project = await management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    const keys = `/api/projects/${project.id}/keys`
    const cases: [method: string, path: string, body: object, param: string, hint: string][] = [
      ['POST', '/api/workspaces', { nmae: 'x' }, 'nmae', 'Did you mean `name`?'],
      ['POST', '/api/workspaces', { name: 'x', balance: '5' }, 'balance', 'Known are `name`.'],
      ['POST', '/api/workspaces', { name: 'x', id: workspace.id }, 'id', 'Known are `name`.'],
      ['POST', keys, { name: 'k', limit: {} }, 'limit', 'Did you mean `limits`?'],
      [
        'POST',
        keys,
        { name: 'k', limits: { request_per_minute: 1 } },
        'limits.request_per_minute',
        'Did you mean `requests_per_minute`?',
      ],
      ['PUT', `/api/projects/${project.id}/limits`, { rpm: 1 }, 'rpm', 'Known are `requests_per_minute`, '],
      ['POST', `/api/keys/${project.id.replace('prj', 'key')}/revoke`, { at: 1 }, 'at', 'None is accepted.'],
    ]
    for (const [method, path, body, param, hint] of cases) {
      const reply = await management.ask(method, path, { body })
      expect([param, reply.status, reply.body.error.code]).toEqual([param, 400, 'INVALID_REQUEST'])
      expect(reply.body.error.param).toBe(param)
      expect(reply.body.error.message).toContain(`\`${param}\``)
      expect(reply.body.error.message).toContain(hint)
    }
    expect((await management.ask('GET', '/api/keys')).body.data).toEqual([])
  })

  storeTest('R2: treats names of the language, such as __proto__, as unknown fields', async (management) => {
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const body = `{"name":"x","${name}":{"name":"y"}}`
      const reply = await management.ask('POST', '/api/workspaces', { body })
      expect([reply.status, reply.body.error.param]).toEqual([400, name])
    }
    expect(Object.keys(Object.prototype)).toEqual([])
  })

  storeTest('refuses a NUL by the name of its field, in queries and at every depth of a body', async (management) => {
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const project = await management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    const cases: [method: string, path: string, body: object | undefined, param: string][] = [
      ['GET', '/api/requests?model=%00', undefined, 'model'],
      ['GET', '/api/requests?model=a%00b&outcome=failed', undefined, 'model'],
      ['POST', `/api/workspaces/${workspace.id}/topups`, { amount: '1', reference: 'a\0b' }, 'reference'],
      ['POST', `/api/projects/${project.id}/keys`, { name: 'k', models: ['a/b', 'a/\0'] }, 'models[1]'],
    ]
    for (const [method, path, body, param] of cases) {
      const reply = await management.ask(method, path, body && { body })
      expect([path, reply.status, reply.body.error.param]).toEqual([path, 400, param])
    }
    expect(management.defects).toEqual([])
  })

  storeTest('refuses a body that nests too deep, with or without a NUL inside', async (management) => {
    const nest = (depth: number, inner: string) => `{"name":${'['.repeat(depth)}${inner}${']'.repeat(depth)}}`
    for (const [body, said] of [
      [nest(63, '"\\u0000"'), '[0]` must not contain a NUL character.'],
      [nest(63, ''), '`name` must be a display name.'],
      [nest(64, ''), 'The body nests deeper than 64 levels.'],
      [nest(500_000, '"\\u0000"'), 'The body nests deeper than 64 levels.'],
    ] as const) {
      const reply = await management.ask('POST', '/api/workspaces', { body })
      expect([reply.status, reply.body.error.message]).toEqual([400, expect.stringContaining(said)])
    }
    expect(management.defects).toEqual([])
  })

  storeTest('reads a query up to the first unknown name', async (management) => {
    const names = Array.from({ length: 2000 }, (_, at) => `a${at}`).join('&')
    const { status, body } = await management.ask('GET', `/api/keys?limit=1&${names}&a0&limit=2`)
    expect([status, body.error.param]).toEqual([400, 'a0'])
    expect(body.error.message).toStartWith('There is no query parameter `a0` here.')
    expect((await management.ask('GET', '/api/keys?limit=1&limit=2')).body.error.message).toContain('given twice')
  })

  storeTest('names a wrong or missing field', async (management) => {
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const project = await management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    const keys = `/api/projects/${project.id}/keys`
    const cases: [path: string, body: unknown, param: string | null][] = [
      ['/api/workspaces', {}, 'name'],
      ['/api/workspaces', { name: '' }, 'name'],
      ['/api/workspaces', { name: 17 }, 'name'],
      ['/api/workspaces', { name: 'a\u0000b' }, 'name'],
      ['/api/workspaces', { name: 'x'.repeat(10_000) }, 'name'],
      [`/api/workspaces/${workspace.id}/projects`, { name: 'p', models: 'a/b' }, 'models'],
      [`/api/workspaces/${workspace.id}/projects`, { name: 'p', models: ['a/b', 7] }, 'models[1]'],
      [`/api/workspaces/${workspace.id}/projects`, { name: 'p', models: ['a/b', '*'] }, 'models[1]'],
      [keys, { name: 'k', limits: { requests_per_minute: 'many' } }, 'limits.requests_per_minute'],
      [keys, { name: 'k', limits: [] }, 'limits'],
      [keys, { name: 'k', expires_at: '2027-01-01' }, 'expires_at'],
      [keys, { name: 'k', expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
      [keys, { name: 'k', expires_at: 1_900_000_000 }, 'expires_at'],
      [keys, { name: 'k', expires_at: '1969-12-31T23:59:59Z' }, 'expires_at'],
      [keys, { name: 'k', expires_at: '9999-12-31T23:59:59-01:00' }, 'expires_at'],
      [keys, { name: 'k', expires_at: '+010000-01-01T00:00:00Z' }, 'expires_at'],
      ['/api/workspaces', [], null],
      ['/api/workspaces', 'null', null],
      ['/api/workspaces', '{"name":', null],
      ['/api/workspaces', '{"name":"x"} trailing', null],
    ]
    for (const [path, body, param] of cases) {
      const reply = await management.ask('POST', path, { body })
      expect([body, reply.status, reply.body.error.code]).toEqual([body, 400, 'INVALID_REQUEST'])
      expect([body, reply.body.error.param]).toEqual([body, param])
      if (param !== null) expect(reply.body.error.message).toContain(`\`${param}\``)
    }
    expect((await management.ask('GET', '/api/keys')).body.data).toEqual([])
  })

  storeTest('requires a body of JSON in UTF-8 of at most 1 MiB', async (management) => {
    const post = (body: string | Uint8Array<ArrayBuffer>, type: string | undefined) =>
      fetch(`${management.url}/api/workspaces`, {
        method: 'POST',
        headers: {
          authorization: 'Bearer token-of-the-operator-0123456789',
          ...(type === undefined ? {} : { 'content-type': type }),
        },
        body,
      })
    const statusOf = async (reply: Promise<Response>) => (await reply).status
    const json = 'application/json'
    expect(await statusOf(post('{"name":"x"}', 'text/plain'))).toBe(415)
    expect(await statusOf(post('name=x', 'application/x-www-form-urlencoded'))).toBe(415)
    expect(await statusOf(post('{"name":"x"}', 'Application/JSON; charset=utf-8'))).toBe(201)
    expect(await statusOf(post(Uint8Array.of(0x7b, 0xff, 0x7d), json))).toBe(400)
    const padded = (bytes: number) => `{"name":"x"}${' '.repeat(bytes - 12)}`
    expect(await statusOf(post(padded(1024 * 1024), json))).toBe(201)
    expect(await statusOf(post(padded(1024 * 1024 + 1), json))).toBe(413)
    expect(await statusOf(post('['.repeat(500_000), json))).toBe(400)
    expect(management.defects).toEqual([])
  })

  storeTest('refuses unknown paths and methods with a suggestion', async (management) => {
    const unknown = await management.ask('GET', '/api/workspace')
    expect([unknown.status, unknown.body.error.message]).toEqual([
      404,
      'Nothing is served at GET /api/workspace. Did you mean /api/workspaces?',
    ])
    for (const path of '/api/ /api/workspaces/ /api//workspaces /api/%77orkspaces /api/keys;x /api/x/y'.split(' ')) {
      expect([path, (await management.ask('GET', path)).status]).toEqual([path, 404])
    }
    const wrong = await management.ask('DELETE', '/api/workspaces')
    expect([wrong.status, wrong.headers.get('allow'), wrong.body.error.code]).toEqual([
      405,
      'POST, GET',
      'METHOD_NOT_ALLOWED',
    ])
    expect((await management.ask('GET', '/api/keys?limti=5')).body.error).toMatchObject({ param: 'limti' })
    expect((await management.ask('GET', '/api/keys?limit=5&limit=6')).body.error).toMatchObject({ param: 'limit' })
    expect((await fetch(`${management.url}/elsewhere`)).status).toBe(404)
  })

  test('L4: answers a defect with 500 without details, and a lost database with 503', async () => {
    const broken = (error: Error) => async () => Promise.reject(error)
    await using management = await openManagement(engine, {
      requests: {
        list: broken(new Error('canary of the house')),
        find: async () => undefined,
        pages: broken(new Error('unused')),
      },
    })
    const reply = await management.ask('GET', '/api/requests')
    expect([reply.status, reply.body.error.code, reply.text.includes('canary')]).toEqual([500, 'INTERNAL', false])
    expect(management.defects).toHaveLength(1)
    await management.database.close()
    const lost = await management.ask('GET', '/api/workspaces')
    expect([lost.status, lost.body.error.code, lost.headers.get('retry-after')]).toEqual([503, 'OVERLOADED', '1'])
  })
})
