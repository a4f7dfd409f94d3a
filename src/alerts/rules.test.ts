import { expect } from 'bun:test'
import { forEachEngine, testWith } from '../../test/parts/engines.ts'
import { openManagement, type TestManagement } from '../../test/parts/management.ts'
import { createPrice, type Price } from '../catalog/price.ts'
import { recordListPrices } from '../catalog/price-lists.ts'
import { recordPrices } from '../catalog/price-versions.ts'
import { createId, type PersonId, type WorkspaceId } from '../kernel/ids.ts'
import type { Pico } from '../kernel/money.ts'
import type { Role } from '../kernel/roles.ts'
import { addMember, insertPerson } from '../tenancy/people.ts'
import { detectAlerts, listAlerts, raiseAlert, raiseProviderState } from './alerts.ts'

const dollar = 1_000_000_000n

forEachEngine((engine) => {
  const storeTest = testWith(() => openManagement(engine))

  /** A workspace with a balance in dollars. */
  const workspace = async (management: TestManagement, balance: string, name = 'acme') => {
    const { id } = await management.make('/api/workspaces', { name })
    await management.make(`/api/workspaces/${id}/topups`, { amount: balance })
    return id as WorkspaceId
  }
  const person = ({ database }: TestManagement, email: string, role: Role, workspaceId: WorkspaceId | undefined) =>
    database.transaction(async (sql): Promise<PersonId> => {
      const id = await insertPerson(sql, { email, name: email }, 0)
      await addMember(sql, id, { role, workspaceId }, 'invitation', 0)
      return id
    })
  /** As two replicas do at the same time. */
  const detect = async ({ database, clock }: TestManagement, domains: readonly string[] = []) => {
    const raising = { now: clock.now(), mail: { domains } }
    await Promise.all([detectAlerts(database, raising), detectAlerts(database, raising)])
  }
  const messages = async ({ database }: TestManagement, workspaceId?: WorkspaceId) =>
    (await listAlerts(database.sql, { workspaceId, limit: 100 })).items.map(({ message }) => message)
  /** Who was sent what: the kind and the receiver of every delivery. */
  const sent = async ({ database }: TestManagement) => {
    const rows = await database.sql<{ kind: string; receiver: string }>`SELECT a.kind,
      COALESCE(w.url, p.email, d.email) AS receiver FROM deliveries d JOIN alerts a ON a.id = d.alert_id
      LEFT JOIN webhooks w ON w.id = d.webhook_id LEFT JOIN people p ON p.id = d.person_id`
    return rows.map(({ kind, receiver }) => `${kind} ${receiver}`).sort()
  }

  storeTest('a new workspace has the usual rules, and they can be changed and deleted', async (management) => {
    const id = await workspace(management, '2.00')
    const { body } = await management.ask('GET', `/api/alert-rules?workspace_id=${id}`)
    const nobodyElse = { workspace_id: id, roles: ['admin'], emails: [], webhooks: [], scope_id: null, has_mail: false }
    expect(body.data).toEqual([
      {
        ...nobodyElse,
        id: expect.any(String),
        kind: 'balance.low',
        below: '1.00',
        percents: null,
        days: null,
        created_at: expect.any(String),
      },
      {
        ...nobodyElse,
        id: expect.any(String),
        kind: 'limit.reached',
        below: null,
        percents: [75, 90, 100],
        days: null,
        created_at: expect.any(String),
      },
      {
        ...nobodyElse,
        id: expect.any(String),
        kind: 'topup.failed',
        below: null,
        percents: null,
        days: null,
        created_at: expect.any(String),
      },
    ])
    await detect(management)
    expect(await messages(management)).toEqual([])
    const path = `/api/alert-rules/${body.data[0].id}`
    expect((await management.ask('PATCH', path, { body: { below: '5' } })).body).toMatchObject({
      below: '5.00',
      roles: ['admin'],
    })
    expect((await management.ask('GET', `/api/workspaces/${id}`)).body.low_balance).toBe('5.00')
    await detect(management)
    await detect(management)
    const low = 'The balance of workspace "acme" is $2.00, below $5.00. Calls are refused with 402 once it is used up.'
    expect(await messages(management, id)).toEqual([low])
    expect((await management.ask('DELETE', path)).status).toBe(204)
    await management.make(`/api/workspaces/${id}/topups`, { amount: '0.50' })
    await detect(management)
    expect(await messages(management, id)).toEqual([low])
    expect((await management.ask('GET', `/api/workspaces/${id}`)).body.low_balance).toBeNull()
    expect((await management.ask('DELETE', path)).status).toBe(404)
  })

  storeTest('credit that expires unspent raises one alert, the given number of days before', async (management) => {
    const { database, ledger, ask, make } = management
    const id = await workspace(management, '1.00')
    const other = await workspace(management, '1.00', 'other')
    for (const [plan, expires_days] of [
      ['long', 30],
      ['short', 3],
    ] as const)
      expect(
        (await ask('PUT', `/api/plans/${plan}`, { body: { credit: '20', period: 'month', expires_days } })).status,
      ).toBe(200)
    expect((await ask('PUT', `/api/workspaces/${id}/plan`, { body: { plan: 'long' } })).status).toBe(200)
    expect((await ask('PUT', `/api/workspaces/${other}/plan`, { body: { plan: 'short' } })).status).toBe(200)
    await ledger.renewPlans(id)
    await ledger.renewPlans(other)
    const rule = { kind: 'credit.expiring', workspace_id: id }
    const refusals = [rule, { ...rule, days: 0 }, { ...rule, days: 367 }, { kind: 'topup.failed', days: 3 }]
    for (const body of refusals) {
      const refused = await ask('POST', '/api/alert-rules', { body })
      expect([refused.status, refused.body.error.param]).toEqual([400, 'days'])
    }
    const { id: ruleId } = await make('/api/alert-rules', { ...rule, days: 2 })
    expect((await ask('PATCH', `/api/alert-rules/${ruleId}`, { body: { days: 3 } })).body).toMatchObject({ days: 3 })
    await make('/api/alert-rules', { kind: 'credit.expiring', days: 3 })
    const [credit] = await database.sql<{ expires_at: bigint; id: string; time_window: string }>`
      SELECT expires_at, id, time_window FROM credits WHERE workspace_id = ${id}`
    const expires = Number(credit?.expires_at)
    const detectAt = (at: number) => detectAlerts(database, { now: at, mail: { domains: [] } })
    await detectAt(expires - 3 * 86_400_000 - 1)
    expect(await messages(management)).toEqual([])
    for (const at of [expires - 3 * 86_400_000, expires - 1]) await detectAt(at)
    const day = new Date(expires).toISOString()
    const month = credit?.time_window.replace('month:', '')
    const message = `$20.00 of the credit of the plan "long" (${month}) in workspace "acme" expires on ${day.slice(0, 10)}, ${day.slice(11, 16)} UTC, unless it is spent before.`
    // One by the workspace's rule, one by the installation's. The other credit never lives longer than three days.
    expect(await messages(management, id)).toEqual([message])
    expect(await messages(management)).toEqual([message, message])
    // Neither is what is used up.
    await database.transaction(async (sql) => {
      await sql`DELETE FROM alerts`
      await sql`UPDATE credits SET remaining = 0 WHERE id = ${credit?.id ?? ''}`
    })
    await detectAt(expires - 1)
    expect(await messages(management)).toEqual([])
  })

  storeTest(
    'limits of people, groups, models and the last hours raise alerts, and a rule can be for one of them',
    async (management) => {
      const { database, clock } = management
      const id = await workspace(management, '100.00')
      const ada = await person(management, 'ada@example.com', 'member', id)
      const group = await management.make(`/api/workspaces/${id}/groups`, { name: 'design' })
      const project = await management.make(`/api/workspaces/${id}/projects`, { name: 'web' })
      const rule = { kind: 'limit.reached', workspace_id: id, percents: [50] }
      await management.make('/api/alert-rules', { ...rule, scope_id: group.id })
      await management.make('/api/alert-rules', { ...rule, scope_id: ada })
      const day = { window: 'day', limit: '10.00' }
      const put = await management.ask('PUT', `/api/projects/${project.id}/limits`, {
        body: {
          spend_limits: [
            { subject: 'person', ...day },
            { subject: 'group:design', ...day, models: 'acme/*' },
            { subject: 'user', ...day },
            { models: 'acme/*', window: '5h', limit: '10.00' },
          ],
        },
      })
      expect(put.status).toBe(200)
      const [today, minute] = [
        `day:${new Date(clock.now()).toISOString().slice(0, 10)}`,
        Math.floor(clock.now() / 60_000),
      ]
      await database.transaction(async (sql) => {
        for (const scope of [`person:${ada}`, `group:${group.id}?acme/*`, 'user:eu_1'])
          await sql`INSERT INTO budgets (scope_id, time_window, spent, held) VALUES (${`${project.id}/${scope}`}, ${today}, ${6n * dollar}, 0)`
        // The first is older than the window.
        for (const [ago, amount] of [
          [301, 5n],
          [299, 3n],
          [0, 5n],
        ] as const)
          await sql`INSERT INTO budget_minutes (scope_id, time_window, minute, spent, kept_until)
          VALUES (${`${project.id}?acme/*`}, '5h', ${BigInt(minute - ago)}, ${amount * dollar}, ${BigInt(minute + 9999)})`
      })
      await detect(management)
      await detect(management)
      const reached = (await messages(management, id)).map((text) => text.replace(/ It resets.*/, '')).sort()
      expect(reached).toEqual([
        'Group "design" with acme/* has spent $6.00 of its limit in the project "web" of $10.00 a day (50 %).',
        'Person ada@example.com has spent $6.00 of its limit in the project "web" of $10.00 a day (50 %).',
        'The project "web" with acme/* has spent $8.00 of its limit of $10.00 in any 5h (75 %).',
      ])
    },
  )

  storeTest('a spend limit raises its own percentages, those of a rule for one key too', async (management) => {
    const { database, clock } = management
    const id = await workspace(management, '100.00')
    const project = await management.make(`/api/workspaces/${id}/projects`, { name: 'web' })
    const limits = { spend_per_month: '10.00' }
    const key = (name: string) => management.make(`/api/projects/${project.id}/keys`, { name, limits })
    const [one, two] = [await key('one'), await key('two')]
    await management.make('/api/alert-rules', {
      kind: 'limit.reached',
      workspace_id: id,
      percents: [50, 80],
      scope_id: one.id,
    })
    const month = `month:${new Date(clock.now()).toISOString().slice(0, 7)}`
    const spend = (scope: string, amount: bigint) =>
      database.transaction(async (sql) => {
        await sql`DELETE FROM budgets WHERE scope_id = ${scope}`
        await sql`INSERT INTO budgets (scope_id, time_window, spent, held) VALUES (${scope}, ${month}, ${amount}, 0)`
      })
    await spend(one.id, 4n * dollar)
    await spend(two.id, 8n * dollar)
    await detect(management)
    const reached = async () =>
      (await messages(management, id)).map((text) => text.replace(/ It resets.*/, '')).reverse()
    expect(await reached()).toEqual(['The key "two" has spent $8.00 of its limit of $10.00 a month (75 %).'])
    const now = new Date(clock.now())
    const next = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString().slice(0, 10)
    expect((await messages(management, id))[0]).toEndWith(` It resets on ${next}, 00:00 UTC.`)
    await spend(one.id, 8n * dollar - 1n)
    await detect(management)
    await spend(one.id, 8n * dollar)
    await detect(management)
    await detect(management)
    expect((await reached()).slice(1).sort()).toEqual([
      'The key "one" has spent $7.999999999 of its limit of $10.00 a month (50 %).',
      'The key "one" has spent $7.999999999 of its limit of $10.00 a month (75 %).',
      'The key "one" has spent $8.00 of its limit of $10.00 a month (80 %).',
    ])
  })

  storeTest(
    'roles, addresses and webhooks of a rule get its alert, each once, and what people chose goes first',
    async (management) => {
      const { database } = management
      const id = await workspace(management, '2.00')
      await person(management, 'ada@example.com', 'admin', id)
      await person(management, 'vera@example.com', 'viewer', id)
      await person(management, 'max@example.com', 'member', id)
      await person(management, 'root@example.com', 'operator', undefined)
      const quiet = await person(management, 'quiet@example.com', 'admin', id)
      await database.transaction(
        (sql) => sql`INSERT INTO alert_readers (reader, kinds, read_until) VALUES (${quiet}, '["limit.reached"]', '')`,
      )
      const hook = (kinds: string[] | null, place: string | null, port: number) =>
        management.make('/api/webhooks', { url: `https://192.0.2.1:${port}/`, workspace_id: place, kinds })
      const named = await hook([], id, 1)
      await hook(['balance.low'], id, 2)
      await hook([], id, 3)
      await hook(null, null, 4)
      await management.make('/api/alert-rules', {
        ...{ kind: 'balance.low', workspace_id: id, below: '3.00', roles: ['viewer'], webhooks: [named.id] },
        emails: ['Max@example.com', 'ops@allowed.example', 'vera@example.com'],
      })
      // The same threshold: one alert for both.
      await management.make('/api/alert-rules', { kind: 'balance.low', workspace_id: id, below: '3', roles: ['admin'] })
      await detect(management, ['allowed.example'])
      expect(await messages(management, id)).toHaveLength(1)
      const hooks = [1, 2, 4].map((port) => `balance.low https://192.0.2.1:${port}/`)
      const people = ['ada@example.com', 'max@example.com', 'ops@allowed.example', 'vera@example.com']
      expect(await sent(management)).toEqual([...hooks, ...people.map((each) => `balance.low ${each}`)].sort())
      // The operator took the domain back, and Max left.
      const { data } = (await management.ask('GET', `/api/members?workspace_id=${id}`)).body
      const max = data.find(({ email }: { email: string }) => email === 'max@example.com')
      expect((await management.ask('DELETE', `/api/members/${max.id}`)).status).toBe(204)
      await management.make(`/api/workspaces/${id}/topups`, { amount: '0.10' })
      await detect(management)
      const later = (await sent(management)).filter((text) => text.includes('allowed') || text.includes('max'))
      expect(later).toEqual(['balance.low ops@allowed.example'])
      expect((await management.ask('DELETE', `/api/webhooks/${named.id}`)).status).toBe(204)
      const { body } = await management.ask('GET', `/api/alert-rules?workspace_id=${id}`)
      expect(body.data.map(({ webhooks }: { webhooks: string[] }) => webhooks)).toEqual([[], [], [], [], []])
    },
  )

  storeTest('a rule of the installation watches every workspace and is not shown to its people', async (management) => {
    const { database, clock } = management
    const id = await workspace(management, '2.00', 'globex')
    await person(management, 'root@example.com', 'operator', undefined)
    await person(management, 'ada@example.com', 'admin', id)
    const body = { kind: 'balance.low', below: '3', roles: ['operator'], emails: ['desk@elsewhere.example'] }
    const rule = await management.make('/api/alert-rules', body)
    await detect(management)
    expect(await messages(management, id)).toEqual([])
    expect(await messages(management)).toEqual([expect.stringContaining('workspace "globex" is $2.00, below $3.00')])
    const raising = { now: clock.now(), mail: { domains: [] } }
    for (const isDown of [true, false])
      await raiseProviderState(database, { provider: 'p', isDown, why: undefined }, raising)
    const alert = { kind: 'topup.failed', workspaceId: id, message: 'Declined.', data: {}, crossing: 'x' } as const
    await database.transaction((sql) => raiseAlert(sql, alert, raising))
    expect(await sent(management)).toEqual([
      'balance.low desk@elsewhere.example',
      'balance.low root@example.com',
      'provider.down root@example.com',
      'provider.up root@example.com',
      'topup.failed ada@example.com',
    ])
    expect((await management.ask('DELETE', `/api/alert-rules/${rule.id}`)).status).toBe(204)
  })

  storeTest(
    'refuses thresholds out of range and unknown recipients by their field, and saves nothing',
    async (management) => {
      const [id, other] = [await workspace(management, '2.00'), await workspace(management, '2.00', 'other')]
      await person(management, 'ada@example.com', 'admin', id)
      await person(management, 'eve@example.com', 'admin', other)
      const project = await management.make(`/api/workspaces/${other}/projects`, { name: 'web' })
      const key = await management.make(`/api/projects/${project.id}/keys`, { name: 'k' })
      const hook = await management.make('/api/webhooks', { url: 'https://192.0.2.1/', workspace_id: other })
      const [low, limit] = [
        { kind: 'balance.low', below: '1' },
        { kind: 'limit.reached', percents: [80] },
      ]
      const noKey = `There is no key, project, workspace, person or group ${key.id} in this workspace. Leave out \`scope_id\` to watch the limits of all of them.`
      const percents = '`percents[1]` must be a whole number from 1 to 100.'
      const stranger = (email: string) =>
        `${email} has no role in this workspace. Invite the person first, or ask the operator to add the domain to \`alerts.email_domains\`.`
      const wrong: [object, string, string][] = [
        [
          { kind: 'balance.low' },
          'below',
          '`below` must be a balance above 0 in USD such as "20.00". For no alert, delete the rule.',
        ],
        [
          { ...low, below: '0' },
          'below',
          '`below` must be a balance above 0 in USD such as "20.00". For no alert, delete the rule.',
        ],
        [
          { ...low, percents: [80] },
          'percents',
          '`percents` is for rules of the kind limit.reached or bill.differs, not balance.low.',
        ],
        [
          { ...low, scope_id: key.id },
          'scope_id',
          '`scope_id` is for rules of the kind limit.reached, not balance.low.',
        ],
        [{ kind: 'limit.reached' }, 'percents', '`percents` must be whole numbers from 1 to 100, such as [80, 100].'],
        [{ ...limit, below: '1' }, 'below', '`below` is for rules of the kind balance.low, not limit.reached.'],
        [{ ...limit, scope_id: key.id }, 'scope_id', noKey],
        [{ ...limit, scope_id: other }, 'scope_id', noKey.replace(key.id, other)],
        [{ ...limit, scope_id: 'x' }, 'scope_id', noKey.replace(key.id, 'x')],
        [
          { ...low, roles: ['operator'] },
          'roles',
          '`roles` of a rule of a workspace must be admin or viewer, not operator.',
        ],
        [{ ...low, emails: ['ada'] }, 'emails', '`emails` must be an e-mail address such as ada@example.com.'],
        [{ ...low, emails: ['ada@example.com', 'eve@example.com'] }, 'emails', stranger('eve@example.com')],
        [{ ...low, emails: ['x@not-allowed.example'] }, 'emails', stranger('x@not-allowed.example')],
        [
          { ...low, webhooks: [hook.id] },
          'webhooks',
          `There is no webhook ${hook.id} in this workspace. Create it first.`,
        ],
      ]
      for (const percent of [0, 101, 75.5]) wrong.push([{ ...limit, percents: [90, percent] }, 'percents[1]', percents])
      const rules = async () => (await management.ask('GET', '/api/alert-rules')).body.data.length
      const before = await rules()
      for (const [fields, param, message] of wrong) {
        const sent = { workspace_id: id, ...fields }
        const { status, body } = await management.ask('POST', '/api/alert-rules', { body: sent })
        expect([fields, status, body.error?.param, body.error?.message]).toEqual([fields, 400, param, message])
      }
      const kind = { kind: 'price.changed', workspace_id: id }
      expect((await management.ask('POST', '/api/alert-rules', { body: kind })).body.error.param).toBe('kind')
      const missing = { ...low, workspace_id: createId('ws') }
      expect((await management.ask('POST', '/api/alert-rules', { body: missing })).status).toBe(404)
      expect(await rules()).toBe(before)
      // A change that fails leaves the rule as it was.
      const rule = await management.make('/api/alert-rules', { ...low, workspace_id: id, emails: ['ada@example.com'] })
      const path = `/api/alert-rules/${rule.id}`
      for (const body of [{ below: '0' }, { below: '9', emails: ['eve@example.com'] }, { percents: [50] }]) {
        expect((await management.ask('PATCH', path, { body })).status).toBe(400)
      }
      const { data } = (await management.ask('GET', `/api/alert-rules?workspace_id=${id}`)).body
      expect(data.find((each: { id: string }) => each.id === rule.id)).toEqual(rule)
    },
  )

  storeTest('a workspace has at most fifty rules', async (management) => {
    const id = await workspace(management, '2.00')
    const body = { kind: 'topup.failed', workspace_id: id }
    for (let count = 3; count < 50; count++) await management.make('/api/alert-rules', body)
    const { status, body: answer } = await management.ask('POST', '/api/alert-rules', { body })
    expect([status, answer.error.message]).toEqual([400, 'There are 50 rules already. Delete one that is not needed.'])
  })

  storeTest(
    'a changed price is one alert with the old and the new price, with a price list too',
    async (management) => {
      const { database, clock } = management
      const priced = (input: bigint): Price =>
        createPrice({ input: (input * 10_000n) as Pico, output: 10_000_000n as Pico })
      const record = async (input: bigint, markup: bigint, own = new Map<string, Price>()) => {
        const models = [{ id: 'acme/large', price: priced(input), source: 'built in' }]
        await recordPrices({ database, clock, models })
        clock.advance(7)
        const lists = [{ name: 'retail', markup, setAt: 0 }]
        await recordListPrices({ database, clock, models, lists, overrides: new Map([['retail', own]]) })
        clock.advance(60_000)
        await detect(management)
      }
      const alerts = async () => (await listAlerts(database.sql, { limit: 10 })).items
      await record(250n, 1500n)
      expect(await alerts()).toEqual([])
      await record(300n, 1500n)
      const [first, ...others] = await alerts()
      expect(others).toEqual([])
      expect(first).toMatchObject({
        message: 'A price changed. acme/large: input $2.50 → $3.00 per million tokens.',
        data: {
          ...{ models: ['acme/large'], count: 1 },
          changes: [{ model: 'acme/large', old: { input: '2.50' }, new: { input: '3.00' } }],
        },
      })
      // Only the list changes: by its markup, then by a price of its own. 3.00 × 1.15 = 3.45, × 1.2 = 3.60.
      await record(300n, 2000n)
      await record(300n, 2000n, new Map([['acme/large', priced(333n)]]))
      expect((await alerts()).map(({ message }) => message).slice(0, 2)).toEqual([
        'A price changed. acme/large in the price list retail: input $3.60 → $3.33, output $12.00 → $10.00 per million tokens.',
        'A price changed. acme/large in the price list retail: input $3.45 → $3.60, output $11.50 → $12.00 per million tokens.',
      ])
      expect(await alerts()).toHaveLength(3)
    },
  )
})
