// Which models a key sees: one answer for the list in both shapes, for one model, and for every way to generate.

import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import { allSurfaces, chat, messages } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { chatWords, wordsFor } from '../parts/upstream-words.ts'
import { acmeConfig, failureOf, startTenancy } from './tenancy.ts'

/** `groq` is built in and has no key here: only a workspace can open it. */
const config = (
  url: string,
) => `${acmeConfig(url, { small: 'price: free', large: 'price: free' })}  - { id: other/one, price: free, routes: [{ provider: acme, model: o }] }
  - { id: own/model, price: free, routes: [{ provider: groq, model: g }] }
own_keys: { base_urls: true, allow_hosts: ["127.0.0.1"] }
`
const everything = ['acme/large', 'acme/small', 'other/one']
const known = [...everything, 'own/model']

const platform = startUpstream((call, reply) =>
  reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole),
)
const own = startUpstream((_, reply) => reply.send(200, { 'content-type': 'application/json' }, chatWords.whole))
const tenancy = await startTenancy({ config: config(platform.url), env: { TOLLGATE_SANDBOX: 'off' } })

afterAll(() => stopAll(tenancy, platform, own))

/**
 * Asks everywhere at once; every place must agree, and what is not seen must read like what does not exist. `off`: models
 * that the key may use and whose provider has no key, which is said.
 */
async function seenBy(key: string, off: readonly string[] = []): Promise<readonly string[]> {
  const listed = await tenancy.models(key)
  for (const id of known) {
    const isSeen = listed.includes(id)
    for (const surface of allSurfaces) {
      const headers = { authorization: `Bearer ${key}`, ...surface.headers }
      const retrieved = await tenancy.api('GET', `/v1/models/${id}`, undefined, headers)
      const generated = await tenancy.generate(surface, key, id)
      expect([id, surface.name, retrieved.status, generated.status]).toEqual(
        isSeen ? [id, surface.name, 200, 200] : [id, surface.name, 404, 404],
      )
      if (!isSeen) {
        const nonsense = await tenancy.generate(surface, key, id.replace(/.$/, '~'))
        const [code, message] = failureOf(surface, generated)
        const [otherCode, otherMessage] = failureOf(surface, nonsense)
        const expected = off.includes(id) ? isOff(id) : withoutId(otherMessage)
        expect([code, withoutId(message)]).toEqual([otherCode, expected])
      }
    }
    const counted = await tenancy.generate({ ...messages, path: '/v1/messages/count_tokens' }, key, id)
    expect([id, counted.status]).toEqual([id, isSeen ? 200 : 404])
  }
  return listed
}

function isOff(id: string): string {
  return `Model \`${id}\` is off: this gateway has no key for groq. The operator of this gateway can restart it with GROQ_API_KEY. A workspace can store its own key.`
}

/** The name that was asked for is all in which two refusals may differ. */
function withoutId(message: string): string {
  return message.replace(/^No model `[^`]*`\./, 'No model X.')
}

test('T5: a project narrows, a key narrows further, and neither widens the other', async () => {
  const { projectId, key } = await tenancy.tenant({ models: ['acme/*'] })
  expect(await seenBy(key)).toEqual(['acme/large', 'acme/small'])
  const narrower = await tenancy.key(projectId, { models: ['acme/large'] })
  expect(await seenBy(narrower.secret)).toEqual(['acme/large'])
  const crossed = await tenancy.key(projectId, { models: ['other/*', 'acme/small'] })
  expect(await seenBy(crossed.secret)).toEqual(['acme/small'])
  const outside = await tenancy.key(projectId, { models: ['other/one'] })
  expect(await seenBy(outside.secret)).toEqual([])
})

test('without an allowlist every model is visible; a prefix ends at a slash', async () => {
  const { key } = await tenancy.tenant()
  expect(await seenBy(key, ['own/model'])).toEqual(everything)
  const { key: prefixed } = await tenancy.tenant({ models: ['acme/larg', 'acm/*', 'own/*'] })
  expect(await seenBy(prefixed, ['own/model'])).toEqual([])
})

test("a workspace's own key makes the provider's models visible to that workspace only", async () => {
  const [opener, neighbour] = [await tenancy.tenant(), await tenancy.tenant()]
  const credential = `/api/workspaces/${opener.workspaceId}/credentials/groq`
  expect(await seenBy(opener.key, ['own/model'])).toEqual(everything)
  await tenancy.must('PUT', credential, { api_key: 'gsk-of-the-tenant', base_url: `${own.url}/v1` })
  own.calls.length = 0
  const opened = await seenBy(opener.key)
  expect(opened.filter((id) => known.includes(id))).toEqual([...everything, 'own/model'])
  // Built-in models of that provider come with it.
  expect(opened.filter((id) => id.startsWith('openai/gpt-oss'))).not.toEqual([])
  expect(own.calls.map(({ headers }) => headers.get('authorization'))).toEqual(
    allSurfaces.map(() => 'Bearer gsk-of-the-tenant'),
  )
  expect(await seenBy(neighbour.key, ['own/model'])).toEqual(everything)
  const catalog = await tenancy.api('GET', '/api/catalog', undefined, {})
  expect(catalog.body.data.map(({ id }: { id: string }) => id).sort()).toEqual(everything)
  expect(catalog.text).not.toContain(own.url)
  await tenancy.api('DELETE', credential)
  expect(await seenBy(opener.key, ['own/model'])).toEqual(everything)
})

test('an allowlist also applies to models of an own key', async () => {
  const { workspaceId, projectId } = await tenancy.tenant({ models: ['own/*', 'acme/small'] })
  const body = { api_key: 'gsk-of-the-tenant', base_url: `${own.url}/v1` }
  await tenancy.must('PUT', `/api/workspaces/${workspaceId}/credentials/groq`, body)
  const all = await tenancy.key(projectId)
  expect(await seenBy(all.secret)).toEqual(['acme/small', 'own/model'])
  expect(await tenancy.must('GET', `/api/projects/${projectId}/models`)).toMatchObject({
    data: [
      { id: 'acme/small', owned_by: 'acme', own_key: false, own_providers: [] },
      { id: 'own/model', owned_by: 'own', own_key: true, own_providers: ['groq'] },
    ],
    next_cursor: null,
  })
  const narrow = await tenancy.key(projectId, { models: ['acme/*'] })
  expect(await seenBy(narrow.secret)).toEqual(['acme/small'])
})

test('T6: a changed allowlist of a project applies to its keys with the next request', async () => {
  const { projectId, key } = await tenancy.tenant()
  const change = (models: readonly string[] | null) => tenancy.must('PATCH', `/api/projects/${projectId}`, { models })
  expect((await tenancy.generate(chat, key, 'acme/large')).status).toBe(200)
  await change(['other/*'])
  expect((await tenancy.generate(chat, key, 'acme/large')).status).toBe(404)
  expect(await seenBy(key)).toEqual(['other/one'])
  await change(null)
  expect(await seenBy(key, ['own/model'])).toEqual(everything)
})

test('the public catalog names the configuration file without its path', async () => {
  using folder = createThrowAwayFolder()
  const path = join(folder.path, 'elsewhere.yaml')
  writeFileSync(path, config(platform.url))
  await using elsewhere = await startTenancy({ env: { TOLLGATE_SANDBOX: 'off', TOLLGATE_CONFIG: path } })
  const catalog = await elsewhere.api('GET', '/api/catalog', undefined, {})
  expect(catalog.text).not.toContain(folder.path)
  // The fourth line is that of the first model.
  expect(catalog.body.data.find(({ id }: { id: string }) => id === 'acme/small')).toMatchObject({
    source: 'elsewhere.yaml:4',
    price_source: 'elsewhere.yaml:4',
  })
})
