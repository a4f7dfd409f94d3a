import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { holdOf } from '../../../test/parts/ledger.ts'
import type { Reply } from '../../../test/parts/manage.ts'
import { openManagement } from '../../../test/parts/management.ts'
import { unavailable } from '../../ledger/account.ts'
import type { Correction } from '../../ledger/fund.ts'

const keyed = (key: string, body: unknown) => ({ headers: { 'Idempotency-Key': key }, body })

async function openWallet(engine: Parameters<typeof openManagement>[0], amount: string) {
  const management = await openManagement(engine)
  const { id } = await management.make('/api/workspaces', { name: 'acme' })
  await management.ask('POST', `/api/workspaces/${id}/topups`, { body: { amount, reference: 'invoice 17' } })
  const path = `/api/workspaces/${id}/corrections`
  return {
    id,
    path,
    management,
    correct: (body: unknown, key?: string): Promise<Reply> =>
      management.ask('POST', path, key === undefined ? { body } : keyed(key, body)),
    wallet: async () => (await management.ask('GET', `/api/workspaces/${id}/wallet`)).body,
    [Symbol.asyncDispose]: () => management[Symbol.asyncDispose](),
  }
}

forEachEngine((engine) => {
  test('B2: records a correction as a transfer with a reason and an audit entry, and takes only available money', async () => {
    await using wallet = await openWallet(engine, '2500.00')
    const { management, id, correct } = wallet
    const reason = 'invoice 17 was 25.00'
    const taken = await correct({ amount: '2475.00', direction: 'take', reason })
    expect([taken.status, taken.body]).toEqual([
      201,
      { id: expect.stringMatching(/^tr_/), amount: '2475.00', direction: 'take', balance: '25.00' },
    ])
    const transfers = (await management.ask('GET', `/api/workspaces/${id}/transfers`)).body.data
    expect(transfers[0]).toMatchObject({
      id: taken.body.id,
      kind: 'correction',
      direction: 'out',
      amount: '2475.00',
      reference: reason,
      request_id: null,
    })
    expect(transfers[1]).toMatchObject({ kind: 'topup', amount: '2500.00' })
    const { body: audit } = await management.ask('GET', '/api/audit?limit=1')
    expect(audit.data[0]).toMatchObject({
      actor: 'management token',
      action: 'wallet.correct',
      object: id,
      details: { transfer: taken.body.id, direction: 'take', amount: '2475.00', reason },
    })

    expect(await management.ledger.hold(holdOf(id, 20_000_000_000n))).toEqual({ kind: 'held' })
    const inFlight = await correct({ amount: '5.01', direction: 'take', reason })
    expect([inFlight.status, inFlight.body.error.code]).toEqual([402, 'INSUFFICIENT_BALANCE'])
    expect(inFlight.headers.get('x-should-retry')).toBe('false')
    expect(inFlight.body.error.message).toBe(
      'Cannot take $5.01; $5.00 is available: the balance is $25.00, and running requests hold $20.00. A wallet never goes below zero; take at most $5.00.',
    )
    expect(inFlight.body.error.metadata).toEqual({
      reason: 'in_flight',
      balance: '25.00',
      held: '20.00',
      needed: '5.01',
    })
    const empty = await correct({ amount: '26', direction: 'take', reason })
    expect(empty.body.error.metadata).toEqual({ reason: 'empty', balance: '25.00', held: '20.00', needed: '26.00' })
    expect(await wallet.wallet()).toMatchObject({ balance: '25.00', held: '20.00', available: '5.00' })
    expect((await correct({ amount: '5', direction: 'take', reason })).body.balance).toBe('20.00')
    expect((await correct({ amount: '0.50', direction: 'add', reason })).body).toMatchObject({ balance: '20.50' })
    // Refusals are not recorded: the top-up and three corrections are, and the workspace.
    expect((await management.ask('GET', '/api/audit')).body.data).toHaveLength(5)
  })

  test('corrects once for a used idempotency key, and repeats the balance of that time', async () => {
    await using wallet = await openWallet(engine, '10.00')
    const body = { amount: '4.00', direction: 'take', reason: 'refund 1' }
    const first = await wallet.correct(body, 'k')
    await wallet.correct({ ...body, amount: '6.00' }, 'other')
    const again = await wallet.correct(body, 'k')
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(again.body.balance).toBe('6.00')
    for (const changed of [{ amount: '5.00' }, { direction: 'add' }, { reason: 'refund 2' }]) {
      const conflict = await wallet.correct({ ...body, ...changed }, 'k')
      expect([conflict.status, conflict.body.error.param]).toEqual([400, 'Idempotency-Key'])
    }
    expect((await wallet.wallet()).balance).toBe('0.00')
  })

  test('says that an unconfirmed correction may have been made, and corrects once for its key', async () => {
    await using wallet = await openWallet(engine, '10.00')
    const { ledger } = wallet.management
    const { correct } = ledger
    Object.assign(ledger, {
      async correct(correction: Correction) {
        Object.assign(ledger, { correct })
        await correct(correction)
        return unavailable
      },
    })
    const ask = () => wallet.correct({ amount: '4', direction: 'take', reason: 'refund' }, 'k')
    const lost = await ask()
    expect([lost.status, lost.headers.get('retry-after')]).toEqual([503, '1'])
    expect(lost.body.error.message).toContain('unknown whether')
    const made = (await ask()).body
    expect(made.balance).toBe('6.00')
    expect((await wallet.wallet()).balance).toBe('6.00')
    const audit = (await wallet.management.ask('GET', '/api/audit')).body
    expect(audit.data[0]).toMatchObject({ action: 'wallet.correct', details: { transfer: made.id, repeated: true } })
  })

  test('refuses an invalid correction by its field, and changes nothing', async () => {
    await using wallet = await openWallet(engine, '10.00')
    const body = { amount: '4', direction: 'take', reason: 'refund' }
    const cases: [change: object, param: string][] = [
      [{ amount: '0' }, 'amount'],
      [{ amount: '-4' }, 'amount'],
      [{ amount: '1000000.01', direction: 'add' }, 'amount'],
      [{ direction: 'out' }, 'direction'],
      [{ direction: undefined }, 'direction'],
      [{ reason: undefined }, 'reason'],
      [{ reason: ' ' }, 'reason'],
      [{ reason: 'x'.repeat(201) }, 'reason'],
      [{ reason: 'a\0b' }, 'reason'],
      [{ reference: 'x' }, 'reference'],
    ]
    for (const [change, param] of cases) {
      const reply = await wallet.correct({ ...body, ...change })
      expect([change, reply.status, reply.body.error.param]).toEqual([change, 400, param])
    }
    expect((await wallet.wallet()).balance).toBe('10.00')
    expect(wallet.management.defects).toEqual([])
  })
})
