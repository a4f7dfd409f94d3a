// `tollgate audit`: who changed what, newest first, and whether somebody changed that afterwards.

import { type AuditHead, type AuditVerification, verifyAudit } from '../../tenancy/verify-audit.ts'
import { type CommandContext, type CommandDefinition, printJson } from '../command.ts'
import { objectOf, shownAt, textAt } from '../json-members.ts'
import { goThrough } from '../read-only-database.ts'
import { listLimitOption, readListLimit } from '../read-values.ts'
import { exitCodes, Refusal } from '../refusal.ts'
import { shownCount, shownTime } from '../shown-values.ts'
import { renderTable } from '../table.ts'

export const auditCommands: readonly CommandDefinition[] = [
  {
    words: ['audit', 'list'],
    isDefault: true,
    summary: 'lists who changed what, newest first',
    options: { limit: listLimitOption },
    examples: ['tollgate audit', 'tollgate audit list --limit 200 --json'],
    async run(context, input) {
      const limit = readListLimit(input)
      if (limit instanceof Refusal) return limit
      const list = await context.api.list('/api/audit', {}, limit)
      if (list instanceof Refusal) return list
      if (context.json) return printJson(context, list)
      const columns = ['TIME (UTC)', 'WHO', 'DID', 'TO', 'DETAILS'].map((title) => ({ title }))
      const rows = list.data.map((entry) => [
        shownTime(textAt(entry, 'at')),
        shownAt(entry, 'actor'),
        shownAt(entry, 'action'),
        shownAt(entry, 'object'),
        shownDetails(entry.details),
      ])
      context.terminal.print(renderTable(columns, rows, context.terminal))
      return undefined
    },
  },
  {
    words: ['audit', 'verify'],
    isOffline: true,
    summary: 'follows the chain of the audit log, and names entries that were changed, added or removed',
    details:
      'Reads the database of TOLLGATE_DATA or DATABASE_URL, in one snapshot, also while the gateway serves. It changes nothing. It prints where the chain ends; noted elsewhere and given with --noted later, that also shows whether the whole log was written anew.',
    options: { noted: { value: 'NUMBER:HASH', help: 'the end of the chain as an earlier run printed it' } },
    examples: ['tollgate audit verify', 'tollgate audit verify --noted 54:9f86d081…'],
    async run(context, input) {
      const noted = readNoted(input.text('noted'))
      if (noted instanceof Refusal) return noted
      const names = { whole: 'the audit log', parts: 'entries' }
      const verification = await goThrough(context, names, (database, onProgress) =>
        verifyAudit(database, { noted, onProgress }),
      )
      if (verification instanceof Refusal) return verification
      const isWhole = verification.findings.length === 0
      if (context.json) printJson(context, { ok: isWhole, ...verification })
      else context.terminal.print(isWhole ? wholeText(verification) : brokenText(context, verification))
      if (isWhole) return undefined
      return new Refusal(exitCodes.failed, 'the audit log was tampered with.', 'tollgate audit verify --json')
    },
  },
]

function readNoted(text: string | undefined): AuditHead | Refusal | undefined {
  if (text === undefined) return undefined
  const [, sequence, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (sequence === undefined || hash === undefined) {
    return new Refusal(exitCodes.usage, '--noted takes the end of the chain as `tollgate audit verify` prints it.')
  }
  return { sequence: Number(sequence), hash }
}

function wholeText({ rows, head }: AuditVerification): string {
  if (rows === 0) return 'The audit log is empty.\n'
  return `The audit log is whole: ${shownCount(rows)} ${rows === 1 ? 'entry' : 'entries'}. It ends with ${head.sequence}:${head.hash}\n`
}

function brokenText({ terminal }: CommandContext, { rows, findings }: AuditVerification): string {
  const columns = ['ENTRY', 'WHAT IS WRONG'].map((title) => ({ title }))
  const found = findings.map(({ sequence, detail }) => [String(sequence), detail])
  return `Of ${shownCount(rows)} entries, the first that do not fit:\n${renderTable(columns, found, terminal)}`
}

/** `name ci, last4 c41f` */
function shownDetails(details: unknown): string {
  return Object.entries(objectOf(details))
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}
