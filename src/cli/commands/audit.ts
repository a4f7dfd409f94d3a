// `tollgate audit` and `tollgate ledger verify`: who changed what, and checks of the audit log and the books. The checks
// read the database directly, without the gateway, and change nothing.

import type { Verification } from '../../ledger/verify.ts'
import { type AuditHead, type AuditVerification, verifyAudit } from '../../tenancy/audit.ts'
import { type CommandDefinition, printResult } from '../command.ts'
import { downloadCommand, listCommand, listLimitOption } from '../operation-command.ts'
import { goThrough, verifyBooks } from '../read-only-database.ts'
import { exitCodes, Refusal } from '../refusal.ts'
import type { Terminal } from '../terminal.ts'
import { type Columns, counted, readTime, renderTable, shownCount, shownTime } from '../values.ts'

const filterOptions = {
  actor: { value: 'WHO', help: 'only changes by this person (address or id), token or session', field: 'actor' },
  action: { value: 'NAME', help: 'only this action, such as key.revoke, or key for all on keys', field: 'action' },
  object: { value: 'ID', help: 'only changes of this object', field: 'object' },
  from: { value: 'TIME', help: 'only changes at or after this time', field: 'from', read: readTime },
  to: { value: 'TIME', help: 'only changes before this time', field: 'to', read: readTime },
} as const

const listAudit = listCommand({
  words: ['audit', 'list'],
  isDefault: true,
  summary: 'lists who changed what, newest first',
  examples: ['tollgate audit', 'tollgate audit list --action key.revoke --from 2026-11-01 --json'],
  operation: 'listAudit',
  options: { ...filterOptions, limit: listLimitOption },
  columns: [
    ['TIME (UTC)', ({ at }) => shownTime(at)],
    ['WHO', ({ actor, actor_email: email }) => email ?? actor],
    ['DID', ({ action }) => action],
    ['TO', ({ object }) => object],
    ['DETAILS', ({ details }) => shownDetails(details)],
  ],
})

const exportAudit = downloadCommand({
  words: ['audit', 'export'],
  summary: 'prints the audit log as CSV, newest first',
  details: 'With --json one object per line.',
  examples: ['tollgate audit export > audit.csv', 'tollgate audit export --actor ada@example.com --json'],
  operation: 'exportAudit',
  options: filterOptions,
  body: ({ json }) => ({ format: json ? ('jsonl' as const) : ('csv' as const) }),
  whenEmpty: 'No entry matches.\n',
})

/** `name ci, last4 c41f` */
function shownDetails(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}

const verifyAuditLog: CommandDefinition = {
  words: ['audit', 'verify'],
  isOffline: true,
  summary: 'verifies the hash chain of the audit log and names entries that were changed, added or removed',
  details: `Reads the database of TOLLGATE_DATA or DATABASE_URL in one snapshot, even while the gateway is running, and changes
nothing. It prints the end of the chain. If you keep that elsewhere and pass it later with --noted, it also shows whether
the whole log was rewritten.`,
  options: { noted: { value: 'NUMBER:HASH', help: 'the end of the chain as an earlier run printed it' } },
  examples: ['tollgate audit verify', 'tollgate audit verify --noted 54:9f86d081…'],
  async run(context) {
    const noted = readNoted(context.text('noted'))
    const names = { whole: 'the audit log', parts: 'entries' }
    const verification = await goThrough(context, names, (database, onProgress) =>
      verifyAudit(database, { noted, onProgress }),
    )
    const isIntact = verification.findings.length === 0
    printResult(context, { ok: isIntact, ...verification }, () =>
      isIntact ? intactText(verification) : tamperedText(context.terminal, verification),
    )
    if (!isIntact)
      throw new Refusal(exitCodes.failed, 'the audit log was tampered with.', 'tollgate audit verify --json')
  },
}

function readNoted(text: string | undefined): AuditHead | undefined {
  if (text === undefined) return undefined
  const [, sequence, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (sequence === undefined || hash === undefined) {
    throw new Refusal(exitCodes.usage, '--noted takes the end of the chain as `tollgate audit verify` prints it.')
  }
  return { sequence: Number(sequence), hash }
}

function intactText({ rows, head }: AuditVerification): string {
  if (rows === 0) return 'The audit log is empty.\n'
  return `The audit log is whole: ${shownCount(rows)} ${rows === 1 ? 'entry' : 'entries'}. It ends with ${head.sequence}:${head.hash}\n`
}

function tamperedText(terminal: Terminal, { rows, findings }: AuditVerification): string {
  const columns: Columns<(typeof findings)[number]> = [
    ['ENTRY', ({ sequence }) => sequence],
    ['WHAT IS WRONG', ({ detail }) => detail],
  ]
  return `Of ${shownCount(rows)} entries, the first that do not fit:\n${renderTable(columns, findings, terminal)}`
}

/** Exits with 0 if every amount is right, otherwise with 1. Warnings do not change the exit code. */
const verifyLedger: CommandDefinition = {
  words: ['ledger', 'verify'],
  isOffline: true,
  summary: 'recomputes every balance and every charge and names what differs',
  details: `Reads the database of TOLLGATE_DATA or DATABASE_URL in one snapshot, even while the gateway is running, and changes
nothing.`,
  examples: ['tollgate ledger verify', 'DATABASE_URL=postgres://… tollgate ledger verify --json'],
  async run(context) {
    const names = { whole: 'the books', parts: 'charges' }
    const verification = await goThrough(context, names, verifyBooks)
    const isRight = verification.findings.length === 0
    printResult(context, jsonOf(verification), () =>
      isRight
        ? `The books are right: ${countText(verification)}; every charge was recomputed.\n`
        : wrongText(context.terminal, verification),
    )
    if (!context.json) context.terminal.complain(warningText(verification.warnings))
    if (!isRight) throw new Refusal(exitCodes.failed, 'the books are wrong.', 'tollgate ledger verify --json')
  },
}

/** The counts fit into a JSON number. */
function jsonOf({ findings, warnings, wallets, transfers }: Verification) {
  return { ok: findings.length === 0, wallets: Number(wallets), transfers: Number(transfers), findings, warnings }
}

/** Empty if there are no warnings. */
export function warningText(warnings: Verification['warnings']): string {
  return warnings.map(({ id, detail }) => `Warning: transfer ${id} was ${detail}. No amount depends on it.\n`).join('')
}

function wrongText(terminal: Terminal, verification: Verification): string {
  const { findings } = verification
  const columns: Columns<(typeof findings)[number]> = [
    ['RULE', ({ check }) => check],
    ['ROW', ({ id }) => id],
    ['DIFFERENCE (nano-dollars)', ({ detail }) => detail],
  ]
  return `Of ${countText(verification)}, the first rows that differ:\n${renderTable(columns, findings, terminal)}`
}

function countText({ wallets, transfers }: Verification): string {
  return `${counted(wallets, 'wallet')} and ${counted(transfers, 'transfer')}`
}

export const verifyCommands: readonly CommandDefinition[] = [listAudit, exportAudit, verifyAuditLog, verifyLedger]
