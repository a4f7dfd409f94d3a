// GET /v1/models and /v1/models/{id}: the models a key can call now, in a shape that OpenAI's and Anthropic's clients
// read. Callers that send anthropic-version also get Anthropic's fields and paging; Google's clients get Google's shape.

import type { Dialect } from '../dialects/dialect.ts'
import { isoTime } from '../kernel/clock.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import type { Answer } from '../pipeline/answer.ts'
import { type ClientRequest, queryOf } from '../pipeline/client-request.ts'
import { listedId, type Offer, plainId, type WorkspaceOffer } from '../routing/offer.ts'
import type { OfferedModel } from '../routing/plan.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { CredentialCache } from '../tenancy/credentials.ts'
import { createdAt, googleItem, liteLlmItem, openRouterFields } from './model-shapes.ts'
import { admitCaller, type CallerDependencies, decodeModelId } from './request.ts'
import { jsonAnswer, refuse } from './responses.ts'

export interface ModelsDependencies extends CallerDependencies {
  readonly credentials: Pick<CredentialCache, 'find'>
  readonly catalog: { readonly current: { readonly offer: Offer } }
}

/** Also the default, so that one request shows every model. */
const pageLimitMax = 1000

/** `encodedId` is the rest of the path, empty for the list: ids contain slashes, raw or as %2F. */
export function createModelsRoute(deps: ModelsDependencies) {
  return async (request: ClientRequest, surface: Dialect, address: string | undefined, encodedId: string) => {
    const admitted = await admit(deps, request, address)
    if (admitted instanceof Failure) return refuse(surface, admitted)
    const isGoogle = surface.id === 'gemini'
    const answer = isGoogle
      ? googleAnswer(admitted, encodedId)
      : encodedId === ''
        ? listOf(admitted, request)
        : itemOf(admitted, request, encodedId)
    return answer instanceof Failure ? refuse(surface, answer) : jsonAnswer(answer)
  }
}

/** GET /v1/model/info: the same models in LiteLLM's shape. */
export function createModelInfoRoute(deps: ModelsDependencies) {
  return async (request: ClientRequest, surface: Dialect, address: string | undefined): Promise<Answer> => {
    const admitted = await admit(deps, request, address)
    if (admitted instanceof Failure) return refuse(surface, admitted)
    return jsonAnswer({ data: admitted.offer.list(admitted.caller).map(liteLlmItem) })
  }
}

interface Admitted {
  readonly caller: Caller
  readonly offer: WorkspaceOffer
}

/** All models in one page; a requested page size is ignored. */
function googleAnswer({ caller, offer }: Admitted, encodedId: string): object | Failure {
  if (encodedId === '') return { models: offer.list(caller).map(googleItem) }
  const model = offer.find(caller, decodeModelId(encodedId))
  return model instanceof Failure ? model : googleItem(model)
}

function listOf({ caller, offer }: Admitted, request: ClientRequest): object | Failure {
  const models = offer.list(caller)
  if (isPaged(request)) return pageOf(models, request, offer)
  return { object: 'list', data: models.map((model) => modelItem(model, offer)) }
}

function itemOf({ caller, offer }: Admitted, request: ClientRequest, encodedId: string): object | Failure {
  const model = offer.find(caller, decodeModelId(encodedId))
  if (model instanceof Failure) return model
  return isPaged(request) ? pagedItem(model, offer) : modelItem(model, offer)
}

/** Also reads the models of the caller's workspace. */
async function admit(
  deps: ModelsDependencies,
  request: ClientRequest,
  address: string | undefined,
): Promise<Admitted | Failure> {
  const { credentials, catalog } = deps
  const caller = await admitCaller(deps, request, address)
  if (caller instanceof Failure) return caller
  const own = await credentials.find(caller.workspaceId)
  return { caller, offer: catalog.current.offer.with(own, caller.priceList) }
}

function isPaged(request: ClientRequest): boolean {
  return request.headers.has('anthropic-version')
}

/** `own_key` is only there if a credential of the workspace is used. */
function modelItem(model: OfferedModel, { isOwn }: WorkspaceOffer) {
  return {
    id: model.id,
    object: 'model',
    created: Math.floor(createdAt(model) / 1000),
    owned_by: model.ownedBy,
    ...openRouterFields(model),
    ...(isOwn(model) && { own_key: true }),
  }
}

function pagedItem(model: OfferedModel, offer: WorkspaceOffer) {
  return {
    ...modelItem(model, offer),
    type: 'model',
    display_name: model.name,
    created_at: isoTime(createdAt(model)),
    max_input_tokens: model.contextTokens ?? null,
    max_tokens: model.maxOutputTokens ?? null,
  }
}

/** The page starts next to `after_id` or ends next to `before_id`. */
function pageOf(models: readonly OfferedModel[], request: ClientRequest, offer: WorkspaceOffer): object | Failure {
  const query = queryOf(request.url)
  const limitText = query.get('limit')
  const limit = limitText === null ? pageLimitMax : Number(limitText)
  if (!Number.isInteger(limit) || limit < 1 || limit > pageLimitMax) {
    return invalidRequest(`\`limit\` must be a whole number from 1 to ${pageLimitMax}.`, 'limit')
  }
  const neighbour = (name: string): string | null => {
    const id = query.get(name)
    return id === null || models.some((model) => model.id === id) ? id : plainId(id)
  }
  const [after, before] = [neighbour('after_id'), neighbour('before_id')]
  const range = models.filter((model) => (after === null || model.id > after) && (before === null || model.id < before))
  const page = before !== null && after === null ? range.slice(-limit) : range.slice(0, limit)
  const data = page.map((model) => ({ ...pagedItem(model, offer), id: listedId(model.id, request.headers) }))
  return {
    object: 'list',
    data,
    has_more: data.length < range.length,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}
