// GET and DELETE /v1/responses/{id}, and its input items: responses that callers of the same workspace asked to store.

import type { Dialect } from '../dialects/dialect.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import type { Answer } from '../pipeline/answer.ts'
import { type ClientRequest, queryOf } from '../pipeline/client-request.ts'
import type { StoredResponse, StoredResponses } from '../tenancy/stored-responses.ts'
import { admitCaller, type CallerDependencies } from './request.ts'
import { jsonAnswer, refuse, wrongMethod } from './responses.ts'

export interface StoredResponsesDependencies extends CallerDependencies {
  readonly storedResponses: StoredResponses
  readonly settings: { readonly current: { readonly storeResponses: boolean } }
}

const pathForm = /^\/responses\/([\w-]{1,128})(\/input_items|\/cancel)?$/
/** Prompts must not be kept by caches. */
const noStore = { 'cache-control': 'no-store' }

/** `path` is without /v1. undefined = not one of these paths, or nothing is stored here. */
export function createStoredResponsesRoute(deps: StoredResponsesDependencies) {
  return async (
    request: ClientRequest,
    surface: Dialect,
    address: string | undefined,
    path: string,
  ): Promise<Answer | undefined> => {
    const [, id, part = ''] = (deps.settings.current.storeResponses && pathForm.exec(path)) || []
    if (id === undefined) return undefined
    const { method } = request
    const allow = { '': 'GET, DELETE', '/input_items': 'GET', '/cancel': 'POST' }[part] ?? ''
    if (!allow.split(', ').includes(method)) return refuse(surface, wrongMethod(method, allow))
    const result = await answer(deps, request, address, { id, part })
    return result instanceof Failure ? refuse(surface, result) : jsonAnswer(result, noStore)
  }
}

async function answer(
  deps: StoredResponsesDependencies,
  request: ClientRequest,
  address: string | undefined,
  { id, part }: { readonly id: string; readonly part: string },
): Promise<object | Failure> {
  const { storedResponses } = deps
  const caller = await admitCaller(deps, request, address)
  if (caller instanceof Failure) return caller
  if (request.method === 'DELETE') {
    const isRemoved = await storedResponses.remove(caller.workspaceId, id)
    return isRemoved ? { id, object: 'response', deleted: true } : unknown(id)
  }
  const stored = await storedResponses.find(caller.workspaceId, id)
  if (!stored) return unknown(id)
  if (part === '/cancel')
    return invalidRequest('Only background responses can be cancelled, and this gateway runs none.')
  return part === '' ? (JSON.parse(stored.response) as object) : listItems(stored, queryOf(request.url))
}

function unknown(id: string): Failure {
  return new Failure(
    'NOT_FOUND',
    `There is no stored response ${id}. It was not sent with \`store: true\`, has expired or was deleted.`,
  )
}

const pageMax = 100
const pageUsual = 20

/** Newest first, unless `order=asc`. */
function listItems({ id, input }: StoredResponse, query: URLSearchParams): object | Failure {
  const limit = Number(query.get('limit') ?? pageUsual)
  if (!Number.isInteger(limit) || limit < 1 || limit > pageMax) {
    return invalidRequest(`\`limit\` must be a whole number from 1 to ${pageMax}.`, 'limit')
  }
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') return invalidRequest('`order` must be asc or desc.', 'order')
  // Callers rarely give items an id, and the list is paged by it.
  const items = (JSON.parse(input) as readonly Record<string, unknown>[]).map((item, at) => {
    return { type: 'message', ...item, id: typeof item.id === 'string' ? item.id : `item_${id.slice(-24)}_${at}` }
  })
  if (order === 'desc') items.reverse()
  const after = query.get('after')
  const start = after === null ? 0 : items.findIndex((item) => item.id === after) + 1
  if (after !== null && start === 0) return invalidRequest('`after` names no item of this response.', 'after')
  const data = items.slice(start, start + limit)
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + data.length < items.length,
  }
}
