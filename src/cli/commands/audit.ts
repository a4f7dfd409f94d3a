// `tollgate audit`: who changed what, newest first.

import { type CommandDefinition, printJson } from '../command.ts'
import { objectOf, shownAt, textAt } from '../json-members.ts'
import { listLimitOption, readListLimit } from '../read-values.ts'
import { Refusal } from '../refusal.ts'
import { shownTime } from '../shown-values.ts'
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
]

/** `name ci, last4 c41f` */
function shownDetails(details: unknown): string {
  return Object.entries(objectOf(details))
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}
