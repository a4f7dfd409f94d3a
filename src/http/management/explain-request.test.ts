import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { freePrice, type Price } from '../../catalog/price.ts'
import { recordPrices } from '../../catalog/price-versions.ts'
import { explainText } from '../../cli/explain-text.ts'
import { systemClock } from '../../kernel/clock.ts'
import { createId } from '../../kernel/ids.ts'
import type { Nano, Pico } from '../../kernel/money.ts'
import type { Usage } from '../../kernel/usage.ts'
import { walletOf } from '../../ledger/account.ts'
import type { Transfer, TransferKind } from '../../ledger/transfer.ts'
import type { Database } from '../../store/database.ts'
import type { LoggedRequest } from '../../telemetry/request-row.ts'
import { createRequestReader } from './explain-request.ts'

/** $1.00 a million in, $2.00 out. */
const price: Price = { ...freePrice, free: false, input: 1_000_000n as Pico, output: 2_000_000n as Pico }
const reported: Usage = {
  inputTokens: 100,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  outputTokens: 200,
  source: 'reported',
}
/** 100 × 1,000 + 200 × 2,000 nano-dollars. */
const full = 500_000n

interface Sketch {
  /** What the caller was told. */
  readonly told: bigint
  readonly moved: Partial<Record<TransferKind, bigint>>
  readonly held?: bigint
  readonly usage?: Usage
  /** A call on the workspace's own credential has none. */
  readonly isPriced?: boolean
}

/** One request as the API explains it, and what the command line says to that. */
async function explain(database: Database, { told, moved, held = full, usage = reported, isPriced = true }: Sketch) {
  const models = [{ id: 'acme/large', price, source: 'tollgate.yaml:3' }]
  const priceVersion = (await recordPrices({ database, clock: systemClock, models })).versions.get('acme/large')
  const [id, workspaceId] = [createId('req'), createId('ws')]
  const request: LoggedRequest = {
    ...{ id, workspaceId, startedAt: 0, projectId: createId('prj'), keyId: createId('key') },
    ...{ path: '/v1/messages', stream: true, model: 'acme/large', status: 200, code: undefined, reason: undefined },
    ...{ provider: 'acme', upstreamModel: 'l', lane: 'bytes', candidates: [], attempts: [], warnings: [], notes: [] },
    ...{ usage, held: held as Nano, charge: told as Nano, firstEventMs: 1, totalMs: 2, client: undefined },
    // Of the plan: what served in the end is the ledger's knowledge.
    priceVersion,
  }
  const transfers = Object.entries(moved).map(([kind, amount]): Transfer => {
    const isCharge = kind === 'charge'
    return {
      ...{ id: createId('tr'), requestId: id, reference: undefined, paymentId: undefined, createdAt: 0 },
      kind: isCharge ? 'charge' : 'writeoff',
      debitAccount: isCharge ? walletOf(workspaceId) : 'writeoff',
      creditAccount: 'revenue',
      amount: amount as Nano,
      priceVersion: isCharge && isPriced ? priceVersion : undefined,
      usage: isCharge ? JSON.stringify(usage) : undefined,
      estimated: usage.source === 'estimated',
    }
  })
  const requests = { list: async () => [], find: async () => request }
  const explained = await createRequestReader({
    database,
    requests,
    ledger: { transfersOf: async () => transfers },
  }).find(id)
  return { explained, fault: explainText({ ...explained }).fault, priceVersion }
}

forEachEngine((engine) => {
  test('a charge is its lines added up, and the command line agrees', async () => {
    await using store = await engine.openStore()
    const { explained, fault, priceVersion } = await explain(store.database, { told: full, moved: { charge: full } })
    expect(explained).toMatchObject({ cost: '0.0005', price_version: String(priceVersion) })
    expect(explained?.charge).toMatchObject({
      lines: [
        { kind: 'input', amount: '0.0001' },
        { kind: 'output', amount: '0.0004' },
      ],
      total: '0.0005',
      written_off: '0.00',
      charged: '0.0005',
      released: '0.00',
    })
    expect(fault).toBeUndefined()
  })

  test('what the wallet could not pay is taken off the total, whatever the caller was told', async () => {
    await using store = await engine.openStore()
    // Where several processes share the wallet, the full price is told before anyone knows better.
    for (const told of [300_000n, full]) {
      const moved = { charge: 300_000n, writeoff: 200_000n }
      const { explained, fault } = await explain(store.database, { told, moved, held: 250_000n })
      expect(explained?.charge).toMatchObject({ total: '0.0005', written_off: '0.0002', charged: '0.0003' })
      expect(explained?.charge?.released).toBe('0.00')
      expect(fault).toBeUndefined()
    }
  })

  test('an estimate costs what was held at most', async () => {
    await using store = await engine.openStore()
    const usage = { ...reported, source: 'estimated' } as const
    const moved = { charge: 400_000n }
    const { explained, fault } = await explain(store.database, { told: 400_000n, moved, held: 400_000n, usage })
    expect(explained?.charge).toMatchObject({ total: '0.0004', written_off: '0.00', charged: '0.0004' })
    expect(fault).toBeUndefined()
  })

  test('a transfer that is not what the lines come to is told', async () => {
    await using store = await engine.openStore()
    const { fault } = await explain(store.database, { told: full, moved: { charge: 400_000n } })
    expect(fault).toBe('the transfers come to $0.0004, not to $0.0005')
  })

  test("a call on the workspace's own key has no price, though its plan had one, and adds up", async () => {
    await using store = await engine.openStore()
    for (const fee of [0n, 25_000n]) {
      const { explained, fault } = await explain(store.database, { told: fee, moved: { charge: fee }, isPriced: false })
      expect(explained).toMatchObject({ price_version: null, charge: null })
      expect(explained?.cost).toBe(explained?.transfers[0]?.amount ?? '')
      expect(fault).toBeUndefined()
    }
  })
})
