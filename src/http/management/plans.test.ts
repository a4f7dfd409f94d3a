import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { expectBooksRight, holdOf, settlementOf } from '../../../test/parts/ledger.ts'
import { openManagement } from '../../../test/parts/management.ts'
import type { Nano } from '../../kernel/money.ts'
import { putSubscription, recordPlanPayment } from '../../ledger/plan-payments.ts'

const pro = { name: 'Pro', credit: '20', period: 'month', price: '15' }

forEachEngine((engine) => {
  test('an operator offers plans, gives one to a workspace, changes it for the next period and ends it', async () => {
    await using management = await openManagement(engine)
    const { ask, make, ledger, database } = management
    const { id } = await make('/api/workspaces', { name: 'acme' })
    const path = `/api/workspaces/${id}/plan`
    const put = (plan: string, body: object) => ask('PUT', `/api/plans/${plan}`, { body })
    expect((await ask('GET', path)).body).toEqual({
      ...{ plan: null, starts_at: null, ends_at: null, next_plan: null, next_credit: null, credits: [] },
      ...{ subscription: null, offers: [] },
    })
    const offered = {
      id: 'pro',
      ...pro,
      credit: '20.00',
      price: '15.00',
      expires_days: null,
      workspaces: [] as string[],
    }
    expect((await put('pro', pro)).body).toEqual(offered)
    expect((await put('daily', { credit: '1', period: 'day', expires_days: 7 })).status).toBe(200)
    const { body: begun } = await ask('PUT', path, { body: { plan: 'pro' } })
    expect(begun).toMatchObject({ plan: 'pro', next_plan: 'pro', next_credit: '20.00' })
    expect(begun.credits).toMatchObject([
      { plan: 'pro', granted: '20.00', remaining: '20.00', expires_at: begun.ends_at },
    ])

    const request = holdOf(id, 3_000_000_000n)
    await ledger.hold(request)
    await ledger.settle(settlementOf(request.requestId, 2_500_000_000n))
    expect((await ask('GET', path)).body.credits).toMatchObject([{ granted: '20.00', remaining: '17.50' }])
    expect((await ask('GET', `/api/workspaces/${id}/wallet`)).body).toMatchObject({ balance: '17.50', credit: '17.50' })
    const transfers = (await ask('GET', `/api/workspaces/${id}/transfers?kind=plan_credit`)).body.data
    expect(transfers).toMatchObject([{ id: begun.credits[0].id, direction: 'in', amount: '20.00' }])

    expect((await ask('PUT', path, { body: { plan: 'daily' } })).body).toMatchObject({
      ...{ plan: 'pro', next_plan: 'daily', next_credit: '1.00', credits: [{ plan: 'pro', remaining: '17.50' }] },
    })
    expect((await ask('DELETE', path)).body).toMatchObject({ plan: 'pro', next_plan: null, next_credit: null })
    const refused = await ask('DELETE', '/api/plans/pro')
    expect([refused.status, refused.body.error.message]).toEqual([
      400,
      `The plan \`pro\` belongs to ${id}. Give these workspaces another plan or none, and delete it after their current period.`,
    ])
    expect((await ask('DELETE', '/api/plans/daily')).status).toBe(204)
    expect((await ask('GET', '/api/plans')).body.data).toEqual([{ ...offered, workspaces: [id] }])
    const { body: audit } = await ask('GET', '/api/audit?limit=7')
    expect(audit.data.map(({ action, object }: { action: string; object: string }) => `${action} ${object}`)).toEqual([
      'plan.delete daily',
      ...Array(3).fill(`workspace.plan ${id}`),
      ...['plan.set daily', 'plan.set pro', `workspace.create ${id}`],
    ])
    await expectBooksRight(database)
  })

  test('a plan is either deleted or given to a workspace, if both are asked for at the same moment', async () => {
    await using management = await openManagement(engine)
    const { ask, make, database } = management
    const { id } = await make('/api/workspaces', { name: 'acme' })
    expect((await ask('PUT', '/api/plans/pro', { body: pro })).status).toBe(200)
    let calls: ReturnType<typeof ask>[] = []
    await database.transaction(async (sql) => {
      // A row that refers to the plan waits only for this lock. On SQLite both wait for the end of the transaction anyway.
      if (engine.name === 'postgres') await sql`SELECT 1 FROM plans WHERE id = 'pro' FOR UPDATE`
      calls = [ask('DELETE', '/api/plans/pro'), ask('PUT', `/api/workspaces/${id}/plan`, { body: { plan: 'pro' } })]
      const waiting = () => database.sql`SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`
      while (engine.name === 'postgres' && (await waiting()).length < 2) await Bun.sleep(10)
    })
    const statuses = (await Promise.all(calls)).map(({ status }) => status)
    expect([
      [204, 404],
      [400, 200],
    ]).toContainEqual(statuses)
    expect((await ask('GET', '/api/plans')).body.data.length).toBe(statuses[1] === 200 ? 1 : 0)
  })

  test('a plan that cannot be is refused with what it must be', async () => {
    await using management = await openManagement(engine)
    const { ask, make } = management
    const { id } = await make('/api/workspaces', { name: 'acme' })
    const faultOf = async (method: string, path: string, body?: object) => {
      const reply = await ask(method, path, { body })
      return [reply.status, reply.body.error.param, reply.body.error.message]
    }
    const put = (body: object, plan = 'pro') => faultOf('PUT', `/api/plans/${plan}`, { ...pro, ...body })
    expect(await put({ credit: '0' })).toEqual([
      ...[400, 'credit', '`credit` must be more than 0 and at most 1000000.00 (USD).'],
    ])
    expect((await put({ credit: '1000000.01' }))[1]).toBe('credit')
    expect((await put({ price: '1000000.01' }))[1]).toBe('price')
    for (const amount of ['0.0000000001', '-1', '1e3']) expect((await put({ credit: amount }))[1]).toBe('credit')
    expect((await put({ period: 'year' }))[2]).toBe('`period` must be "day", "week" or "month".')
    for (const days of [0, 367, 1.5]) {
      expect((await put({ expires_days: days }))[2]).toBe(
        '`expires_days` must be a whole number of days from 1 to 366.',
      )
    }
    expect((await put({}, `a${'-'.repeat(41)}`))[2]).toBe(
      'The id of a plan must be a-z, 0-9 and -, at most 40 characters.',
    )
    expect(await put({}, 'Pro_1')).toEqual([
      ...[400, null, 'The id of a plan must be a-z, 0-9 and -, at most 40 characters.'],
    ])
    const missing = 'There is no plan `gold`. GET /api/plans lists them.'
    expect((await faultOf('PUT', `/api/workspaces/${id}/plan`, { plan: 'gold' }))[2]).toBe(missing)
    expect((await faultOf('DELETE', '/api/plans/gold'))[2]).toBe(missing)
    // The price is only shown: no payments are configured.
    await ask('PUT', '/api/plans/pro', { body: pro })
    expect((await ask('GET', `/api/workspaces/${id}/plan`)).body.offers).toEqual([])
    for (const [method, body] of [['POST', { plan: 'pro' }], ['DELETE']] as const) {
      const refused = await faultOf(method, `/api/workspaces/${id}/subscription`, body)
      expect([refused[0], refused[2]]).toEqual([404, expect.stringContaining('takes no payments')])
    }
  })

  test('a plan that a workspace pays for is not given, deleted or erased by the operator', async () => {
    await using management = await openManagement(engine)
    const { ask, make, database, ledger } = management
    const { id } = await make('/api/workspaces', { name: 'acme' })
    await ask('PUT', '/api/plans/pro', { body: pro })
    const now = Date.now()
    const facts = { workspaceId: id, planId: 'pro', credit: 20_000_000_000n as Nano }
    const period = { startsAt: now, endsAt: now + 86_400_000 }
    const paying = { ...facts, id: 'sub_1', price: 15_000_000_000n as Nano, state: 'active', endsAt: period.endsAt }
    const payment = { ...facts, ...period, id: 'in_1', paid: paying.price, expiresDays: undefined, createdAt: now }
    await database.transaction(async (sql) => {
      await putSubscription(sql, { ...paying, isEnding: false })
      await recordPlanPayment(sql, payment)
    })
    await ledger.renewPlans(id)
    const { body } = await ask('GET', `/api/workspaces/${id}/plan`)
    expect(body).toMatchObject({
      ...{ plan: 'pro', next_plan: 'pro', next_credit: '20.00', ends_at: new Date(period.endsAt).toISOString() },
      subscription: { plan: 'pro', price: '15.00', state: 'active', cancelled: false },
      credits: [{ period: 'in_1', remaining: '20.00' }],
    })
    const messageOf = async (method: string, path: string, sent?: object) => {
      const reply = await ask(method, path, { body: sent })
      return [reply.status, reply.body.error.message.split('.')[0]]
    }
    const plan = `/api/workspaces/${id}/plan`
    for (const [method, sent] of [['PUT', { plan: 'pro' }], ['DELETE']] as const) {
      expect(await messageOf(method, plan, sent)).toEqual([400, expect.stringContaining('subscribes to `pro`')])
    }
    expect(await messageOf('DELETE', '/api/plans/pro')).toEqual([400, `The plan \`pro\` belongs to ${id}`])
    const exported = (await ask('GET', `/api/workspaces/${id}/export`)).text.split('\n')
    expect(exported.filter((line) => line.includes('"plan_payment"')).map((line) => JSON.parse(line))).toEqual([
      {
        ...{ record: 'plan_payment', id: 'in_1', plan: 'pro', paid: '15.00', credit: '20.00' },
        ...{ starts_at: new Date(now).toISOString(), ends_at: new Date(period.endsAt).toISOString() },
        created_at: new Date(now).toISOString(),
      },
    ])
    const erase = () => ask('POST', `/api/workspaces/${id}/erase`, { body: { confirm: 'erase' } })
    expect((await erase()).body.error.message).toStartWith('This workspace pays for the plan `pro`. Cancel')
    await database.transaction((sql) => putSubscription(sql, { ...paying, isEnding: true }))
    expect((await ask('GET', plan)).body).toMatchObject({ plan: 'pro', next_plan: null, next_credit: null })
    expect((await erase()).status).toBe(200)
    await expectBooksRight(database)
  })
})
