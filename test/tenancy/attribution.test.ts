// Whom and what requests were for: what is recorded of it, who can see it, and that reports by it add up to the ledger. All
// amounts are worked out by hand.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { forEachEngine } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import type { Reply } from '../parts/manage.ts'
import { allSurfaces, chat, inWordsOf, messages, responses, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { chatAnswer } from '../parts/upstream-words.ts'
import { acmeConfig, replyOf, startTenancy, type Tenancy, type Tenant, until } from './tenancy.ts'

let upstream: Upstream
let tenancy: Tenancy

const config = (url: string) =>
  acmeConfig(url, { large: 'price: { input: "1.00", cache_read: "0.10", output: "2.00" }, max_output_tokens: 1000' })

/** 60 × $1.00 + 40 × $0.10 + 50 × $2.00 a million = $0.000164; without the cache $0.0002. */
const answer = chatAnswer({
  ...{ prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 },
  prompt_tokens_details: { cached_tokens: 40 },
})

/** Where each API names its end user. Gemini's has no place for it. */
const userIn: Readonly<Record<TestSurface['name'], object>> = {
  chat: { user: 'alice' },
  messages: { metadata: { user_id: 'alice' } },
  responses: { safety_identifier: 'alice' },
  gemini: {},
}

async function call(
  { key }: Pick<Tenant, 'key'>,
  headers: Readonly<Record<string, string>> = {},
  members: object = {},
  surface: TestSurface = chat,
): Promise<Reply> {
  const content = 'Explain prompt caches. '.repeat(20)
  const asked = { model: 'acme/large', max_tokens: 100, messages: [{ role: 'user', content }], ...members }
  return await replyOf(await ask({ ...tenancy.gateway, key }, surface, inWordsOf(surface, asked), headers))
}

const idOf = ({ headers }: Reply) => headers.get('x-request-id') ?? ''
const logged = async (reply: Reply) => await tenancy.must('GET', `/api/requests/${idOf(reply)}`)
const list = async (query: string) =>
  ((await tenancy.must('GET', `/api/requests?${query}`)).data as { id: string }[]).map(({ id }) => id)

async function report(query: string) {
  const { groups, total, log_from } = await tenancy.must('GET', `/api/usage?${query}`)
  // Only end users and tags, and names of sessions and agents, end with the log.
  const readsLog = /group_by=(?:tag|user|session|agent)|&(?:tag|end_user)=/.test(query)
  expect([query, Date.parse(log_from) > 0]).toEqual([query, readsLog])
  return { groups, total } as {
    groups: { values: (string | null)[]; requests: number; cost: string; cache_saved: string; cache_hit_rate: number }[]
    total: { requests: number; cost: string; cache_saved: string; cache_hit_rate: number }
  }
}

forEachEngine((engine) => {
  beforeAll(async () => {
    upstream = startUpstream((_, reply) => reply.json(200, answer))
    tenancy = await startTenancy({ engine, config: config(upstream.url) })
  })

  afterAll(() => stopAll(tenancy, upstream))

  test('records session, agent, end user and tags on every surface, and sends none of the tags upstream', async () => {
    const tenant = await tenancy.tenant({ credit: '1' })
    for (const surface of allSurfaces) {
      const headers = {
        'user-agent': 'claude-cli/2.1.325 (external, cli)',
        'x-claude-code-agent-id': 'a1b2',
        'x-claude-code-session-id': 'session-7',
        'x-tollgate-tags': 'team=web, job=nightly',
      }
      const record = await logged(await call(tenant, headers, userIn[surface.name], surface))
      expect(record).toMatchObject({
        session: 'session-7',
        agent: 'claude-cli/a1b2',
        tags: { job: 'nightly', team: 'web' },
        cost: '0.000164',
      })
      if (surface.name === 'gemini') expect(record.end_user).toBeNull()
      else expect(record.end_user).toMatch(/^eu_[0-9a-f]{20}$/)
      expect(JSON.stringify(upstream.calls.at(-1))).not.toContain('nightly')
    }
    const plain = await logged(await call(tenant, { 'user-agent': 'Test/1' }))
    expect(plain).toMatchObject({ session: null, agent: 'Test', end_user: null, tags: {} })
  })

  test('an end user is the same on every surface and another one in another workspace', async () => {
    const [one, two] = [await tenancy.tenant({ credit: '1' }), await tenancy.tenant({ credit: '1' })]
    const userOf = async (tenant: Tenant, members: object, surface = chat) =>
      (await logged(await call(tenant, {}, members, surface))).end_user as string
    const alice = await userOf(one, { user: 'alice' })
    for (const surface of [messages, responses]) expect(await userOf(one, userIn[surface.name], surface)).toBe(alice)
    expect(await userOf(one, { safety_identifier: 'alice', user: 'somebody' })).toBe(alice)
    expect(await userOf(one, { user: 'bob' })).not.toBe(alice)
    expect(await userOf(two, { user: 'alice' })).not.toBe(alice)
    // Claude Code's id names the session too; the account is the person.
    const sessions = ['s-1', 's-2'].map((session) => `user_ab12_account_cd34_session_${session}`)
    const hashes = await Promise.all(sessions.map((user_id) => userOf(one, { metadata: { user_id } }, messages)))
    expect(new Set(hashes).size).toBe(1)
    expect(await userOf(one, { user: 'cd34' })).toBe(hashes[0] as string)
  })

  test('lists requests by each of them, and never those of another workspace', async () => {
    const [one, two] = [await tenancy.tenant({ credit: '1' }), await tenancy.tenant({ credit: '1' })]
    const headers = { 'x-session-id': `s-${engine.name}`, 'x-tollgate-tags': 'team=Web', 'user-agent': 'lister/1' }
    const mine = idOf(await call(one, headers, { user: 'carol' }))
    const theirs = idOf(await call(two, headers, { user: 'carol' }))
    await call(one, { 'x-session-id': 's-x', 'x-tollgate-tags': 'team=web' }, { user: 'dave' })
    const { workspaceId } = one
    const filters = [`session=s-${engine.name}`, 'tag=team%3DWeb', 'agent=lister', 'end_user=carol']
    for (const filter of filters) {
      expect([filter, await list(`workspace_id=${workspaceId}&${filter}`)]).toEqual([filter, [mine]])
    }
    expect(await list(`session=s-${engine.name}`)).toEqual([theirs, mine])
    const { end_user } = await tenancy.must('GET', `/api/requests/${mine}`)
    expect(await list(`end_user=${end_user}`)).toEqual([mine])
    expect((await tenancy.api('GET', '/api/requests?tag=team')).status).toBe(400)
  })

  test('refuses tags that cannot be recorded, and says what is wrong', async () => {
    const tenant = await tenancy.tenant({ credit: '1' })
    const refused = [
      ['team', '`team` is not a tag'],
      ['team=', '`team=` is not a tag'],
      ['1=web', '`1=web` is not a tag'],
      ['team=a b', '`team=a b` is not a tag'],
      ['team=web,team=db', '`team` appears twice'],
      [`team=${'x'.repeat(65)}`, 'is not a tag'],
      [Array.from({ length: 9 }, (_, at) => `t${at}=x`).join(','), 'it has 9 tags, and at most 8'],
    ] as const
    for (const [tags, message] of refused) {
      const reply = await call(tenant, { 'x-tollgate-tags': tags })
      expect([tags, reply.status, reply.body.error.param]).toEqual([tags, 400, 'x-tollgate-tags'])
      expect(reply.body.error.message).toContain(message)
    }
  })

  test('sums by tag, session, user, agent, route and key add up to the ledger to the nano-dollar', async () => {
    const [one, two] = [await tenancy.tenant({ credit: '1' }), await tenancy.tenant({ credit: '1' })]
    const web = { 'x-tollgate-tags': 'team=web,job=a', 'x-session-id': 's-1', 'user-agent': 'one/1' }
    const db = { 'x-tollgate-tags': 'team=db', 'x-session-id': 's-2', 'user-agent': 'two/1' }
    for (const headers of [web, web, web, db, db]) await call(one, headers, { user: headers['x-session-id'] })
    await call(one, { 'user-agent': '-' })
    await call(two, web)
    // Refused, and in the log without a charge.
    await call(one, web, { model: 'acme/none' })
    const mine = `workspace_id=${one.workspaceId}`
    // A call costs $0.000164 and saved 40 × ($1.00 − $0.10) a million = $0.000036.
    const [three, two_, single] = ['0.000492', '0.000328', '0.000164']
    await until(async () => (await report(mine)).total.requests === 7)
    const rows = async (group: string) =>
      (await report(`${mine}&group_by=${group}`)).groups.map(({ values, cost, cache_saved }) => [
        ...values,
        cost,
        cache_saved,
      ])
    expect(await rows('tag:team')).toEqual([
      ['web', three, '0.000108'],
      ['db', two_, '0.000072'],
      [null, single, '0.000036'],
    ])
    expect((await rows('session')).map(([session, cost]) => [session, cost])).toEqual([
      ['s-1', three],
      ['s-2', two_],
      [null, single],
    ])
    expect((await rows('user')).map(([user, cost]) => [user === null, cost])).toEqual([
      [false, three],
      [false, two_],
      [true, single],
    ])
    expect((await rows('agent')).map(([agent]) => agent)).toEqual(['one', 'two', null])
    expect(await rows('tag:job,tag:team')).toContainEqual(['a', 'web', three, '0.000108'])
    expect(await rows('route')).toEqual([
      ['acme l', '0.000984', '0.000216'],
      [null, '0.00', '0.00'],
    ])
    expect(await rows('key')).toEqual([[one.keyId, '0.000984', '0.000216']])
    const { total } = await report(`${mine}&group_by=session`)
    // 240 of 600 input tokens were cached.
    expect(total).toMatchObject({ requests: 7, cost: '0.000984', cache_saved: '0.000216', cache_hit_rate: 0.4 })
    const { balance } = await tenancy.must('GET', `/api/workspaces/${one.workspaceId}/wallet`)
    expect(balance).toBe('0.999016')
    expect((await report(`${mine}&tag=team%3Ddb`)).total).toMatchObject({ requests: 2, cost: two_ })
    expect((await report(`workspace_id=${two.workspaceId}&group_by=tag:team`)).groups).toMatchObject([
      { values: ['web'], requests: 1, cost: single },
    ])

    const { text } = await tenancy.api('GET', `/api/usage/export?${mine}&group_by=tag:team`)
    expect(text.split('\n')).toEqual([
      'tag:team,requests,failed_requests,estimated_requests,input_tokens,cache_read_tokens,cache_write_tokens,cache_write_1h_tokens,output_tokens,cost_usd,cache_saved_usd',
      'db,2,0,0,120,80,0,0,100,0.000328,0.000072',
      'web,4,1,0,180,120,0,0,150,0.000492,0.000108',
      ',1,0,0,60,40,0,0,50,0.000164,0.000036',
      '',
    ])
    for (const wrong of ['tag:', 'tag:a b', 'nonsense', '']) {
      expect([wrong, (await tenancy.api('GET', `/api/usage?group_by=${encodeURIComponent(wrong)}`)).status]).toEqual([
        wrong,
        400,
      ])
    }
  })

  test('erasing a workspace erases them and the salt of its end users', async () => {
    const tenant = await tenancy.tenant({ credit: '1' })
    const id = idOf(await call(tenant, { 'x-session-id': 'gone', 'x-tollgate-tags': 'team=gone' }, { user: 'erin' }))
    const { end_user } = await tenancy.must('GET', `/api/requests/${id}`)
    await tenancy.must('POST', `/api/workspaces/${tenant.workspaceId}/erase`, { confirm: 'erase' })
    expect((await tenancy.api('GET', `/api/requests/${id}`)).status).toBe(404)
    expect(await list(`end_user=${end_user}`)).toEqual([])
    // Without the salt the id leads nowhere.
    expect(await list(`workspace_id=${tenant.workspaceId}&end_user=erin`)).toEqual([])
  })
})

test.each([
  ['plain', 'frank'],
  ['off', null],
] as const)('with end_users: %s the end user is recorded as %p', async (mode, shown) => {
  const provider = startUpstream((_, reply) => reply.json(200, answer))
  const text = `server: { end_users: ${mode} }\n${config(provider.url)}`
  await using other = await startTenancy({ config: text })
  const { key, workspaceId } = await other.tenant({ credit: '1' })
  const reply = await other.generate(chat, key, 'acme/large', { max_tokens: 100, user: 'frank' })
  const { end_user } = await other.must('GET', `/api/requests/${reply.headers.get('x-request-id')}`)
  expect(end_user).toBe(shown)
  const { data } = await other.must('GET', `/api/requests?workspace_id=${workspaceId}&end_user=frank`)
  expect(data.length).toBe(shown === null ? 0 : 1)
  provider.stop()
})
