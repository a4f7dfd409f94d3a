// The balance after each transfer, reckoned back from the one there is now, and the list as a file for spreadsheets.

import { formatUsd, type Nano, parseUsd } from '../../../../kernel/money.ts'
import { csvLine } from '../../../../wire/csv.ts'
import type { Transfer } from '../manage/things.ts'

export interface LedgerRow extends Transfer {
  /** USD, after this transfer. */
  readonly balance: string
}

/** `transfers` newest first, from the newest on. */
export function withBalances(balance: string, transfers: readonly Transfer[]): readonly LedgerRow[] {
  let after = parseUsd(balance) ?? 0n
  return transfers.map((transfer) => {
    const row = { ...transfer, balance: formatUsd(after as Nano) }
    after -= changeOf(transfer)
    return row
  })
}

/** What it did to the wallet. A write-off is what the wallet could not pay: it is listed, and paid by the gateway. */
export function changeOf({ kind, direction, amount }: Transfer): bigint {
  if (kind === 'writeoff') return 0n
  const size = parseUsd(amount) ?? 0n
  return direction === 'in' ? size : -size
}

const columns = [
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
  const lines = rows.map((row) => csvLine(columns.map((column) => row[column])))
  return `${[columns.join(','), ...lines].join('\r\n')}\r\n`
}
