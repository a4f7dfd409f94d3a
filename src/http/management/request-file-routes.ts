// The list of requests as a file: for a spreadsheet, or line by line for programs. The same filters as the list, read page
// by page, so that a year of requests never stands in memory.

import { z } from 'zod'
import { type CsvValue, csvLine } from '../../wire/csv.ts'
import { must, timeField } from './fields.ts'
import type { LoggedRequest } from './request-answer.ts'
import { requestFilterFields, requestFilters } from './request-filters.ts'
import type { RequestLog, RequestQuery } from './request-routes.ts'
import { defineRoute, type Route } from './route.ts'

const formats = ['csv', 'jsonl'] as const
const types = { csv: 'text/csv; charset=utf-8', jsonl: 'application/x-ndjson' } as const
const pageSize = 200

export function requestFileRoutes({ requests }: { readonly requests: RequestLog }): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/requests/export',
      operation: 'exportRequests',
      summary: 'Sends the list of requests as a file, newest first: CSV, or one JSON object per line.',
      query: z.strictObject({
        ...requestFilterFields,
        from: timeField.optional().describe('Only requests that began then or later. ISO 8601, with Z or an offset.'),
        to: timeField.optional().describe('Only requests that began before. ISO 8601, with Z or an offset.'),
        format: z.enum(formats, must('csv or jsonl')).default('csv').describe('`csv` or `jsonl`.'),
      }),
      status: 200,
      fileTypes: formats.map((format) => types[format]),
      download({ query }) {
        const { from, to, format } = query
        const span = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
        const filters = { ...requestFilters(query), ...span }
        const pages = readPages(requests, filters)
        return {
          type: types[format],
          name: `requests.${format}`,
          pieces: format === 'csv' ? csvPieces(pages) : jsonPieces(pages),
        }
      },
    }),
  ]
}

/** What comes in meanwhile is newer than the first page, and not in it. */
async function* readPages(
  requests: RequestLog,
  filters: Omit<RequestQuery, 'limit' | 'cursor'>,
): AsyncGenerator<readonly LoggedRequest[]> {
  let cursor: string | undefined
  do {
    const page = await requests.list({ ...filters, limit: pageSize, ...(cursor !== undefined && { cursor }) })
    yield page.items
    cursor = page.nextCursor
  } while (cursor !== undefined)
}

async function* jsonPieces(pages: AsyncIterable<readonly LoggedRequest[]>): AsyncGenerator<string> {
  for await (const page of pages) yield page.map((request) => `${JSON.stringify(request)}\n`).join('')
}

async function* csvPieces(pages: AsyncIterable<readonly LoggedRequest[]>): AsyncGenerator<string> {
  yield `${Object.keys(columns).join(',')}\r\n`
  const values = Object.values(columns)
  for await (const page of pages) {
    yield page.map((request) => `${csvLine(values.map((value) => value(request)))}\r\n`).join('')
  }
}

/** In this order; null is an empty cell. */
const columns: Readonly<Record<string, (request: LoggedRequest) => CsvValue>> = {
  started_at: (request) => request.started_at,
  id: (request) => request.id,
  workspace_id: (request) => request.workspace_id,
  project_id: (request) => request.project_id,
  key_id: (request) => request.key_id,
  path: (request) => request.path,
  stream: (request) => request.stream,
  model: (request) => request.model,
  status: (request) => request.status,
  code: (request) => request.code,
  provider: (request) => request.provider,
  upstream_model: (request) => request.upstream_model,
  attempts: (request) => request.attempts.length,
  input_tokens: ({ usage }) => usage?.input_tokens ?? null,
  cache_read_tokens: ({ usage }) => usage?.cache_read_tokens ?? null,
  cache_write_tokens: ({ usage }) => usage?.cache_write_tokens ?? null,
  cache_write_1h_tokens: ({ usage }) => usage?.cache_write_1h_tokens ?? null,
  output_tokens: ({ usage }) => usage?.output_tokens ?? null,
  reasoning_tokens: ({ usage }) => usage?.reasoning_tokens ?? null,
  audio_input_tokens: ({ usage }) => usage?.audio_input_tokens ?? null,
  audio_cache_read_tokens: ({ usage }) => usage?.audio_cache_read_tokens ?? null,
  audio_output_tokens: ({ usage }) => usage?.audio_output_tokens ?? null,
  web_searches: ({ usage }) => usage?.web_searches ?? null,
  us_only: ({ usage }) => usage?.us_only ?? null,
  usage_source: ({ usage }) => usage?.source ?? null,
  price_version: (request) => request.price_version,
  cost: (request) => request.cost,
  first_event_ms: (request) => request.first_event_ms,
  total_ms: (request) => request.total_ms,
  client: (request) => request.client,
  reason: (request) => request.reason,
}
