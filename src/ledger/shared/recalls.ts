// Which wallets' slices are being asked for, and which have just been: a wallet is told that it cannot pay only after
// that, and its operations wait meanwhile.

import type { Clock } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { type WalletId, walletOf } from '../account.ts'

/** A wallet that was asked about so recently is told what it has. */
const recallFreshMs = 1000

export interface RecallsOptions {
  readonly clock: Clock
  /** Asks for the slices of a wallet; true when there are none left to ask for. Never throws. */
  recall(wallet: WalletId): Promise<boolean>
}

export interface Recalls {
  begin(wallet: WalletId): void
  isRunning(workspaceId: WorkspaceId): boolean
  /** Whether the wallet's slices have just been asked for. */
  isFresh(wallet: WalletId): boolean
  running(): Iterable<Promise<void>>
}

export function createRecalls({ clock, recall }: RecallsOptions): Recalls {
  const running = new Map<WalletId, Promise<void>>()
  const endedMs = new Map<WalletId, number>()
  return {
    begin(wallet) {
      for (const [known, atMs] of endedMs) if (clock.monotonicMs() - atMs > recallFreshMs) endedMs.delete(known)
      const ending = recall(wallet).then((isDone) => {
        running.delete(wallet)
        if (isDone) endedMs.set(wallet, clock.monotonicMs())
      })
      running.set(wallet, ending)
    },
    isRunning: (workspaceId) => running.size > 0 && running.has(walletOf(workspaceId)),
    isFresh: (wallet) => clock.monotonicMs() - (endedMs.get(wallet) ?? Number.NEGATIVE_INFINITY) <= recallFreshMs,
    running: () => running.values(),
  }
}
