// The checks of `verify` that are one query each. A new one is a function in the list; it answers with the first rows that are
// wrong, by id, and with no text that a caller of ours has written.

import type { Nano } from '../kernel/money.ts'
import type { Sql } from '../store/sql.ts'
import { snapshotNow } from '../store/store-now.ts'

export interface Finding {
  /** Which rule is broken. */
  readonly check: string
  /** The row: an account, transfer, request or hold. */
  readonly id: string
  readonly detail: string
}

/** What a stored usage costs under a stored price version; undefined = it cannot be said. */
export type PriceOf = (priceVersion: string, usage: string) => Nano | undefined

export interface VerifyContext {
  readonly sql: Sql
  readonly price: PriceOf | undefined
  readonly now?: number | undefined
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

type Check = (context: VerifyContext) => Promise<readonly Finding[]>

const rowsMax = 20n
/** An open hold may be this late before it counts as forgotten: the reaper's promise. */
const reapDelayMs = 60_000n
/** How far clocks of replicas may differ, or be set back, before the order of times is called wrong. */
const clockSkewMs = 300_000n

async function balancesDiffer({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; posted: bigint; expected: bigint }>`SELECT * FROM (
      SELECT b.account_id AS id, b.posted, COALESCE(c.total, 0) - COALESCE(d.total, 0) AS expected FROM balances b
      LEFT JOIN (SELECT credit_account, CAST(SUM(amount) AS BIGINT) AS total FROM transfers GROUP BY credit_account) c
        ON c.credit_account = b.account_id
      LEFT JOIN (SELECT debit_account, CAST(SUM(amount) AS BIGINT) AS total FROM transfers GROUP BY debit_account) d
        ON d.debit_account = b.account_id) AS sums
    WHERE posted <> expected ORDER BY id LIMIT ${rowsMax}`
  return rows.map(({ id, posted, expected }) => ({
    check: 'balance = Σ transfers',
    id,
    detail: `posted ${posted}, transfers say ${expected}`,
  }))
}

async function heldDiffers({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; held: bigint; expected: bigint }>`SELECT * FROM (
      SELECT b.account_id AS id, b.held, COALESCE(h.total, 0) AS expected FROM balances b
      LEFT JOIN (SELECT wallet_id, CAST(SUM(amount) AS BIGINT) AS total FROM holds WHERE state = 'open' GROUP BY wallet_id) h
        ON h.wallet_id = b.account_id) AS sums
    WHERE held <> expected ORDER BY id LIMIT ${rowsMax}`
  return rows.map(({ id, held, expected }) => ({
    check: 'held = Σ open holds',
    id,
    detail: `held ${held}, open holds say ${expected}`,
  }))
}

async function overdrawn({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; posted: bigint; held: bigint }>`SELECT account_id AS id, posted, held
    FROM balances WHERE posted < 0 OR held < 0 OR posted < held ORDER BY account_id LIMIT ${rowsMax}`
  return rows.map(({ id, posted, held }) => ({
    check: 'posted ≥ held ≥ 0',
    id,
    detail: `posted ${posted}, held ${held}`,
  }))
}

/** Also finds a leg that cannot be: whose kind of account does not fit the kind of transfer. */
async function wrongLegs({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; kind: string; debit: string | null; credit: string | null }>`
    SELECT t.id, t.kind, d.kind AS debit, c.kind AS credit FROM transfers t
    LEFT JOIN accounts d ON d.id = t.debit_account LEFT JOIN accounts c ON c.id = t.credit_account
    WHERE d.id IS NULL OR c.id IS NULL
      OR (t.kind = 'charge' AND NOT (d.kind = 'wallet' AND c.kind = 'revenue'))
      OR (t.kind = 'writeoff' AND NOT (d.kind = 'writeoff' AND c.kind = 'revenue'))
      OR (t.kind = 'topup' AND NOT (d.kind = 'funding' AND c.kind = 'wallet'))
      OR (t.kind = 'grant' AND NOT (d.kind = 'grants' AND c.kind = 'wallet'))
      OR (t.kind = 'correction' AND NOT ((d.kind = 'funding' AND c.kind = 'wallet')
        OR (d.kind = 'wallet' AND c.kind = 'funding')))
    ORDER BY t.id LIMIT ${rowsMax}`
  return rows.map(({ id, kind, debit, credit }) => ({
    check: 'accounts fit the transfer',
    id,
    detail: `${kind} from ${debit ?? 'no account'} to ${credit ?? 'no account'}`,
  }))
}

async function walletsWithoutBalance({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string }>`SELECT a.id FROM accounts a LEFT JOIN balances b ON b.account_id = a.id
    WHERE a.kind = 'wallet' AND b.account_id IS NULL ORDER BY a.id LIMIT ${rowsMax}`
  return rows.map(({ id }) => ({ check: 'every wallet has a balance', id, detail: 'no row in balances' }))
}

async function settledTwice({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; n: bigint }>`SELECT request_id AS id, COUNT(*) AS n FROM transfers
    WHERE kind = 'charge' GROUP BY request_id HAVING COUNT(*) <> 1 OR request_id IS NULL
    ORDER BY request_id LIMIT ${rowsMax}`
  return rows.map(({ id, n }) => ({ check: 'one charge per request', id: id ?? 'no request', detail: `${n} charges` }))
}

/** A hold that says settled has its charge, and a charge has no hold that says otherwise. */
async function holdsAgainstCharges({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; state: string; charge: string | null }>`
    SELECT h.request_id AS id, h.state, t.id AS charge FROM holds h
    LEFT JOIN transfers t ON t.request_id = h.request_id AND t.kind = 'charge'
    WHERE (h.state = 'settled' AND t.id IS NULL) OR (h.state <> 'settled' AND t.id IS NOT NULL)
    ORDER BY h.request_id LIMIT ${rowsMax}`
  return rows.map(({ id, state, charge }) => ({
    check: 'a hold is settled if and only if it was charged',
    id,
    detail: `the hold is ${state}, ${charge ? `the charge is ${charge}` : 'there is no charge'}`,
  }))
}

/** Only replicas write holds, and by the clock of their database. */
async function forgottenHolds({ sql }: VerifyContext): Promise<Finding[]> {
  const [any] = await sql`SELECT 1 FROM holds WHERE state = 'open' LIMIT 1`
  if (any === undefined) return []
  const now = await snapshotNow(sql)
  const rows = await sql<{ id: string; late: bigint }>`SELECT request_id AS id, ${now} - expires_at AS late FROM holds
    WHERE state = 'open' AND expires_at < ${now - reapDelayMs} ORDER BY request_id LIMIT ${rowsMax}`
  return rows.map(({ id, late }) => ({ check: 'no open hold past its lifetime', id, detail: `${late} ms late` }))
}

async function unknownPrices({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; version: string }>`SELECT t.id, t.price_version AS version FROM transfers t
    LEFT JOIN prices p ON p.version = t.price_version
    WHERE t.price_version IS NOT NULL AND p.version IS NULL ORDER BY t.id LIMIT ${rowsMax}`
  return rows.map(({ id, version }) => ({ check: 'every price version exists', id, detail: version }))
}

async function timesGoBack({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; back: bigint }>`SELECT id, before - created_at AS back FROM (
      SELECT id, created_at, LAG(created_at) OVER (ORDER BY id) AS before FROM transfers) AS ordered
    WHERE before - created_at > ${clockSkewMs} ORDER BY id LIMIT ${rowsMax}`
  return rows.map(({ id, back }) => ({ check: 'ids and times ascend', id, detail: `${back} ms before the one before` }))
}

export const checks: readonly Check[] = [
  balancesDiffer,
  heldDiffers,
  overdrawn,
  wrongLegs,
  walletsWithoutBalance,
  settledTwice,
  holdsAgainstCharges,
  forgottenHolds,
  unknownPrices,
  timesGoBack,
]
