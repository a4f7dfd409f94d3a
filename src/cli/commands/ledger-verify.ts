// `tollgate ledger verify`: recomputes the books from the database itself, without the gateway, and names the first rows
// that differ. It only reads; ends with 0 if every amount is right and 1 if not. Warnings do not change that.

import { readRecomputeCharge } from '../../catalog/recompute-charge.ts'
import { systemClock } from '../../kernel/clock.ts'
import { type Verification, verify } from '../../ledger/verify.ts'
import { type CommandContext, type CommandDefinition, printJson } from '../command.ts'
import { goThrough } from '../read-only-database.ts'
import { exitCodes, Refusal } from '../refusal.ts'
import { counted } from '../shown-values.ts'
import { renderTable } from '../table.ts'

export const ledgerVerifyCommand: CommandDefinition = {
  words: ['ledger', 'verify'],
  isOffline: true,
  summary: 'recomputes every balance and every charge, and names what differs',
  details:
    'Reads the database of TOLLGATE_DATA or DATABASE_URL, in one snapshot, also while the gateway serves. It changes nothing.',
  examples: ['tollgate ledger verify', 'DATABASE_URL=postgres://… tollgate ledger verify --json'],
  async run(context) {
    const names = { whole: 'the books', parts: 'charges' }
    const verification = await goThrough(context, names, (database, onProgress) =>
      verify(database, { readPrice: readRecomputeCharge, now: systemClock.now(), onProgress }),
    )
    if (verification instanceof Refusal) return verification
    const isRight = verification.findings.length === 0
    if (context.json) printJson(context, jsonOf(verification))
    else {
      context.terminal.print(isRight ? rightText(verification) : wrongText(context, verification))
      context.terminal.complain(warningText(verification.warnings))
    }
    return isRight ? undefined : new Refusal(exitCodes.failed, 'the books are wrong.', 'tollgate ledger verify --json')
  },
}

/** Counts are small enough for a JSON number for some thousand years. */
function jsonOf({ findings, warnings, wallets, transfers }: Verification) {
  return { ok: findings.length === 0, wallets: Number(wallets), transfers: Number(transfers), findings, warnings }
}

/** Empty where there is nothing to warn of. */
export function warningText(warnings: Verification['warnings']): string {
  return warnings.map(({ id, detail }) => `Warning: transfer ${id} was ${detail}. No amount depends on it.\n`).join('')
}

function rightText(verification: Verification): string {
  return `The books are right: ${countText(verification)}; every charge was recomputed.\n`
}

function wrongText({ terminal }: CommandContext, verification: Verification): string {
  const columns = ['RULE', 'ROW', 'DIFFERENCE (nano-dollars)'].map((title) => ({ title }))
  const rows = verification.findings.map(({ check, id, detail }) => [check, id, detail])
  return `Of ${countText(verification)}, the first rows that differ:\n${renderTable(columns, rows, terminal)}`
}

function countText({ wallets, transfers }: Verification): string {
  return `${counted(wallets, 'wallet')} and ${counted(transfers, 'transfer')}`
}
