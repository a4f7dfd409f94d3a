import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { managementToken, openManagement } from '../../../test/parts/management.ts'
import { idPrefixes } from '../../api/operation.ts'
import { Failure } from '../../kernel/failure.ts'
import { createId } from '../../kernel/ids.ts'
import { createApiKey } from '../../tenancy/api-key.ts'
import { installation } from '../../tenancy/principal.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Route } from './route.ts'
import { managementRoutes } from './serve.ts'

// Only the rows are read here; nothing of what they would need is called.
const routes = managementRoutes({} as RouteDependencies)
const pathTo = ({ path, kind }: Route, id = kind === undefined ? '' : createId(idPrefixes[kind])) =>
  path
    .replace('{id}', id)
    .replace('{provider}', 'acme')
    .replace('{model}', 'acme/large')
    .replace('{list}', 'retail')
    .replace('{plan}', 'pro')
    .replace(/subject-limits$/, '$&?subject=tag:team=web')

/** The installation has no password and no tokens; the example's workspace does not exist. */
const asInstallation: Readonly<Partial<Record<Route['name'], number>>> = {
  changePassword: 400,
  updateMe: 400,
  createToken: 400,
  openDeviceGrant: 400,
  approveDeviceGrant: 400,
  denyDeviceGrant: 400,
  createInvitation: 404,
  getPriceList: 404,
  runReconciliation: 404,
}

forEachEngine((engine) => {
  test('T3: serves each operation with the token only, not without one, with an API key or with a wrong token', async () => {
    await using management = await openManagement(engine, { pause: async () => {} })
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const project = await management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    const { secret: apiKey } = await management.make(`/api/projects/${project.id}/keys`, { name: 'k' })
    for (const route of routes) {
      const statusWith = async (token: string | null, headers = {}) => {
        const body = route.body ? { body: route.example ?? {} } : {}
        const reply = await management.ask(route.method, pathTo(route), { token, headers, ...body })
        return reply.status
      }
      // An id that names nothing, or what a call without an id says; never 401, never a defect.
      const served = asInstallation[route.name] ?? (route.kind === undefined ? route.status : 404)
      const refused = route.public ? served : 401
      const outcomes = [
        await statusWith(null),
        await statusWith(apiKey),
        await statusWith(null, { 'x-api-key': apiKey }),
        await statusWith(null, { 'x-api-key': managementToken }),
        await statusWith(null, { authorization: `Basic ${btoa(`x:${managementToken}`)}` }),
        await statusWith(`${managementToken}x`),
        await statusWith(managementToken.slice(1)),
        await statusWith(managementToken),
      ]
      const expected = [refused, refused, refused, refused, refused, refused, refused, served]
      expect([route.name, ...outcomes]).toEqual([route.name, ...expected])
    }
    expect(management.defects).toEqual([])
  })
})

/** Ids of a kind that exist are of no use under another kind's path. */
forEachEngine((engine) => {
  test('T2: answers alike for an id of another kind, a malformed id and an unknown id', async () => {
    await using management = await openManagement(engine)
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const project = await management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    const key = await management.make(`/api/projects/${project.id}/keys`, { name: 'k' })
    const hook = await management.make('/api/webhooks', { url: 'https://192.0.2.1/' })
    const people = {
      member: createId('mem'),
      invitation: createId('inv'),
      token: createId('tok'),
      session: createId('ses'),
      device: createId('sgn'),
    }
    const ids = {
      ...{ workspace: workspace.id, project: project.id, key: key.id, request: createId('req'), ...people },
      ...{ webhook: hook.id, delivery: createId('dlv'), payment: createId('pay'), rule: createId('rul') },
      ...{ group: createId('grp'), batch: createId('batch') },
    }
    for (const route of routes.filter(({ kind }) => kind !== undefined)) {
      const { kind = 'key', method, example } = route
      const prefix = idPrefixes[kind]
      const foreign = Object.entries(ids).flatMap(([of, id]) => (of === kind ? [] : id))
      const malformed = ['x', `${prefix}_`, `${prefix}_1`, `${prefix}_${'U'.repeat(26)}`, `${ids[kind]}A`, "'--", '*']
      for (const id of [createId(prefix), ...foreign, ...malformed, ids[kind].toLowerCase()]) {
        const reply = await management.ask(method, pathTo(route, id), route.body ? { body: example ?? {} } : {})
        expect([route.name, reply.status, reply.body.error.message]).toEqual([
          route.name,
          404,
          `There is no ${kind} ${id}.`,
        ])
      }
    }
    expect((await management.ask('GET', `/api/projects/${project.id}`)).body).toEqual(project)
    expect(management.defects).toEqual([])
  })
})

forEachEngine((engine) => {
  test('A10: tells the holder of an API key to use the management token, and repeats nothing that was sent', async () => {
    await using management = await openManagement(engine)
    const apiKey = createApiKey()
    const withKey = await management.ask('GET', '/api/keys', { token: apiKey })
    expect(withKey.body.error).toMatchObject({ code: 'UNAUTHORIZED', type: 'authentication_error', param: null })
    expect(withKey.body.error.message).toContain('API key')
    expect(withKey.body.error.message).toContain('management token')
    expect(withKey.text).not.toContain(apiKey.slice(6))
    const wrong = await management.ask('GET', '/api/keys', { token: 'canary-guess' })
    expect([wrong.status, wrong.text.includes('canary')]).toEqual([401, false])
    expect(wrong.headers.get('www-authenticate')).toBe('Bearer realm="Tollgate"')
    const none = await management.ask('GET', '/api/keys', { token: null })
    expect(none.body.error.message).toContain('Authorization: Bearer')
    expect(await management.authenticator.authenticate(new Headers({ 'x-api-key': managementToken }))).toBeInstanceOf(
      Failure,
    )
  })

  test('serves a console session under its name, and may refuse it', async () => {
    await using management = await openManagement(engine, {
      async sessionOf(request) {
        const session = request.headers.get('cookie')
        if (session === 'session=stale') return new Failure('FORBIDDEN', 'Reload the page.')
        return session === 'session=good' ? installation('console') : undefined
      },
    })
    const ask = (cookie: string) =>
      management.ask('POST', '/api/workspaces', { token: null, headers: { cookie }, body: { name: 'acme' } })
    expect((await ask('session=good')).status).toBe(201)
    expect((await ask('session=other')).status).toBe(401)
    expect((await ask('session=stale')).status).toBe(403)
    expect((await management.ask('GET', '/api/audit')).body.data).toMatchObject([{ actor: 'console' }])
  })

  test('keeps a silent connection open only while it works for the operator', async () => {
    await using management = await openManagement(engine, { pause: async () => {} })
    await management.ask('GET', '/api/workspaces', { token: null })
    expect(management.sockets.filter((each) => each.endsWith('kept open'))).toEqual([])
    await management.ask('GET', '/api/workspaces')
    expect(management.sockets.slice(-2)).toEqual(['GET /api/workspaces kept open', 'GET /api/workspaces rearmed'])
    // A file has no clock to its end, and then the connection is not used again.
    const file = await management.ask('GET', '/api/usage/export')
    expect(management.sockets.at(-1)).toBe('GET /api/usage/export kept open')
    expect(file.headers.get('connection')).toBe('close')
  })
})
