// Every route of the running gateway × who calls it: what the OpenAPI document lists, and the public API beside it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createId } from '../../src/kernel/ids.ts'
import { chat } from '../parts/surfaces.ts'
import { createStepClock } from './step-clock.ts'
import { startTenancy, type Tenancy, type Tenant, until } from './tenancy.ts'

const webhookSecret = 'whsec_0123456789abcdef'
/** Stands still, so that wrong tokens are not slowed down in real seconds. */
const clock = createStepClock('2027-01-15T08:00:00Z')

let tenancy: Tenancy
let calls: readonly ManagedCall[]

interface ManagedCall {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly isPublic: boolean
  readonly body: unknown
  readonly status: number
  /** The kind of object that `{id}` names, by the document's own words. */
  readonly kind: string | undefined
}

interface Operation {
  readonly security?: readonly object[]
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly example?: unknown } } }
  readonly responses: Readonly<Record<string, unknown>>
  readonly parameters: readonly { readonly name: string; readonly description: string }[]
}

beforeAll(async () => {
  tenancy = await startTenancy({ clock, env: { STRIPE_WEBHOOK_SECRET: webhookSecret } })
  const { paths } = await tenancy.must('GET', '/api/openapi.json')
  calls = Object.entries(paths as Record<string, Record<string, Operation>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security, requestBody, responses, parameters }]) => ({
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path,
      // No token is required, or none works as well as the token.
      isPublic:
        security !== undefined && (security.length === 0 || security.some((need) => Object.keys(need).length === 0)),
      body: requestBody && (requestBody.content['application/json'].example ?? {}),
      status: Number(Object.keys(responses).find((status) => status !== 'default')),
      kind: parameters.find(({ name }) => name === 'id')?.description.match(/the (\w+)\.$/)?.[1],
    })),
  )
})

afterAll(() => tenancy[Symbol.asyncDispose]())

/** The only provider that is switched on here is the sandbox; the tenant brings a key for another. */
const pathWith = ({ path }: ManagedCall, id: string) =>
  path
    .replace('/providers/{provider}', '/providers/sandbox')
    .replace('{id}', id)
    .replace('{provider}', 'groq')
    .replace('{list}', 'partners')
    .replace('{model}', 'sandbox/echo')
    .replace('{list}', 'retail')
    .replace('{plan}', 'pro')
    .replace(/subject-limits$/, '$&?subject=tag:team=web')
const people = { member: 'mem', invitation: 'inv', token: 'tok', session: 'ses', device: 'sgn' } as const
/** Ids that are not made here: see `isServedHere`. */
const elsewhere = { ...people, batch: 'batch' } as const
const prefixes = { workspace: 'ws', project: 'prj', key: 'key', group: 'grp', request: 'req', ...elsewhere } as const
type Kind = keyof typeof prefixes

/**
 * Payments and webhooks need a network; a stream does not end. People, webhooks and single batches are in
 * src/http/management/roles.test.ts.
 */
const isServedHere = ({ path, kind = '' }: ManagedCall) =>
  !/\/(checkouts|auto-topup|refunds|subscription)$/.test(path) &&
  !path.endsWith('/events') &&
  !(kind in elsewhere) &&
  !/^\/api\/(webhooks|deliveries|alert-rules)/.test(path)

/** The installation has no password, no tokens and no devices; the workspace of the example does not exist. */
const asInstallation: Readonly<Record<string, number>> = {
  'POST /api/me/password': 400,
  'PATCH /api/me': 400,
  'POST /api/tokens': 400,
  'POST /api/me/device-grants/open': 400,
  'POST /api/me/device-grants/approve': 400,
  'POST /api/me/device-grants/deny': 400,
  'POST /api/invitations': 404,
  // It was deleted by the call before.
  'PUT /api/workspaces/{id}/plan': 404,
  // It is made by the next call.
  'GET /api/price-lists/{list}': 404,
  'POST /api/reconciliations': 404,
}

/** An id of each kind that exists, with a credential and a logged request behind it. */
async function freshIds(): Promise<Readonly<Record<Exclude<Kind, keyof typeof elsewhere>, string>>> {
  const { workspaceId, projectId, keyId, key }: Tenant = await tenancy.tenant({ credit: '1' })
  await tenancy.must('PUT', `/api/workspaces/${workspaceId}/credentials/groq`, { api_key: 'gsk-of-the-tenant' })
  const answer = await tenancy.generate(chat, key, 'sandbox/echo')
  const request = answer.headers.get('x-request-id') ?? ''
  await until(async () => (await tenancy.api('GET', `/api/requests/${request}`)).status === 200)
  const { id: group } = await tenancy.must('POST', `/api/workspaces/${workspaceId}/groups`, { name: 'everyone' })
  return { workspace: workspaceId, project: projectId, key: keyId, group, request }
}

/** `contract.md` §4, written out. */
const contract = [
  ...['POST /api/workspaces', 'GET /api/workspaces', 'GET /api/workspaces/{id}', 'GET /api/workspaces/{id}/wallet'],
  ...['POST /api/workspaces/{id}/topups', 'GET /api/workspaces/{id}/transfers'],
  ...['POST /api/workspaces/{id}/projects', 'PATCH /api/projects/{id}', 'GET /api/projects/{id}'],
  ...['POST /api/projects/{id}/keys', 'POST /api/keys/{id}/revoke', 'POST /api/keys/{id}/rotate', 'GET /api/keys'],
  ...['PUT /api/workspaces/{id}/limits', 'PUT /api/projects/{id}/limits', 'PUT /api/keys/{id}/limits'],
  'PUT /api/workspaces/{id}/credentials/{provider}',
  'DELETE /api/workspaces/{id}/credentials/{provider}',
  'GET /api/workspaces/{id}/credentials/{provider}',
  ...['GET /api/requests', 'GET /api/requests/{id}', 'GET /api/catalog'],
]

test('the document has the routes of the contract', () => {
  const names = calls.map(({ name }) => name)
  expect(contract.filter((name) => !names.includes(name))).toEqual([])
  expect(calls.filter(({ path, kind }) => path.includes('{id}') && kind === undefined)).toEqual([])
})

test('T3, A10: every management route × no credentials, an API key, the token', async () => {
  const { key } = await tenancy.tenant()
  for (const call of calls.filter(isServedHere)) {
    clock.pass(61_000)
    const ids = await freshIds()
    const path = pathWith(call, ids[call.kind as keyof typeof ids])
    const statusWith = async (headers?: Record<string, string>) =>
      (await tenancy.api(call.method, path, call.body, headers)).status
    const outcomes = [
      await statusWith({}),
      await statusWith({ authorization: `Bearer ${key}` }),
      await statusWith({ 'x-api-key': key }),
      await statusWith({ cookie: 'session=guess' }),
      await statusWith(),
    ]
    const stranger = call.isPublic ? call.status : 401
    expect([call.name, outcomes]).toEqual([
      call.name,
      [stranger, stranger, stranger, stranger, asInstallation[call.name] ?? call.status],
    ])
  }
})

test('T2: an unknown id, an id of another kind and a malformed id get the same 404', async () => {
  const ids = await freshIds()
  for (const call of calls.filter(({ kind }) => kind !== undefined)) {
    const kind = call.kind as Kind
    const unknown = createId(prefixes[kind])
    const wrong = Object.entries(ids).flatMap(([of, id]) => (of === kind ? [] : [id]))
    for (const id of [unknown, ...wrong, 'x', '*']) {
      const { status, body } = await tenancy.api(call.method, pathWith(call, id), call.body)
      expect([call.name, status, body.error.code]).toEqual([call.name, 404, 'NOT_FOUND'])
      if (isServedHere(call)) expect(body.error.message).toBe(`There is no ${kind} ${id}.`)
    }
  }
})

test('A7: without credentials every route is a 401, except those on the list', async () => {
  const { url } = tenancy.gateway
  const generation = { model: 'sandbox/echo', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
  const posts = ['/v1/chat/completions', '/v1/messages', '/v1/messages/count_tokens']
  const gets = ['/v1/models', '/v1/models/sandbox/echo', '/v1/models/sandbox%2Fecho', '/v1/models/no/such']
  const spellings = (path: string) => [path, `/v1${path}`, path.slice('/v1'.length), `${path}?beta=true`]
  for (const surfaceHeaders of [{}, { 'anthropic-version': '2023-06-01' }]) {
    for (const path of posts.flatMap(spellings)) {
      const { status, body } = await tenancy.api('POST', path, generation, surfaceHeaders)
      expect([path, status, body.error.code]).toEqual([path, 401, 'UNAUTHORIZED'])
    }
    for (const path of gets.flatMap(spellings)) {
      const { status, body } = await tenancy.api('GET', path, undefined, surfaceHeaders)
      expect([path, status, body.error.code]).toEqual([path, 401, 'UNAUTHORIZED'])
    }
  }
  const open = calls.filter(({ isPublic }) => isPublic).map(({ name }) => name)
  expect(open.sort()).toEqual(['GET /api/catalog', 'GET /api/openapi.json'])
  for (const path of ['/healthz', '/readyz', '/api/catalog', '/api/openapi.json']) {
    expect([path, (await fetch(url + path)).status]).toEqual([path, 200])
  }
  // Of a device that signs in: they look at codes and tokens in the body.
  const metadata = '/.well-known/oauth-authorization-server'
  expect([metadata, (await fetch(url + metadata)).status]).toEqual([metadata, 200])
  for (const path of ['/oauth/device_authorization', '/oauth/token', '/oauth/revoke']) {
    expect([path, (await fetch(url + path, { method: 'POST' })).status]).toEqual([path, 400])
  }
  const signedIn = [
    'GET /managed/settings',
    'GET /api/oauth/usage',
    'POST /v1/metrics',
    'POST /v1/logs',
    'POST /v1/traces',
  ]
  for (const call of signedIn) {
    const [method = '', path = ''] = call.split(' ')
    expect([call, (await fetch(url + path, { method })).status]).toEqual([call, 401])
  }
  expect((await fetch(`${url}/api/hello`, { method: 'HEAD' })).status).toBe(200)
  // Configured here; what is not signed with its secret gets no further.
  const unsigned = await tenancy.api('POST', '/api/payments/stripe/webhook', { type: 'checkout.session.completed' }, {})
  expect(unsigned.status).toBe(400)
})

test('A10: the management token cannot be used for generation', async () => {
  await using other = await startTenancy({ env: { TOLLGATE_ADMIN_TOKEN: 'token-of-the-operator-0123456789' } })
  const authorization = 'Bearer token-of-the-operator-0123456789'
  expect((await other.api('GET', '/v1/models', undefined, { authorization })).status).toBe(401)
  // Without a secret of Stripe's there is no webhook.
  expect((await other.api('POST', '/api/payments/stripe/webhook', {}, {})).status).toBe(404)
})
