import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { openManagement, type Reply, type TestManagement } from '../../../test/parts/management.ts'
import type { Funding } from '../../ledger/fund.ts'
import { unavailable } from '../../ledger/unavailable.ts'

async function countsOf({ ask, database }: TestManagement) {
  const [audit] = await database.sql<{ rows: bigint }>`SELECT COUNT(*) AS rows FROM audit`
  const { body } = await ask('GET', '/api/workspaces')
  return { workspaces: body.data.length, audit: Number(audit?.rows) }
}

const keyed = (key: string, body: unknown) => ({ headers: { 'Idempotency-Key': key }, body })
const day = 24 * 60 * 60 * 1000

forEachEngine((engine) => {
  test('a POST with a used key gets the first answer, and nothing is done twice', async () => {
    await using management = await openManagement(engine)
    const first = await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 'acme' }))
    management.clock.advance(1000)
    const again = await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 'acme' }))
    expect([again.status, again.text]).toEqual([201, first.text])
    expect([first, again].map(({ headers }) => headers.get('x-tollgate-replayed'))).toEqual([null, 'true'])
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    expect(await countsOf(management)).toEqual({ workspaces: 1, audit: 1 })
    const other = await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 'other' }))
    expect([other.status, other.body.error.param]).toEqual([400, 'Idempotency-Key'])
    management.clock.advance(day - 1000)
    expect((await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 'other' }))).status).toBe(201)
    expect(await countsOf(management)).toEqual({ workspaces: 2, audit: 2 })
  })

  test('a top-up whose commit was not confirmed may have been made: the answer says so, and the key credits it once', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const { fund } = management.ledger
    Object.assign(management.ledger, {
      async fund(funding: Funding) {
        Object.assign(management.ledger, { fund })
        await fund(funding)
        return unavailable
      },
    })
    const topUp = () => management.ask('POST', `/api/workspaces/${id}/topups`, keyed('k-1', { amount: '5.00' }))
    const lost = await topUp()
    expect([lost.status, lost.headers.get('retry-after')]).toEqual([503, '1'])
    expect(lost.body.error.message).toContain('not known')
    expect(lost.body.error.message).not.toContain('nothing was credited')
    expect((await topUp()).body).toMatchObject({ amount: '5.00', balance: '5.00' })
    expect((await management.ask('GET', `/api/workspaces/${id}/wallet`)).body.balance).toBe('5.00')
  })

  test('what was refused is not stored: the key is free for the corrected request', async () => {
    await using management = await openManagement(engine)
    expect((await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 17 }))).status).toBe(400)
    expect((await management.ask('POST', '/api/workspaces', keyed('k-1', { name: '' }))).status).toBe(400)
    expect((await management.ask('POST', '/api/workspaces', keyed('k-1', { name: 'acme' }))).status).toBe(201)
    for (const key of ['', 'x'.repeat(256), 'é']) {
      const reply = await management.ask('POST', '/api/workspaces', keyed(key, { name: 'acme' }))
      expect([key, reply.status, reply.body.error.param]).toEqual([key, 400, 'Idempotency-Key'])
    }
  })

  test('a replayed key creation shows the same secret, and the store holds none', async () => {
    await using management = await openManagement(engine)
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    const project = await management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    const path = `/api/projects/${project.id}/keys`
    const first = await management.ask('POST', path, keyed('k-1', { name: 'ci' }))
    const again = await management.ask('POST', path, keyed('k-1', { name: 'ci' }))
    expect(again.body).toEqual(first.body)
    const rotate = `/api/keys/${first.body.id}/rotate`
    const rotated = await management.ask('POST', rotate, keyed('k-1', {}))
    expect((await management.ask('POST', rotate, keyed('k-1', {}))).body.secret).toBe(rotated.body.secret)
    const rows = await management.database.sql<{ response: string }>`SELECT response FROM idempotency`
    expect(rows).toHaveLength(2)
    for (const { response } of rows) {
      for (const { secret } of [first.body, rotated.body]) {
        expect(`${response} ${Buffer.from(response, 'base64url')}`).not.toContain(secret.slice(6))
      }
    }
    expect((await management.ask('GET', '/api/keys')).body.data).toHaveLength(1)
  })

  test('B1: a top-up with a used key credits once and says the balance of then', async () => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const path = `/api/workspaces/${id}/topups`
    const first = await management.ask('POST', path, keyed('pay-1', { amount: '5.00' }))
    await management.ask('POST', path, keyed('pay-2', { amount: '1.00' }))
    const again = await management.ask('POST', path, keyed('pay-1', { amount: '5.00' }))
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(again.body.balance).toBe('5.00')
    const other = await management.ask('POST', path, keyed('pay-1', { amount: '6.00' }))
    expect([other.status, other.body.error.param]).toEqual([400, 'Idempotency-Key'])
    expect((await management.ask('GET', `/api/workspaces/${id}/wallet`)).body.balance).toBe('6.00')
    const { body } = await management.ask('GET', '/api/audit')
    expect(body.data.filter(({ action }: { action: string }) => action === 'wallet.topup')).toHaveLength(2)
  })

  test.each([
    ['topups', { amount: '5.00' }, 'wallet.topup'],
    ['corrections', { amount: '5.00', direction: 'add', reason: 'missing' }, 'wallet.correct'],
  ])(
    'of %s each has one line in the audit log, also where the first call was cut off before it',
    async (what, body, action) => {
      await using management = await openManagement(engine)
      const { id } = await management.make('/api/workspaces', { name: 'acme' })
      const { database, defects } = management
      const { transaction } = database
      const move = () => management.ask('POST', `/api/workspaces/${id}/${what}`, keyed('k', body))
      const cutOff: typeof transaction = (work, shape) =>
        transaction(async (sql) => {
          const result = await work(sql)
          if ((await sql`SELECT 1 FROM audit WHERE action = ${action}`).length > 0) throw new Error('cut off')
          return result
        }, shape)
      Object.assign(database, { transaction: cutOff })
      const first = await move()
      expect([first.status, defects.splice(0)]).toMatchObject([201, [{ message: 'cut off' }]])
      Object.assign(database, { transaction })
      expect((await move()).body).toEqual(first.body)
      expect((await move()).body).toEqual(first.body)
      const { data } = (await management.ask('GET', '/api/audit')).body
      const lines = data.filter((line: { action: string }) => line.action === action)
      expect(lines).toMatchObject([
        { object: id, details: { transfer: first.body.id, amount: '5.00', repeated: true } },
      ])
    },
  )

  test.each(['/api/workspaces', 'topups'] as const)('twins at the same time do the work of %s once', async (what) => {
    await using management = await openManagement(engine)
    const { id } = await management.make('/api/workspaces', { name: 'acme' })
    const path = what === 'topups' ? `/api/workspaces/${id}/topups` : what
    const body = what === 'topups' ? { amount: '5.00' } : { name: 'twin' }
    const replies: Reply[] = await Promise.all(
      Array.from({ length: 12 }, () => management.ask('POST', path, keyed('twin', body))),
    )
    // Whoever comes while the first one runs is sent away, whoever comes later gets its answer.
    const done = replies.filter(({ status }) => status === 201)
    expect(done.length).toBeGreaterThan(0)
    expect(new Set(done.map(({ text }) => text)).size).toBe(1)
    for (const refused of replies.filter(({ status }) => status !== 201)) {
      expect([refused.status, refused.body.error.code, refused.headers.get('retry-after')]).toEqual([
        429,
        'LIMIT_EXCEEDED',
        '1',
      ])
    }
    const late = await management.ask('POST', path, keyed('twin', body))
    expect(late.text).toBe(done[0]?.text ?? '')
    expect(await countsOf(management)).toEqual({ workspaces: what === 'topups' ? 1 : 2, audit: 2 })
  })

  test('twins on two replicas do the work once', async () => {
    await using management = await openManagement(engine)
    const server = management.secondReplica()
    const replies = await Promise.all([
      management.ask('POST', '/api/workspaces', keyed('twin', { name: 'twin' })),
      server.ask('POST', '/api/workspaces', keyed('twin', { name: 'twin' })),
    ])
    expect(replies.map(({ status }) => status)).toEqual([201, 201])
    expect(replies[0]?.text).toBe(replies[1]?.text ?? '')
    expect(await countsOf(management)).toEqual({ workspaces: 1, audit: 1 })
  })
})
