// How much of each spend limit one person, group, end user or tag has used. Amounts are in cents, charged by hand to the
// counters that the names of a charge give them.

import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../../test/parts/engines.ts'
import { holdOf, settlementOf } from '../../../test/parts/ledger.ts'
import { openManagement } from '../../../test/parts/management.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { isRolling, minuteAt, type SpendScope, scopeText, type WindowWord } from '../../kernel/spend-limit.ts'
import { windowAt } from '../../ledger/budget.ts'
import { hashEndUser } from '../../tenancy/end-users.ts'
import { deleteGroup } from '../../tenancy/groups.ts'
import { createToken } from '../../tenancy/management-tokens.ts'
import { addMember, insertPerson } from '../../tenancy/people.ts'

const cent = 10_000_000n
const limit = (subject: string, window: string, amount: string, more: object = {}) => ({
  ...{ subject, window, limit: amount },
  ...more,
})

async function openTenant(engine: TestEngine, name = 'acme') {
  const management = await openManagement(engine)
  return {
    ...management,
    ...(await tenantIn(management, name)),
    [Symbol.asyncDispose]: () => management[Symbol.asyncDispose](),
  }
}

type Management = Awaited<ReturnType<typeof openManagement>>

async function tenantIn(management: Management, name: string) {
  const { make, ask, ledger, clock, database } = management
  const { id: workspaceId } = await make('/api/workspaces', { name })
  const { id: projectId } = await make(`/api/workspaces/${workspaceId}/projects`, { name: `${name} web` })
  await ledger.fund({ workspaceId, amount: (10_000n * cent) as Nano, kind: 'topup' })
  const tenant = { workspaceId: workspaceId as WorkspaceId, projectId: projectId as string }
  return {
    ...tenant,
    async limit(place: string, limits: object) {
      const reply = await ask('PUT', `/api/${place}/limits`, { body: limits })
      expect([reply.status, reply.text]).toEqual([200, reply.text])
    },
    show: (subject: string, token?: string) =>
      ask(
        'GET',
        `/api/workspaces/${workspaceId}/subject-limits?subject=${encodeURIComponent(subject)}`,
        token === undefined ? {} : { token },
      ),
    /** Charges so many cents to a counter. The minutes of rolling windows are written here: PostgreSQL has its own clock. */
    async spend(cents: number, scope: SpendScope, word: WindowWord) {
      const [scopeId, amount] = [scopeText(scope), BigInt(cents) * cent]
      if (isRolling(word)) {
        const minute = BigInt(minuteAt(clock.now()))
        const row = { scope_id: scopeId, time_window: word, minute, spent: amount, kept_until: minute + 10_000n }
        await database.transaction((sql) => sql`INSERT INTO budget_minutes ${sql([row])}`)
        return
      }
      const budget = { scopeId, window: windowAt(word, clock.now()), cap: (1000n * cent) as Nano }
      const hold = { ...holdOf(tenant.workspaceId, amount), budgets: [budget] }
      expect((await ledger.hold(hold)).kind).toBe('held')
      await ledger.settle(settlementOf(hold.requestId, amount))
    },
    person: (email: string, role: 'admin' | 'member' | 'viewer' = 'member') =>
      database.transaction(async (sql) => {
        const at = clock.now()
        const id = await insertPerson(sql, { email, name: 'x' }, at)
        await addMember(sql, id, { role, workspaceId: tenant.workspaceId }, 'invitation', at)
        const input = { personId: id, role, workspaceId: tenant.workspaceId, name: 't', days: 30 }
        return { id, token: (await createToken(sql, input, { actor: id, at })).secret }
      }),
  }
}

forEachEngine((engine) => {
  test('a person: limits of each and of this one, in every window, with models, and through groups', async () => {
    await using tenant = await openTenant(engine)
    const { workspaceId, projectId, make, clock, show, spend } = tenant
    const [ada, bob] = [await tenant.person('ada@example.com'), await tenant.person('bob@example.com')]
    const design = await make(`/api/workspaces/${workspaceId}/groups`, { name: 'design', members: [ada.id] })
    await make(`/api/workspaces/${workspaceId}/groups`, { name: 'board', members: [bob.id] })
    const dearer = { models: 'c/*', then: 'a/one', slow_down: 6 }
    await tenant.limit(`workspaces/${workspaceId}`, {
      spend_per_day: '500.00',
      spend_limits: [
        ...[limit('person', 'day', '5.00'), limit('person:bob@example.com', 'day', '4.00')],
        ...[limit('group:design', 'month', '50.00'), limit('group:board', 'month', '60.00')],
      ],
    })
    await tenant.limit(`projects/${projectId}`, {
      spend_limits: [limit('person:ada@example.com', '5h', '1.00', dearer), limit('user', 'day', '9.00')],
    })
    const [owner, name] = [workspaceId, ada.id]
    await spend(125, { owner, kind: 'person', name }, 'day')
    await spend(300, { owner, kind: 'person', name: bob.id }, 'day')
    await spend(700, { owner, kind: 'group', name: design.id }, 'month')
    const rolling = { owner: projectId, kind: 'person', name, models: 'c/*' } as const
    await spend(11, rolling, '5h')
    clock.advance(4 * 3_600_000)
    await spend(22, rolling, '5h')
    const { status, body } = await show('person:Ada@Example.com')
    // 2027-01-15T12:00:00Z, a Friday.
    expect(new Date(clock.now()).toISOString()).toBe('2027-01-15T12:00:00.000Z')
    const ofWorkspace = { kind: 'workspace', id: workspaceId, name: 'acme' }
    expect([status, body]).toEqual([
      200,
      {
        ...{ subject: 'person:ada@example.com', id: ada.id, role: 'member' },
        groups: [{ id: design.id, name: 'design' }],
        limits: [
          {
            ...{ subject: 'person', is_of_each: true, period: 'day', limit: '5.00', spent: '1.25' },
            ...{ starts_at: '2027-01-15T00:00:00.000Z', resets_at: '2027-01-16T00:00:00.000Z' },
            set_in: ofWorkspace,
          },
          {
            ...{ subject: 'group:design', is_of_each: false, group: 'design' },
            ...{ period: 'month', limit: '50.00', spent: '7.00', set_in: ofWorkspace },
            ...{ starts_at: '2027-01-01T00:00:00.000Z', resets_at: '2027-02-01T00:00:00.000Z' },
          },
          {
            ...{ subject: 'person:ada@example.com', is_of_each: false, models: 'c/*', then: 'a/one', slow_down: 6 },
            ...{ period: '5h', limit: '1.00', spent: '0.33', starts_at: '2027-01-15T07:00:00.000Z' },
            resets_at: expect.any(String),
            set_in: { kind: 'project', id: projectId, name: 'acme web' },
          },
        ],
      },
    ])
    expect((await show(`person:${ada.id}`)).body).toEqual(body)
    // The first of the two charges has left the window.
    clock.advance(2 * 3_600_000)
    expect((await show('person:ada@example.com')).body.limits[2].spent).toBe('0.22')
    // As the books have it.
    const [row] = await tenant.database.sql<{ spent: bigint }>`SELECT CAST(SUM(spent) AS BIGINT) AS spent FROM
      budget_minutes WHERE scope_id = ${`${projectId}/person:${name}?c/*`}`
    expect(row?.spent).toBe(33n * cent)
    // The other figures of the day are those of the others.
    expect((await show('person:bob@example.com')).body.limits.map(({ spent }: { spent: string }) => spent)).toEqual([
      ...['3.00', '3.00', '0.00'],
    ])
  })

  test('groups, end users and tags, in workspaces, projects and working keys', async () => {
    await using tenant = await openTenant(engine)
    const { workspaceId, projectId, make, ask, show, spend, database } = tenant
    const design = await make(`/api/workspaces/${workspaceId}/groups`, { name: 'design: print', members: [] })
    const key = (name: string) => make(`/api/projects/${projectId}/keys`, { name })
    const [used, revoked] = [await key('ci'), await key('old')]
    const ofKey = { user_spend_per_day: '2.00', spend_limits: [limit('tag:team=web', '24h', '3.00')] }
    for (const { id } of [used, revoked]) await tenant.limit(`keys/${id}`, ofKey)
    await ask('POST', `/api/keys/${revoked.id}/revoke`, { body: {} })
    await tenant.limit(`workspaces/${workspaceId}`, { spend_limits: [limit('group:design: print', '7d', '8.00')] })
    await tenant.limit(`projects/${projectId}`, { tag_spend_per_month: { 'team=web': '90.00', 'team=app': '80.00' } })
    await database.transaction((sql) => sql`UPDATE workspaces SET end_user_salt = 'salt' WHERE id = ${workspaceId}`)
    const hash = hashEndUser('salt', 'customer 7')
    await spend(150, { owner: used.id, kind: 'user', name: hash }, 'day')
    await spend(20, { owner: used.id, kind: 'tag', name: 'team=web' }, '24h')
    await spend(30, { owner: projectId, kind: 'tag', name: 'team=web' }, 'month')
    await spend(40, { owner: workspaceId, kind: 'group', name: design.id }, '7d')
    const gist = async (subject: string) => {
      const { body } = await show(subject)
      const states = body.limits.map((each: { [name: string]: unknown; set_in: { name: string } }) =>
        [each.set_in.name, each.subject, each.period, each.spent, each.limit].join(' '),
      )
      return [body.subject, body.id, body.role, body.groups, ...states]
    }
    const ofUser = [`user:${hash}`, null, null, [], 'ci user day 1.50 2.00']
    expect(await gist('user:customer 7')).toEqual(ofUser)
    expect(await gist(`user:${hash}`)).toEqual(ofUser)
    expect((await gist('user:somebody else')).slice(4)).toEqual(['ci user day 0.00 2.00'])
    expect(await gist('tag:team=web')).toEqual([
      ...['tag:team=web', null, null, []],
      ...['acme web tag:team=web month 0.30 90.00', 'ci tag:team=web 24h 0.20 3.00'],
    ])
    expect((await gist('tag:team=none')).slice(4)).toEqual([])
    const ofGroup = ['group:design: print', design.id, null, [], 'acme group:design: print 7d 0.40 8.00']
    expect(await gist('group:design: print')).toEqual(ofGroup)
    expect(await gist(`group:${design.id}`)).toEqual(ofGroup)
    await tenant.limit(`workspaces/${workspaceId}`, {})
    expect((await gist('group:design: print')).slice(4)).toEqual([])
  })

  test('a limit that starts later has spent nothing yet', async () => {
    await using tenant = await openTenant(engine)
    const { workspaceId, show, spend } = tenant
    const ada = await tenant.person('ada@example.com')
    await spend(125, { owner: workspaceId, kind: 'person', name: ada.id }, 'month')
    const limits = { starts_at: '2027-01-20', spend_limits: [limit('person', 'month', '5.00')] }
    await tenant.limit(`workspaces/${workspaceId}`, limits)
    expect((await show('person:ada@example.com')).body.limits).toMatchObject([
      { spent: '0.00', starts_at: '2027-01-20T00:00:00.000Z', resets_at: '2027-02-01T00:00:00.000Z' },
    ])
  })

  test('T9: nobody of another workspace, and members only themselves', async () => {
    await using tenant = await openTenant(engine)
    const { workspaceId, make, show } = tenant
    const other = await tenantIn(tenant, 'other')
    await tenant.limit(`workspaces/${workspaceId}`, { spend_limits: [limit('person', 'day', '5.00')] })
    const [ada, bob] = [await tenant.person('ada@example.com'), await tenant.person('bob@example.com', 'viewer')]
    const stranger = await other.person('stranger@example.com', 'admin')
    const theirs = await make(`/api/workspaces/${other.workspaceId}/groups`, { name: 'theirs', members: [] })
    const faultOf = async (subject: string, token?: string) => {
      const { status, body } = await show(subject, token)
      return status === 200 ? status : [status, body.error.message]
    }
    for (const name of ['stranger@example.com', stranger.id, 'nobody@example.com', 'per_1']) {
      expect(await faultOf(`person:${name}`)).toEqual([404, `There is no person ${name}.`])
    }
    for (const name of ['theirs', theirs.id, 'none']) {
      expect(await faultOf(`group:${name}`)).toEqual([404, `There is no group ${name}.`])
    }
    const forms = '`subject` must be one of user:ID, tag:team=web, person:ADDRESS, group:NAME'
    for (const text of ['ada', 'person', 'person:', 'all', 'all:x', 'tag:web', 'team:web', 'Person:ada@example.com']) {
      expect(await faultOf(text)).toEqual([400, `${forms}, not "${text}".`])
    }
    const path = `/api/workspaces/${workspaceId}/subject-limits`
    expect((await tenant.ask('GET', path)).body.error).toMatchObject({ param: 'subject' })
    // Of another workspace: as if there were none.
    expect(await faultOf('person:ada@example.com', stranger.token)).toEqual([
      404,
      `There is no workspace ${workspaceId}.`,
    ])
    expect(await faultOf('person:bob@example.com', bob.token)).toEqual([
      403,
      expect.stringContaining('the role viewer'),
    ])
    for (const own of [`person:${ada.id}`, 'person:ADA@example.com']) expect(await faultOf(own, ada.token)).toBe(200)
    const refused =
      'Members see their own spend limits only: `subject=person:ada@example.com`. Ask an admin of the workspace.'
    for (const subject of ['person:bob@example.com', 'person:nobody@example.com', 'group:none', 'user:x', 'tag:a=b']) {
      expect(await faultOf(subject, ada.token)).toEqual([403, refused])
    }
  })

  test('limits that name someone who has left can be sent again as they are shown', async () => {
    await using tenant = await openTenant(engine)
    const { workspaceId, ask, database, clock } = tenant
    const other = await tenantIn(tenant, 'other')
    const ada = await tenant.person('ada@example.com')
    // The person stays, because they have a role elsewhere.
    const elsewhere = { role: 'member', workspaceId: other.workspaceId } as const
    await database.transaction((sql) => addMember(sql, ada.id, elsewhere, 'invitation', clock.now()))
    const limits = { spend_limits: [limit('person:ada@example.com', 'day', '5.00')] }
    await tenant.limit(`workspaces/${workspaceId}`, limits)
    const { body: members } = await ask('GET', `/api/members?workspace_id=${workspaceId}`)
    expect((await ask('DELETE', `/api/members/${members.data[0].id}`)).status).toBe(204)
    const { body: workspace } = await ask('GET', `/api/workspaces/${workspaceId}`)
    expect(workspace.limits).toEqual(limits)
    const again = await ask('PUT', `/api/workspaces/${workspaceId}/limits`, {
      body: { ...workspace.limits, requests_per_minute: 60 },
    })
    expect([again.status, again.body]).toEqual([200, { requests_per_minute: 60, ...limits }])
    // A new limit of theirs is refused.
    await tenant.limit(`workspaces/${workspaceId}`, {})
    expect((await ask('PUT', `/api/workspaces/${workspaceId}/limits`, { body: limits })).status).toBe(400)
  })

  test('a limit is not set for a group that is deleted at the same moment', async () => {
    await using tenant = await openTenant(engine)
    const { workspaceId, make, ask, database, clock } = tenant
    const { id } = await make(`/api/workspaces/${workspaceId}/groups`, { name: 'design', members: [] })
    const body = { spend_limits: [limit('group:design', 'day', '5.00')] }
    let put: ReturnType<typeof ask> | undefined
    await database.transaction(async (sql) => {
      await deleteGroup(sql, id, { actor: 'test', at: clock.now() })
      put = ask('PUT', `/api/workspaces/${workspaceId}/limits`, { body })
      // On SQLite it waits for the end of this transaction anyway.
      const waiting = () => database.sql`SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`
      while (engine.name === 'postgres' && (await waiting()).length === 0) await Bun.sleep(10)
    })
    expect((await put)?.status).toBe(400)
  })
})
