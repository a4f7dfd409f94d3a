// A person who is removed on one replica is out on all three, with sessions, tokens and own keys, within a second.

import { describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { openPostgresStore } from './postgres-store.ts'

const token = 'management-token-of-all-replicas'
const password = 'correct horse battery'

async function call(gateway: Gateway, method: string, path: string, headers: Record<string, string>, body?: object) {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
}

const asOperator = { authorization: `Bearer ${token}` }

/** The session of a new member, as a cookie of one replica; the others have another name for it, by their port. */
async function join(gateway: Gateway, workspaceId: string) {
  const input = { email: 'ada@example.com', role: 'member', workspace_id: workspaceId }
  const { body } = await call(gateway, 'POST', '/api/invitations', asOperator, input)
  const invitation = new URL(body.url).searchParams.get('i')
  const opened = await call(gateway, 'POST', '/console/session', {}, { invitation, name: 'Ada', password })
  return opened.headers.get('set-cookie')?.split(';')[0]?.split('=')[1] ?? ''
}

const cookieAt = (gateway: Gateway, value: string) => ({ cookie: `tollgate-${new URL(gateway.url).port}=${value}` })

describe.skipIf(findPostgresPrograms() === undefined)('on three replicas', () => {
  test('a removed person loses sessions, tokens and own keys on all of them within a second', async () => {
    await using store = await openPostgresStore()
    const env = {
      DATABASE_URL: store.url,
      TOLLGATE_SECRET: 'a0b1c2d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4f5061728394a5b6c7d8e9f',
      TOLLGATE_ADMIN_TOKEN: token,
    }
    const replicas: Gateway[] = []
    for (let count = 0; count < 3; count++) replicas.push(await startGateway({ env }))
    const [first] = replicas as [Gateway]
    const { id: workspaceId } = (await call(first, 'POST', '/api/workspaces', asOperator, { name: 'acme' })).body
    const input = { name: 'web' }
    const project = (await call(first, 'POST', `/api/workspaces/${workspaceId}/projects`, asOperator, input)).body
    const cookie = await join(first, workspaceId)
    const session = cookieAt(first, cookie)
    const key = (await call(first, 'POST', `/api/projects/${project.id}/keys`, session, { name: 'mine' })).body
    const grant = { name: 'script', role: 'member', workspace_id: workspaceId }
    const personal = (await call(first, 'POST', '/api/tokens', session, grant)).body
    const look = () =>
      Promise.all(
        replicas.map(async (replica) => [
          (await call(replica, 'GET', '/api/me', cookieAt(replica, cookie))).status,
          (await call(replica, 'GET', '/api/me', { authorization: `Bearer ${personal.secret}` })).status,
          (await call(replica, 'GET', '/v1/models', { authorization: `Bearer ${key.secret}` })).status,
        ]),
      )
    // Each replica has the key in its cache now.
    expect(await look()).toEqual([200, 200, 200].map(() => [200, 200, 200]))
    const { body: members } = await call(first, 'GET', `/api/members?workspace_id=${workspaceId}`, asOperator)
    const removed = await call(first, 'DELETE', `/api/members/${members.data[0].id}`, asOperator)
    expect(removed.status).toBe(204)
    // Sessions and tokens are looked up for each call, so they are out with the answer.
    for (const [mine, script] of await look()) expect([mine, script]).toEqual([401, 401])
    // Keys are cached for five seconds; the replicas hear of the change before that.
    while ((await look()).some(([, , models]) => models !== 401)) await Bun.sleep(20)
    for (const replica of replicas) await replica.stop()
  })
})
