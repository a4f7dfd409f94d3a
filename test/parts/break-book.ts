// Loaded into a gateway's process before it: the wallets in memory fail to follow the commit of one charge, as a defect of
// ours would make them.

import { WalletBook } from '../../src/ledger/embedded/embedded-ledger.ts'

/** In nano-dollars; no other call of the test costs as much. */
const breakingCharge = 15_000n

const { commit } = WalletBook.prototype
WalletBook.prototype.commit = function (claim) {
  if (claim.charge === breakingCharge) throw new Error('assertion failed: broken for a test')
  commit.call(this, claim)
}
