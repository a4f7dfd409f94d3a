// Spend limits of people, groups and models, and of windows that roll. All amounts are worked out by hand: a call costs
// $0.00005 and holds $0.0001.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createId } from '../../src/kernel/ids.ts'
import { verify } from '../../src/ledger/verify.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { ask } from '../parts/ask.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import type { Reply } from '../parts/manage.ts'
import { chat, inWordsOf } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { chatAnswer } from '../parts/upstream-words.ts'
import { createStepClock, type StepClock } from './step-clock.ts'
import { acmeConfig, failureOf, outputPriced, replyOf, startTenancy, type Tenancy } from './tenancy.ts'

let upstream: Upstream
let tenancy: Tenancy
let clock: StepClock
let place: Place

const answer = chatAnswer({ prompt_tokens: 3, completion_tokens: 50, total_tokens: 53 })

async function call(key: string, model = 'acme/large', more: object = {}): Promise<Reply> {
  const members = { model, max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], ...more }
  return await replyOf(await ask({ ...tenancy.gateway, key }, chat, inWordsOf(chat, members)))
}

async function admittedOf(key: string, model?: string): Promise<readonly [admitted: number, refused: Reply]> {
  for (let admitted = 0; ; admitted++) {
    const reply = await call(key, model)
    if (reply.status !== 200) return [admitted, reply]
  }
}

const openBooks = () => openDatabase({ url: place.url, dataFolder: tenancy.gateway.dataFolder })

/** Someone with a role in the workspace. */
async function addPerson(workspaceId: string): Promise<{ readonly id: string; readonly email: string }> {
  const [id, member] = [createId('per'), createId('mem')]
  const email = `${id.toLowerCase()}@example.com`
  const database = await openBooks()
  await database.transaction(async (sql) => {
    await sql`INSERT INTO people (id, email, name, created_at) VALUES (${id}, ${email}, 'Ada', 0)`
    await sql`INSERT INTO members (id, person_id, workspace_id, role, source, created_at)
      VALUES (${member}, ${id}, ${workspaceId}, 'member', 'invitation', 0)`
  })
  await database.close()
  return { id, email }
}

/** A key that the person created. */
async function keyOf(projectId: string, personId: string): Promise<string> {
  const { id, secret } = await tenancy.key(projectId)
  const database = await openBooks()
  await database.transaction((sql) => sql`UPDATE api_keys SET owner_id = ${personId} WHERE id = ${id}`)
  await database.close()
  return secret
}

const projectLimits = (projectId: string, ...limits: object[]) =>
  tenancy.must('PUT', `/api/projects/${projectId}/limits`, { spend_limits: limits })

forEachEngine((engine) => {
  beforeAll(async () => {
    upstream = startUpstream((_, reply) => reply.json(200, answer))
    clock = createStepClock('2027-01-15T08:00:00Z')
    place = await engine.createPlace()
    const config = acmeConfig(upstream.url, { ...outputPriced, tiny: outputPriced.large })
    tenancy = await startTenancy({ engine: { ...engine, createPlace: async () => place }, config, clock })
  })

  afterAll(() => stopAll(tenancy, upstream))

  test('all keys of a person share a limit, named by address; others are not affected', async () => {
    const { workspaceId, projectId, key } = await tenancy.tenant({ credit: '1' })
    const [ada, bob] = [await addPerson(workspaceId), await addPerson(workspaceId)]
    const limit = { subject: `person:${ada.email}`, window: 'day', limit: '0.0002' }
    expect(await projectLimits(projectId, limit)).toEqual({ spend_limits: [limit] })
    const keys = [await keyOf(projectId, ada.id), await keyOf(projectId, ada.id)] as const
    expect((await call(keys[0])).status).toBe(200)
    expect((await call(keys[1])).status).toBe(200)
    const [admitted, refused] = await admittedOf(keys[0])
    expect(admitted).toBe(1)
    expect(failureOf(chat, refused)[1]).toContain(
      `Person ${ada.email} has used $0.00015 of $0.0002 per day (limit of project "a project")`,
    )
    expect((await call(keys[1])).status).toBe(429)
    expect((await call(await keyOf(projectId, bob.id))).status).toBe(200)
    expect((await call(key)).status).toBe(200)
    const { spend } = await tenancy.must('GET', `/api/projects/${projectId}`)
    expect(spend).toMatchObject([{ subject: limit.subject, period: 'day', limit: '0.0002', spent: '0.00015' }])
  })

  test('a limit of each person counts everyone separately, and a lower one of one person holds', async () => {
    const { workspaceId, projectId, key } = await tenancy.tenant({ credit: '1' })
    const [ada, bob] = [await addPerson(workspaceId), await addPerson(workspaceId)]
    await projectLimits(
      projectId,
      { subject: 'person', window: 'month', limit: '0.0003' },
      { subject: `person:${bob.id}`, window: 'month', limit: '0.0001' },
    )
    // Spent and held: n × $0.00005 + $0.0001.
    expect((await admittedOf(await keyOf(projectId, ada.id)))[0]).toBe(5)
    expect((await admittedOf(await keyOf(projectId, bob.id)))[0]).toBe(1)
    for (let calls = 0; calls < 7; calls++) expect((await call(key)).status).toBe(200)
    const spentBy = async ({ email }: { readonly email: string }) => {
      const { limits } = await tenancy.must(
        'GET',
        `/api/workspaces/${workspaceId}/subject-limits?subject=person:${email}`,
      )
      return limits.map((limit: { subject: string; spent: string }) => [limit.subject, limit.spent])
    }
    expect(await spentBy(ada)).toEqual([['person', '0.00025']])
    expect(await spentBy(bob)).toEqual([
      ['person', '0.00005'],
      [`person:${bob.email}`, '0.00005'],
    ])
  })

  test('a group counts its people and keys together, and overlapping groups count each', async () => {
    const { workspaceId, projectId, keyId, key } = await tenancy.tenant({ credit: '1' })
    const ada = await addPerson(workspaceId)
    const group = (name: string, ...members: string[]) =>
      tenancy.must('POST', `/api/workspaces/${workspaceId}/groups`, { name, members })
    const design = await group('design', ada.email.toUpperCase(), keyId)
    expect(design.members).toEqual([
      { id: keyId, name: 'k' },
      { id: ada.id, name: ada.email },
    ])
    const all = await group('all hands', ada.id)
    await tenancy.must('PUT', `/api/workspaces/${workspaceId}/limits`, {
      spend_limits: [
        { subject: 'group:design', window: 'month', limit: '0.0003' },
        { subject: 'group:all hands', window: 'month', limit: '0.0002' },
      ],
    })
    const hers = await keyOf(projectId, ada.id)
    expect((await admittedOf(hers))[0]).toBe(3)
    const [admitted, refused] = await admittedOf(key)
    // Three were hers; n × $0.00005 + $0.0001 ≤ $0.0003 while n ≤ 4.
    expect(admitted).toBe(2)
    expect(failureOf(chat, refused)[1]).toContain(
      'Group "design" has used $0.00025 of $0.0003 per month (limit of workspace "a tenant")',
    )
    const deleted = await tenancy.api('DELETE', `/api/groups/${all.id}`)
    expect([deleted.status, deleted.body.error.message]).toEqual([
      400,
      `Group "all hands" has a spend limit in the limits of ${workspaceId}. Remove that limit first: \`tollgate limits show ${workspaceId}\`.`,
    ])
    // Who leaves is not limited from the next request on.
    await tenancy.must('PATCH', `/api/groups/${design.id}`, { members: [ada.id] })
    expect((await call(key)).status).toBe(200)
    await tenancy.must('PUT', `/api/workspaces/${workspaceId}/limits`, {})
    expect((await tenancy.api('DELETE', `/api/groups/${all.id}`)).status).toBe(204)
    expect((await call(hers)).status).toBe(200)
  })

  test('the limits of a deleted project, which nobody can change any more, do not keep a group', async () => {
    const { workspaceId, projectId, keyId, key } = await tenancy.tenant({ credit: '1' })
    const { id } = await tenancy.must('POST', `/api/workspaces/${workspaceId}/groups`, { name: 'g', members: [keyId] })
    await projectLimits(projectId, { subject: 'group:g', window: 'day', limit: '1' })
    expect((await call(key)).status).toBe(200)
    expect((await tenancy.must('DELETE', `/api/projects/${projectId}`)).outcome).toBe('archived')
    expect((await tenancy.api('DELETE', `/api/groups/${id}`)).status).toBe(204)
  })

  test('a limit of some models counts only these, over the last hours, and says when enough is over', async () => {
    const { projectId, key } = await tenancy.tenant({ credit: '1' })
    // Nineteen calls of a twentieth each.
    await projectLimits(projectId, { models: 'acme/la*', window: '5h', limit: '0.001' })
    const [admitted, refused] = await admittedOf(key)
    expect(admitted).toBe(19)
    expect(failureOf(chat, refused)[1]).toContain(
      'Project "a project" with acme/la* has used $0.00095 of $0.001 in any 5h',
    )
    // The minute of the charge and 300 more.
    const seconds = Number(refused.headers.get('retry-after'))
    if (engine.name === 'sqlite') expect(seconds).toBe(301 * 60)
    // By the clock of the database, somewhere in a minute. The charges may be in two.
    expect(Math.ceil(seconds / 60)).toBeWithin(300, 302)
    expect((await call(key, 'acme/tiny')).status).toBe(200)
    // A request that either may answer counts where it is answered, and must fit in both.
    expect((await call(key, 'acme/tiny', { models: ['acme/tiny', 'acme/large'] })).status).toBe(429)
    if (engine.name === 'postgres') return
    clock.turn(300 * 60_000)
    expect((await call(key)).status).toBe(429)
    clock.turn(60_000)
    expect((await admittedOf(key))[0]).toBe(19)
    clock.turn(-301 * 60_000)
  })

  test('a request that needs more than the whole limit is told that waiting does not help', async () => {
    const { projectId, key } = await tenancy.tenant({ credit: '1' })
    for (const window of ['5h', 'day']) {
      await projectLimits(projectId, { window, limit: '0.00002' })
      const refused = await call(key)
      expect(refused.status).toBe(429)
      expect(failureOf(chat, refused)[1]).toContain(
        'this request needs at least $0.0001. That is more than the whole limit, so waiting does not help. A shorter prompt or a lower `max_tokens` needs less. Raise the limit: ',
      )
      // Nothing was charged that could leave the window, which is not a reason to try again at once.
      const seconds = Number(refused.headers.get('retry-after'))
      if (window === '5h') expect(Math.ceil(seconds / 60)).toBeWithin(300, 302)
    }
  })

  test('what cannot be limited is refused by name, and a pattern of no model is warned about', async () => {
    const { workspaceId, projectId, keyId } = await tenancy.tenant()
    const put = async (limit: object, path = `/api/projects/${projectId}/limits`) => {
      const { status, body } = await tenancy.api('PUT', path, {
        spend_limits: [{ limit: '1', window: 'day', ...limit }],
      })
      return status === 200 ? body.warnings : [status, body.error.param, body.error.message]
    }
    for (const window of ['0h', '90m', '1.5h', '32d', '745h', 'year', '']) {
      const [status, param] = await put({ window })
      expect([window, status, param]).toEqual([window, 400, 'spend_limits[0].window'])
    }
    expect((await put({ subject: 'team:web' })).slice(0, 2)).toEqual([400, 'spend_limits[0].subject'])
    expect((await put({ models: 'large' })).slice(0, 2)).toEqual([400, 'spend_limits[0].models'])
    const stranger = await addPerson((await tenancy.tenant()).workspaceId)
    expect((await put({ subject: `person:${stranger.email}` }))[2]).toStartWith(
      `\`spend_limits\` names person:${stranger.email}, but nobody with that address or id has a role in this workspace.`,
    )
    expect((await put({ subject: 'group:none' }))[2]).toContain('this workspace has no such group')
    expect((await put({ subject: 'person' }, `/api/keys/${keyId}/limits`))[2]).toContain('a key belongs to one person')
    expect(await put({ models: 'acme/nothing-*' })).toEqual([
      'acme/nothing-* matches no model of the catalog, so its limit counts nothing.',
    ])
    expect(await put({ models: 'acme/la*' })).toBeUndefined()
    const twice = { subject: 'user', models: 'acme/*', window: '7d', limit: '1' }
    const same = await tenancy.api('PUT', `/api/projects/${projectId}/limits`, { spend_limits: [twice, twice] })
    expect([same.status, same.body.error.message]).toEqual([400, '`spend_limits: user acme/* 7d` is set twice.'])
    const { status } = await tenancy.api('POST', `/api/workspaces/${workspaceId}/groups`, {
      name: 'x',
      members: [stranger.email],
    })
    expect(status).toBe(400)
  })

  test('the books are right afterwards', async () => {
    const database = await openBooks()
    expect((await verify(database)).findings).toEqual([])
    await database.close()
  })
})
