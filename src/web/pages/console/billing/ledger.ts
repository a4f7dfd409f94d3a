// The balance after each transfer, and transfers as CSV.

import { formatUsd, type Nano, parseUsd } from '../../../../kernel/money.ts'
import { csvLine } from '../../../../wire/csv.ts'
import type { Transfer } from '../api-types.ts'

export interface LedgerRow extends Transfer {
  /** USD, after this transfer. */
  readonly balance: string
}

/** `transfers` newest first, starting with the latest; `balance` is the one after it. */
export function withBalances(balance: string, transfers: readonly Transfer[]): readonly LedgerRow[] {
  let after = parseUsd(balance) ?? 0n
  return transfers.map((transfer) => {
    const row = { ...transfer, balance: formatUsd(after as Nano) }
    after -= changeOf(transfer)
    return row
  })
}

/** The transfer's effect on the wallet. The operator pays a write-off, so it has none. */
function changeOf({ kind, direction, amount }: Transfer): bigint {
  if (kind === 'writeoff') return 0n
  const size = parseUsd(amount) ?? 0n
  return direction === 'in' ? size : -size
}

const csvColumns = [
  'created_at',
  'id',
  'kind',
  'direction',
  'amount',
  'balance',
  'request_id',
  'reference',
  'price_version',
  'estimated',
] as const satisfies readonly (keyof LedgerRow)[]

export function csvText(rows: readonly LedgerRow[]): string {
  const lines = rows.map((row) => csvLine(csvColumns.map((column) => row[column])))
  return `${[csvColumns.join(','), ...lines].join('\r\n')}\r\n`
}
