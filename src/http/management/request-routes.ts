// What happened and what is on offer: the request log, the audit log, the catalog. Nothing is changed here.

import { z } from 'zod'
import type { RequestId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import { listAudit } from '../../tenancy/audit.ts'
import type { Page, PageQuery } from '../../tenancy/page.ts'
import { auditAnswer, auditSchema } from './answers.ts'
import { type CatalogItem, catalogModelSchema } from './catalog-answer.ts'
import { timeField } from './fields.ts'
import { listAnswer, listSchema, pageFields, pageOf, pageQuery } from './paging.ts'
import { type ExplainedRequest, explainedRequestSchema, type LoggedRequest, requestSchema } from './request-answer.ts'
import { type RequestFilters, requestFilterFields, requestFilters } from './request-filters.ts'
import { defineRoute, notFound, type Route } from './route.ts'

export type { CatalogItem }

export interface RequestQuery extends PageQuery, RequestFilters {
  /** When they began, epoch milliseconds; `to` is the first moment that is not meant any more. */
  readonly from?: number
  readonly to?: number
}

export interface RequestLog {
  /** Newest first. An id that names nothing has no requests. */
  list(query: RequestQuery): Promise<Page<LoggedRequest>>
  /** Explained: candidates and why, attempts, usage, price version, transfers. */
  find(id: RequestId): Promise<ExplainedRequest | undefined>
}

export interface ObservationDependencies {
  readonly database: Database
  readonly requests: RequestLog
  catalog(): readonly CatalogItem[]
  /** Whether it is for everybody, or only for the operator. */
  catalogIsPublic(): boolean
}

export function observationRoutes(deps: ObservationDependencies): readonly Route[] {
  const { database, requests } = deps
  return [
    defineRoute({
      method: 'GET',
      path: '/api/requests',
      operation: 'listRequests',
      summary: 'Lists requests, newest first.',
      query: z.strictObject({
        ...pageFields,
        ...requestFilterFields,
        from: timeField.optional().describe('Only requests that began then or later. ISO 8601, with Z or an offset.'),
        to: timeField.optional().describe('Only requests that began before. ISO 8601, with Z or an offset.'),
      }),
      answer: listSchema(requestSchema),
      status: 200,
      async run({ query }) {
        const { from, to } = query
        const { items, nextCursor } = await requests.list({
          ...pageOf(query),
          ...requestFilters(query),
          ...(from !== undefined && { from }),
          ...(to !== undefined && { to }),
        })
        return listAnswer(items, nextCursor)
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/requests/{id}',
      kind: 'request',
      operation: 'getRequest',
      summary: 'Explains one request: candidates and why, attempts, usage, price version, the transfer.',
      answer: explainedRequestSchema,
      status: 200,
      run: async ({ id }) => (await requests.find(id)) ?? notFound('request', id),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/audit',
      operation: 'listAudit',
      summary: 'Lists who changed what, newest first.',
      query: pageQuery,
      answer: listSchema(auditSchema),
      status: 200,
      async run({ query }) {
        const { items, nextCursor } = await listAudit(database.sql, pageOf(query))
        return listAnswer(items.map(auditAnswer), nextCursor)
      },
    }),
    catalogRoute(deps),
  ]
}

/** Without a limit all of it: a catalog that ends after fifty models would be taken for the whole one. */
function catalogRoute(deps: Pick<ObservationDependencies, 'catalog' | 'catalogIsPublic'>): Route {
  return defineRoute({
    method: 'GET',
    path: '/api/catalog',
    operation: 'getCatalog',
    summary:
      'Public unless `server.catalog` is signed-in: models with price, tags, context, routes and their health, by id.',
    isPublic: () => deps.catalogIsPublic(),
    query: z.strictObject({
      limit: pageFields.limit.unwrap().optional().describe('How many at most, 1 to 200. Absent = all.'),
      cursor: pageFields.cursor,
    }),
    answer: listSchema(catalogModelSchema),
    status: 200,
    async run({ query: { limit, cursor = '' } }) {
      const models = deps
        .catalog()
        .filter(({ id }) => id > cursor)
        .sort((a, b) => (a.id < b.id ? -1 : 1))
      const page = models.slice(0, limit)
      return listAnswer(page, page.length < models.length ? page.at(-1)?.id : undefined)
    },
  })
}
