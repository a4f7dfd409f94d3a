// Spend limits of each end user and of tags: they refuse only requests that name them. All amounts are worked out by
// hand.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { verify } from '../../src/ledger/verify.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { ask } from '../parts/ask.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import type { Reply } from '../parts/manage.ts'
import { chat, inWordsOf, messages, responses, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { chatAnswer } from '../parts/upstream-words.ts'
import { createStepClock, type StepClock } from './step-clock.ts'
import { acmeConfig, failureOf, outputPriced, replyOf, startTenancy, type Tenancy, until } from './tenancy.ts'

let upstream: Upstream
let tenancy: Tenancy
let clock: StepClock
let place: Place

const answer = chatAnswer({ prompt_tokens: 3, completion_tokens: 50, total_tokens: 53 })

interface For {
  readonly user?: string
  readonly tags?: string
}

async function call(key: string, { user, tags }: For = {}, surface: TestSurface = chat): Promise<Reply> {
  const named = surface.name === 'messages' ? { metadata: { user_id: user } } : { user }
  const members = { model: 'acme/large', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }
  const body = { ...inWordsOf(surface, members), ...(user && named) }
  return await replyOf(await ask({ ...tenancy.gateway, key }, surface, body, tags ? { 'x-tollgate-tags': tags } : {}))
}

async function callsUntilRefused(key: string, wanted: For): Promise<readonly [admitted: number, refused: Reply]> {
  for (let admitted = 0; ; admitted++) {
    const reply = await call(key, wanted)
    if (reply.status !== 200) return [admitted, reply]
  }
}

async function openBooks() {
  const database = await openDatabase({ url: place.url, dataFolder: tenancy.gateway.dataFolder })
  return {
    database,
    /** The budgets of end users and tags of the scope from before their limits. */
    async seeded(scopeId: string): Promise<readonly bigint[]> {
      const rows = await database.sql<{ scope_id: string; seeded: bigint }>`SELECT scope_id, seeded FROM budgets
        WHERE seeded > 0 ORDER BY seeded`
      return rows.filter(({ scope_id }) => scope_id.startsWith(`${scopeId}/`)).map(({ seeded }) => seeded)
    },
    [Symbol.asyncDispose]: () => database.close(),
  }
}

/** To the end of 15 January: 16 hours. To the end of January: 16 days and 16 hours. */
const untilMidnight = 57_600
const untilFebruary = 1_440_000

forEachEngine((engine) => {
  beforeAll(async () => {
    upstream = startUpstream((_, reply) => reply.json(200, answer))
    clock = createStepClock('2027-01-15T08:00:00Z')
    place = await engine.createPlace()
    const config = acmeConfig(upstream.url, outputPriced)
    tenancy = await startTenancy({ engine: { ...engine, createPlace: async () => place }, config, clock })
  })

  afterAll(() => stopAll(tenancy, upstream))

  test('each end user of a project has the limit by itself, on every surface that names one, and others are not affected', async () => {
    const { projectId, workspaceId, key } = await tenancy.tenant({ credit: '1' })
    const limits = { user_spend_per_day: '0.0002' }
    expect(await tenancy.must('PUT', `/api/projects/${projectId}/limits`, limits)).toEqual(limits)
    // After n calls $0.00005 n are spent, and the next fits while that and $0.0001 are at most $0.0002: n ≤ 2.
    const [admitted, refused] = await callsUntilRefused(key, { user: 'alice' })
    expect(admitted).toBe(3)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe(String(untilMidnight))
    const { data } = await tenancy.must('GET', `/api/requests?workspace_id=${workspaceId}&end_user=alice&outcome=ok`)
    const [code, message] = failureOf(chat, refused)
    expect(code).toBe('LIMIT_EXCEEDED')
    expect(message).toContain(
      `End user ${data[0].end_user} has used $0.00015 of $0.0002 per day (limit of project "a project")`,
    )
    for (const surface of [chat, messages, responses])
      expect((await call(key, { user: 'alice' }, surface)).status).toBe(429)
    // Another key of the project, the same user.
    const other = await tenancy.key(projectId)
    expect((await call(other.secret, { user: 'alice' })).status).toBe(429)
    expect((await callsUntilRefused(key, { user: 'bob' }))[0]).toBe(3)
    for (let calls = 0; calls < 5; calls++) expect((await call(key)).status).toBe(200)
    // The same user in another workspace is somebody else.
    const elsewhere = await tenancy.tenant({ credit: '1' })
    expect((await call(elsewhere.key, { user: 'alice' })).status).toBe(200)
    clock.turn(untilMidnight * 1000)
    expect((await call(key, { user: 'alice' })).status).toBe(200)
    clock.turn(-untilMidnight * 1000)
  })

  test('a tag has its limit in the whole workspace', async () => {
    const { workspaceId, projectId, key } = await tenancy.tenant({ credit: '1' })
    const limits = { tag_spend_per_month: { 'team=web': '0.0002' }, spend_per_day: '0.5' }
    expect(await tenancy.must('PUT', `/api/workspaces/${workspaceId}/limits`, limits)).toEqual({
      ...limits,
      spend_per_day: '0.50',
    })
    const other = await tenancy.key(projectId)
    expect((await call(other.secret, { tags: 'job=x,team=web' })).status).toBe(200)
    const [admitted, refused] = await callsUntilRefused(key, { tags: 'team=web' })
    expect(admitted).toBe(2)
    expect(refused.headers.get('retry-after')).toBe(String(untilFebruary))
    expect(failureOf(chat, refused)[1]).toContain(
      'The tag team=web has used $0.00015 of $0.0002 per month (limit of workspace "a tenant")',
    )
    expect((await call(key, { tags: 'team=webx' })).status).toBe(200)
    expect((await call(key)).status).toBe(200)
  })

  test('counts what end users and tags were charged before the limit was set', async () => {
    const { projectId, keyId, key } = await tenancy.tenant({ credit: '1' })
    for (const wanted of [{ user: 'alice' }, { user: 'alice', tags: 'team=db' }, { user: 'bob' }]) {
      expect((await call(key, wanted)).status).toBe(200)
    }
    await using books = await openBooks()
    await tenancy.must('PUT', `/api/projects/${projectId}/limits`, { user_spend_per_month: '0.00025' })
    // Counted in the background.
    await until(async () => (await books.seeded(projectId)).length === 2)
    expect(await books.seeded(projectId)).toEqual([50_000n, 100_000n])
    // Alice's two calls are $0.0001; n more and a hold fit while n ≤ 1. Bob's one leaves room while n ≤ 2.
    expect((await callsUntilRefused(key, { user: 'alice' }))[0]).toBe(2)
    expect((await callsUntilRefused(key, { user: 'bob' }))[0]).toBe(3)

    await tenancy.must('PUT', `/api/keys/${keyId}/limits`, { tag_spend_per_day: { 'team=db': '0.00005' } })
    await until(async () => (await books.seeded(keyId)).length === 1)
    const refused = await call(key, { user: 'carol', tags: 'team=db' })
    expect(failureOf(chat, refused)[1]).toContain(
      'The tag team=db has used $0.00005 of $0.00005 per day (limit of key "k")',
    )
  })

  test('refuses limits of tags that are not tags', async () => {
    const { keyId } = await tenancy.tenant()
    for (const tags of [{ team: '5' }, { 'team=a b': '5' }, { 'team=web': '0' }, { 'team=web': 5 }]) {
      const { status, body } = await tenancy.api('PUT', `/api/keys/${keyId}/limits`, { tag_spend_per_day: tags })
      expect([tags, status]).toEqual([tags, 400])
      expect(body.error.param).toStartWith('tag_spend_per_day')
    }
  })

  test('the books are right afterwards', async () => {
    await using books = await openBooks()
    expect((await verify(books.database)).findings).toEqual([])
  })
})
