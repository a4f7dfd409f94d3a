// Changes of keys and projects: they act on the next request, and what runs is not cut off.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { forEachEngine } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import { allSurfaces, chat, messages, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamHandler, type UpstreamReply } from '../parts/upstream.ts'
import { chatWords, wordsFor } from '../parts/upstream-words.ts'
import { createStepClock } from './step-clock.ts'
import { acmeConfig, ask, failureOf, startTenancy, type Tenancy, type Tenant } from './tenancy.ts'

/** What only a complete stream has. */
const terminalOf: Readonly<Record<TestSurface['name'], string>> = {
  chat: '[DONE]',
  messages: 'message_stop',
  responses: 'response.completed',
  gemini: '"finishReason"',
}
const clock = createStepClock('2027-01-15T08:00:00Z')
let upstream: Upstream
let tenancy: Tenancy

const answers: UpstreamHandler = (call, reply) =>
  reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole)

const statusOf = async (key: string, surface: TestSurface = chat) =>
  (await tenancy.generate(surface, key, 'acme/large')).status

/** A stream that has begun; `finish` lets the provider end it and answers with all that came. */
async function startStream(surface: TestSurface, key: string) {
  const begun = Promise.withResolvers<UpstreamReply>()
  upstream.handle(async (_, reply) => {
    await reply.startStream()
    await reply.chunk(chatWords.opening + chatWords.says('first '))
    begun.resolve(reply)
  })
  const response = await ask(tenancy.gateway.url, surface, key, 'acme/large', { stream: true })
  const provider = await begun.promise
  upstream.handle(answers, 'stay unasked')
  return {
    status: response.status,
    async finish() {
      await provider.chunk(chatWords.says('last') + chatWords.ending)
      await provider.finish()
      return await response.text()
    },
  }
}

const changes: Readonly<Record<string, (tenant: Tenant) => Promise<unknown>>> = {
  'the key is revoked': ({ keyId }) => tenancy.must('POST', `/api/keys/${keyId}/revoke`),
  'the key is rotated': ({ keyId }) => tenancy.must('POST', `/api/keys/${keyId}/rotate`),
  'the project is narrowed': ({ projectId }) =>
    tenancy.must('PATCH', `/api/projects/${projectId}`, { models: ['acme/small'] }),
}

forEachEngine((engine) => {
  beforeAll(async () => {
    upstream = startUpstream(answers)
    const config = acmeConfig(upstream.url, { large: 'price: free', small: 'price: free' })
    tenancy = await startTenancy({ engine, config, clock })
  })

  beforeEach(() => upstream.handle(answers, 'stay unasked'))

  afterAll(() => stopAll(tenancy, upstream))

  for (const [change, make] of Object.entries(changes)) {
    for (const surface of allSurfaces) {
      test(`A9: ${change}: the next request on ${surface.path} is refused, the running stream ends whole`, async () => {
        const tenant = await tenancy.tenant()
        expect(await statusOf(tenant.key, surface)).toBe(200)
        const stream = await startStream(surface, tenant.key)
        expect(stream.status).toBe(200)
        await make(tenant)
        const refused = await tenancy.generate(surface, tenant.key, 'acme/large')
        const isNarrowed = change.includes('narrowed')
        expect([refused.status, failureOf(surface, refused)[0]]).toEqual(
          isNarrowed ? [404, 'NOT_FOUND'] : [401, 'UNAUTHORIZED'],
        )
        const text = await stream.finish()
        expect(text).toContain('last')
        expect(text).toContain(terminalOf[surface.name])
      })
    }
  }

  test('A9: a rotated key has a new secret at once; with an overlap the old one stays valid for exactly that long', async () => {
    const { keyId, key: old } = await tenancy.tenant()
    const rotate = (body: object) => tenancy.must('POST', `/api/keys/${keyId}/rotate`, body)
    const { secret: second } = await rotate({ overlap_seconds: 60 })
    expect(second).not.toBe(old)
    expect([await statusOf(old), await statusOf(second)]).toEqual([200, 200])
    clock.turn(59_999)
    expect([await statusOf(old), await statusOf(second)]).toEqual([200, 200])
    clock.turn(1)
    expect([await statusOf(old), await statusOf(second)]).toEqual([401, 200])
    const { secret: third } = await rotate({})
    expect([await statusOf(old), await statusOf(second), await statusOf(third)]).toEqual([401, 401, 200])
    // Both are one key: what it may do, and its end, are the same.
    const { secret: fourth } = await rotate({ overlap_seconds: 3600 })
    await tenancy.must('POST', `/api/keys/${keyId}/revoke`)
    expect([await statusOf(third), await statusOf(fourth)]).toEqual([401, 401])
  })

  test('a key is refused from the moment it expires', async () => {
    const expiresAt = new Date(clock.now() + 60_000).toISOString()
    const { key } = await tenancy.tenant({ with: { expires_at: expiresAt } })
    clock.turn(59_999)
    expect(await statusOf(key)).toBe(200)
    clock.turn(1)
    const reply = await tenancy.generate(chat, key, 'acme/large')
    expect([reply.status, failureOf(chat, reply)[1]]).toEqual([401, expect.stringContaining('expired 2027-01-15')])
  })

  test('a key is accepted from its addresses only, on every surface', async () => {
    const { projectId } = await tenancy.tenant()
    const { secret: near } = await tenancy.key(projectId, { sources: ['127.0.0.0/8', '::1'] })
    const { secret: far } = await tenancy.key(projectId, { name: 'far', sources: ['10.0.0.0/8', '2001:db8::/32'] })
    for (const surface of [...allSurfaces, { ...messages, path: '/v1/messages/count_tokens' }]) {
      expect(await statusOf(near, surface)).toBe(200)
      const refused = await tenancy.generate(surface, far, 'acme/large')
      const [code, message] = failureOf(surface, refused)
      expect([refused.status, code]).toEqual([403, 'FORBIDDEN'])
      const { type, status } = refused.body.error
      expect(surface.name === 'gemini' ? status : type).toBe(
        surface.name === 'gemini' ? 'PERMISSION_DENIED' : 'permission_error',
      )
      expect(message).toContain('from 127.0.0.1')
      expect(message).not.toContain('10.0.0.0')
    }
  })

  test('T5: a key that is restricted to other addresses lists no models here', async () => {
    const { key } = await tenancy.tenant({ with: { sources: ['10.0.0.0/8'] } })
    const headers = { authorization: `Bearer ${key}` }
    for (const path of ['/v1/models', '/v1/models/acme/large']) {
      expect((await tenancy.api('GET', path, undefined, headers)).status).toBe(403)
    }
  })
})
