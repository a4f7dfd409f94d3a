// Handlers of the audit log: listing it, filtered and with the addresses of people, and as a file.

import { fileTypeOf, listAnswer } from '../../api/fields.ts'
import { listedAuditSchema } from '../../api/system.ts'
import { type AuditFilters, type AuditRow, listAudit } from '../../tenancy/audit.ts'
import { emailsOfActors, findPerson } from '../../tenancy/people.ts'
import { csvLine } from '../../wire/csv.ts'
import { answerAs, everyPage, given, pageOf } from './answers.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Call, Handlers } from './route.ts'

type AuditItem = ReturnType<typeof itemFrom>

const itemFrom = answerAs(listedAuditSchema)

export function auditHandlers({ database }: RouteDependencies) {
  const filtersOf = async (query: Partial<Call<'exportAudit'>['query']>): Promise<AuditFilters> => {
    const { actor, action, object, from, to } = query
    // The log names people by id.
    const person = actor?.includes('@') ? await findPerson(database.sql, { email: actor.toLowerCase() }) : undefined
    return given({ actor: person?.id ?? actor, action, object, from, to })
  }
  const itemsOf = async (rows: readonly AuditRow[]): Promise<readonly AuditItem[]> => {
    const emails = await emailsOfActors(
      database.sql,
      rows.map(({ actor }) => actor),
    )
    return rows.map((row) => itemFrom({ ...row, actorEmail: emails.get(row.actor) }))
  }
  return {
    async listAudit({ query }) {
      const { items, nextCursor } = await listAudit(database.sql, { ...(await filtersOf(query)), ...pageOf(query) })
      return listAnswer(await itemsOf(items), nextCursor)
    },
    exportAudit: {
      async download({ query }) {
        const { format, ...filters } = query
        const wanted = await filtersOf(filters)
        const pages = everyPage((page) => listAudit(database.sql, { ...wanted, ...page }))
        const pieces = format === 'csv' ? csvPieces(pages, itemsOf) : jsonPieces(pages, itemsOf)
        return { type: fileTypeOf[format], name: `audit.${format}`, pieces }
      },
    },
  } satisfies Partial<Handlers>
}

type Pages = AsyncIterable<readonly AuditRow[]>
type ItemsOf = (rows: readonly AuditRow[]) => Promise<readonly AuditItem[]>

const columns = [
  ...(['sequence', 'at', 'actor', 'actor_email', 'action', 'object'] as const),
  ...(['details', 'request_id', 'hash'] as const),
]

async function* csvPieces(pages: Pages, itemsOf: ItemsOf): AsyncGenerator<string> {
  yield `${columns.join(',')}\r\n`
  for await (const page of pages) {
    const items = await itemsOf(page)
    yield items.map((item) => `${csvLine(columns.map((name) => cellOf(item, name)))}\r\n`).join('')
  }
}

function cellOf(item: AuditItem, name: (typeof columns)[number]) {
  return name === 'details' ? JSON.stringify(item.details) : item[name]
}

async function* jsonPieces(pages: Pages, itemsOf: ItemsOf): AsyncGenerator<string> {
  for await (const page of pages) {
    const items = await itemsOf(page)
    yield items.map((item) => `${JSON.stringify(item)}\n`).join('')
  }
}
