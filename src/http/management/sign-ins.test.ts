import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { createTestClock } from '../../../test/parts/ledger.ts'
import { openManagement } from '../../../test/parts/management.ts'
import { createId, type PersonId } from '../../kernel/ids.ts'
import { networkOf } from '../../kernel/ip-range.ts'
import { createUserCodes, startGrant } from '../../tenancy/device-grants.ts'
import { createGuessLimits } from '../../tenancy/guess-limits.ts'
import { addMember, insertPerson } from '../../tenancy/people.ts'
import { narrowed, type Principal } from '../../tenancy/principal.ts'

const userCodes = createUserCodes({ current: new Uint8Array(32).fill(3) })

forEachEngine((engine) => {
  test('wrong codes and codes of another browser are counted, recorded and slowed down by person and address', async () => {
    const [counted, refused, slowed]: [string[], string[], string[]] = [[], [], []]
    const session = (personId: PersonId): Principal => ({
      ...{ kind: 'person', name: personId, personId, isOperator: true, grants: [] },
      session: { id: createId('ses'), openedAt: 0 },
    })
    const [ada, eve] = [createId('per'), createId('per')]
    const sessions = { ada: session(ada), eve: session(eve) }
    await using management = await openManagement(engine, {
      addressOf: () => '203.0.113.7',
      sessionOf: async (request) => sessions[request.headers.get('cookie') as keyof typeof sessions],
      signIns: {
        userCodes,
        count: (event) => void counted.push(event),
        onRefused: (what) => void refused.push(what),
        slowName: async (name) => void slowed.push(name),
        guesses: createGuessLimits(createTestClock()),
      },
    })
    const { database, clock } = management
    const grant = { client: 'tollgate', device: 'laptop', address: undefined }
    const started = await database.transaction((sql) => startGrant(sql, grant, userCodes, clock.now()))
    if ('fullForMs' in started) throw new Error('not started')
    const open = async (cookie: string, code: string) => {
      const body = { code }
      const asked = { token: null, headers: { cookie }, body }
      return (await management.ask('POST', '/api/me/device-grants/open', asked)).status
    }
    expect(await open('ada', 'BCDF-GHJK')).toBe(404)
    expect(await open('ada', started.userCode)).toBe(200)
    expect([counted, refused]).toEqual([['refused'], ['user code']])
    expect(slowed).toEqual([`user code ${ada}`, `user code ${networkOf('203.0.113.7')}`])
    expect(await open('eve', started.userCode)).toBe(403)
    expect([counted, refused]).toEqual([
      ['refused', 'refused'],
      ['user code', 'user code'],
    ])
    expect(slowed.slice(2)).toEqual([`user code ${eve}`, `user code ${networkOf('203.0.113.7')}`])
  })

  test('a person who has entered 20 wrong codes is not told about further ones, and others are', async () => {
    const session = (personId: PersonId): Principal => ({
      ...{ kind: 'person', name: personId, personId, isOperator: true, grants: [] },
      session: { id: createId('ses'), openedAt: 0 },
    })
    const sessions = { ada: session(createId('per')), eve: session(createId('per')) }
    await using management = await openManagement(engine, {
      addressOf: () => '203.0.113.7',
      sessionOf: async (request) => sessions[request.headers.get('cookie') as keyof typeof sessions],
    })
    const { database, clock } = management
    const grant = { client: 'tollgate', device: 'laptop', address: undefined }
    const started = await database.transaction((sql) => startGrant(sql, grant, userCodes, clock.now()))
    if ('fullForMs' in started) throw new Error('not started')
    const open = (cookie: string, code: string) =>
      management.ask('POST', '/api/me/device-grants/open', { token: null, headers: { cookie }, body: { code } })
    const guesses = await Promise.all(Array.from({ length: 25 }, () => open('eve', 'BCDF-GHJK')))
    const statuses = guesses.map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array(20).fill(404), ...Array(5).fill(429)])
    // A right code is refused too, or it would say that it is right.
    const refused = await open('eve', started.userCode)
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, 600])
    for (let again = 0; again < 25; again++) expect((await open('ada', started.userCode)).status).toBe(200)
  })

  test('an operator who views the console as someone else approves no device', async () => {
    const personId = createId('per')
    const operator: Principal = {
      ...{ kind: 'person', name: personId, personId, isOperator: true, grants: [] },
      session: { id: createId('ses'), openedAt: 0 },
    }
    await using management = await openManagement(engine, {
      sessionOf: async () => narrowed(operator, 'member', createId('ws')),
    })
    for (const [call, more] of [['open'], ['approve', { project_id: createId('prj') }], ['deny']] as const) {
      const asked = { token: null, headers: { cookie: 'x' }, body: { code: 'WDJB-MJHT', ...more } }
      const { status, body } = await management.ask('POST', `/api/me/device-grants/${call}`, asked)
      expect([call, status, body.error.message]).toEqual([call, 400, expect.stringContaining('Stop viewing')])
    }
  })

  test('the preview of a member has their role and the groups of their last sign-in', async () => {
    await using management = await openManagement(engine)
    const { id: workspaceId } = await management.make('/api/workspaces', { name: 'acme' })
    const rules = [
      { settings: { model: 'x' } },
      { role: 'viewer', settings: { model: 'y' } },
      { group: 'dev', settings: { cleanupPeriodDays: 7 } },
    ]
    await management.ask('PUT', '/api/managed-settings', { body: { rules } })
    const { database, clock } = management
    await database.transaction(async (sql) => {
      const person = await insertPerson(sql, { email: 'ada@example.com', name: 'Ada' }, clock.now())
      await addMember(sql, person, { role: 'viewer', workspaceId }, 'invitation', clock.now())
      await sql`UPDATE people SET idp_groups = ${JSON.stringify(['dev', 'ops'])} WHERE id = ${person}`
    })
    const [member] = (await management.ask('GET', '/api/members')).body.data
    const preview = (body: object) => management.ask('POST', '/api/managed-settings/preview', { body })
    expect((await preview({ member_id: member.id })).body).toMatchObject({
      ...{ role: 'viewer', groups: ['dev', 'ops'], settings: { model: 'y', cleanupPeriodDays: 7 } },
    })
    expect((await preview({ member_id: createId('mem') })).status).toBe(404)
    expect((await preview({})).body).toMatchObject({ role: null, groups: [], settings: { model: 'x' } })
  })
})
