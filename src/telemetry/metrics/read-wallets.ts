// What is in the wallets, for a gauge: one by one as far as a page of metrics can bear, the lowest first, since those are
// the ones somebody must be told of; the rest together.

import type { Database } from '../../store/database.ts'
import { other } from './series.ts'
import type { WalletReading } from './state-metrics.ts'

const walletsMax = 500

interface Row {
  readonly workspace_id: string
  readonly posted: bigint
}

export async function readWallets({ sql }: Database, max = walletsMax): Promise<readonly WalletReading[]> {
  const rows = await sql<Row>`SELECT a.workspace_id, CAST(SUM(b.posted) AS BIGINT) AS posted
    FROM balances b JOIN accounts a ON a.id = b.account_id
    WHERE a.workspace_id IS NOT NULL
    GROUP BY a.workspace_id ORDER BY 2, 1 LIMIT ${BigInt(max)}`
  const wallets = rows.map(({ workspace_id: workspace, posted }) => ({ workspace, posted }))
  if (rows.length < max) return wallets
  const [all] = await sql<{ posted: bigint | null }>`SELECT CAST(SUM(b.posted) AS BIGINT) AS posted
    FROM balances b JOIN accounts a ON a.id = b.account_id WHERE a.workspace_id IS NOT NULL`
  const listed = wallets.reduce((sum, { posted }) => sum + posted, 0n)
  const rest = (all?.posted ?? 0n) - listed
  // The two reads are not of one moment; a rest below nothing only says that money moved in between.
  return [...wallets, { workspace: other, posted: rest > 0n ? rest : 0n }]
}
