// Reads the wallet and its transfers so that they fit: a balance that a transfer has overtaken in between would put a wrong
// number into every row.

import { callForAll } from '../manage/call-all.ts'
import type { Transfer, Wallet } from '../manage/things.ts'
import { callApi, Refusal } from '../parts/call-api.ts'
import type { ListAnswer } from '../parts/use-resource.ts'

export interface Ledger<Transfers> {
  readonly wallet: Wallet
  readonly transfers: Transfers
}

/** Under constant traffic the last try is shown as it is. */
const triesMax = 4

/** The newest transfers. */
export function readLedger(workspaceId: string): Promise<Ledger<ListAnswer<Transfer>> | Refusal> {
  return readFitting(workspaceId, (path) => callApi<ListAnswer<Transfer>>(`${path}?limit=50`))
}

export function readWholeLedger(workspaceId: string): Promise<Ledger<readonly Transfer[]> | Refusal> {
  return readFitting(workspaceId, (path) => callForAll<Transfer>(path))
}

async function readFitting<Transfers>(
  workspaceId: string,
  read: (path: string) => Promise<Transfers | Refusal>,
): Promise<Ledger<Transfers> | Refusal> {
  const readWallet = () => callApi<Wallet>(`/api/workspaces/${workspaceId}/wallet`)
  let before = await readWallet()
  for (let tries = 1; ; tries++) {
    if (before instanceof Refusal) return before
    const transfers = await read(`/api/workspaces/${workspaceId}/transfers`)
    if (transfers instanceof Refusal) return transfers
    const after = await readWallet()
    if (after instanceof Refusal) return after
    const isFitting = before.balance === after.balance
    if (isFitting || tries === triesMax) return { wallet: after, transfers }
    before = after
  }
}
