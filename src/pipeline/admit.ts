// The first steps of every call that names a model: authenticate, read the body, read the envelope, check limits, plan the
// routes. Each may end the request; nothing has been sent to a provider yet.

import type { RoutingPolicy } from '../catalog/model.ts'
import type { Envelope, Warning } from '../dialects/canonical/translation.ts'
import { assert, Failure, invalidRequest } from '../kernel/failure.ts'
import { type Limiter, limitFailure, type Refused } from '../limits/limiter.ts'
import type { CallBudget } from '../routing/failover.ts'
import type { Health } from '../routing/health.ts'
import { candidateRecords, type Offer, type ResolvedModel, shorten, type WorkspaceOffer } from '../routing/offer.ts'
import { type Candidate, inOrder, joinPlans, policyOf, wantedCandidates } from '../routing/plan.ts'
import type { StickyRoutes } from '../routing/sticky.ts'
import { allowsSource, sourceFailure } from '../tenancy/allowlist.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { CredentialCache } from '../tenancy/credentials.ts'
import type { EndUserMode } from '../tenancy/end-users.ts'
import type { StoredResponses } from '../tenancy/stored-responses.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import { BodyFault, type BodyRoom, readBody } from '../wire/read-body.ts'
import { isStrict } from './answer.ts'
import type { KeptReasoning } from './kept-reasoning.ts'
import { strictRefusal } from './lanes.ts'
import type { GatewayRequest } from './request.ts'
import { type DeriveCacheKey, readAttribution, readSession, type SessionSettings, type TagContent } from './session.ts'
import { prepareStoring, withPrevious } from './stored-response.ts'

export interface AdmitDependencies {
  authenticate(headers: RequestHeaders): Caller | Failure | Promise<Caller | Failure>
  readonly credentials: Pick<CredentialCache, 'find'>
  readonly limiter: Limiter
  readonly health: Pick<Health, 'plan'>
  readonly retryBudget: Pick<CallBudget, 'level'>
  readonly sticky: Pick<StickyRoutes, 'find'>
  readonly catalog: { readonly current: { readonly offer: Offer } }
  readonly settings: { readonly current: AdmitSettings }
  readonly storedResponses: StoredResponses
  /** Memory for all bodies that are being read. */
  readonly bodyRoom: BodyRoom
  readonly deriveCacheKey: DeriveCacheKey
  readonly tagContent: TagContent
  readonly keptReasoning: KeptReasoning
  /** A number in [0, 1). */
  random(): number
}

/** The configuration as far as it is read here; it can change between two requests. */
interface AdmitSettings {
  /** Whether callers may choose among the providers of a model. */
  readonly providerChoice: boolean
  readonly bodyBytesMax: number
  readonly storeResponses: boolean
  readonly endUsers: EndUserMode
  readonly sessions: SessionSettings
}

/** Reads the envelope of the kind of call. */
type ReadEnvelope = (body: Uint8Array<ArrayBuffer>, headers: RequestHeaders, url: string) => Envelope | Failure

/** Tokens that count against limits until the usage is known; 0 for a call that generates nothing. */
type EstimateTokens = (request: GatewayRequest) => number

/** Spread, so that refused clients do not all return at once. */
const retryMinMs = 1_000
const retrySpreadMs = 2_000

/** Characters of the user agent that are recorded. */
const clientMax = 100

/** Fills in the request's caller, envelope, model and plan; returns why it is refused, or undefined. */
export async function admit(
  deps: AdmitDependencies,
  request: GatewayRequest,
  readEnvelope: ReadEnvelope,
  estimateTokens: EstimateTokens,
): Promise<Failure | undefined> {
  const { record, surface, http } = request
  const { headers } = http
  const settings = deps.settings.current
  // A cached key is authenticated without a promise.
  const authenticating = deps.authenticate(headers)
  const caller = authenticating instanceof Promise ? await authenticating : authenticating
  if (caller instanceof Failure) return caller
  request.caller = record.caller = caller
  record.client = headers.get('user-agent')?.slice(0, clientMax)
  if (caller.sources) {
    const address = request.connection.address()
    if (!allowsSource(caller, address)) return sourceFailure(caller, address)
  }

  // Before the body: a caller at its concurrency limit must not make us buffer what it sends. However the request ends
  // from here on, ending its `admission` counts it.
  const arrival = caller.limits.length === 0 ? undefined : deps.limiter.arrive(caller.limits)
  if (arrival?.kind === 'refused') return overLimit(request, arrival)
  request.admission = arrival

  const refused = refusedMediaType(headers) ?? refusedEncoding(headers)
  if (refused) return refused
  const body = await readBody(http, { bytesMax: settings.bodyBytesMax, room: deps.bodyRoom })
  if (body instanceof BodyFault) return bodyFailure(body, deps)
  const whole = settings.storeResponses ? await withPrevious(deps.storedResponses, request, body) : body
  if (whole instanceof Failure) return whole
  if (whole.length > settings.bodyBytesMax) return bodyFailure(new BodyFault('too-large'), deps)
  const envelope = readEnvelope(whole, headers, http.url)
  if (envelope instanceof Failure) return envelope
  request.envelope = envelope
  const unstorable = envelope.wantsStore && settings.storeResponses ? prepareStoring(request) : undefined
  if (unstorable) return unstorable
  request.bodyBytes = envelope.body.length
  record.stream = envelope.stream
  request.session = readSession(headers, envelope, surface)
  request.deriveCacheKey = deps.deriveCacheKey
  request.tagContent = deps.tagContent
  request.sessionSettings = settings.sessions
  if (surface.losesReasoning && request.session && settings.sessions.keepReasoning) {
    const { workspaceId } = caller
    request.keptReasoning = { store: deps.keptReasoning, workspaceId, sessionId: request.session.id }
  }

  const misattributed = readAttribution(request, settings.endUsers)
  if (misattributed) return misattributed

  const opened = deps.credentials.find(caller.workspaceId)
  const offer = deps.catalog.current.offer.with(opened instanceof Promise ? await opened : opened, caller.priceList)
  const resolved = resolveModels(offer, caller, envelope)
  if (resolved instanceof Failure) {
    record.requestedModel = shorten(envelope.model)
    return resolved
  }
  const mismatch = wrongKind(resolved, envelope)
  if (mismatch) return mismatch
  const [{ model }] = resolved
  request.model = model
  record.model = model.id
  record.priceVersion = model.priceVersion

  const choices = chooseCandidates(deps, request, offer, resolved)
  if (choices instanceof Failure) return choices
  request.candidates = choices.length === 1 ? choices[0].candidates : choices.flatMap(({ candidates }) => candidates)

  // Most keys have no limits, and then no tokens are estimated.
  if (arrival) {
    const tokens = estimateTokens(request)
    request.admission = undefined
    const counting = arrival.admit(tokens)
    const admission = counting instanceof Promise ? await counting : counting
    if (admission.kind === 'refused') return overLimit(request, admission)
    request.limits = admission.state
    request.admission = admission
  }

  const planning = planRoutes(deps, request, choices)
  if (planning) await planning
  record.candidates = candidateRecords(request.plan)
  return undefined
}

type Resolved = readonly [ResolvedModel, ...ResolvedModel[]]

/** The model, and those that follow if it fails. Each must be one that the caller may use. */
function resolveModels(offer: WorkspaceOffer, caller: Caller, { model, fallbacks }: Envelope): Resolved | Failure {
  const first = offer.resolve(caller, model)
  if (first instanceof Failure || !fallbacks) return first instanceof Failure ? first : [first]
  const resolved: [ResolvedModel, ...ResolvedModel[]] = [first]
  for (const name of fallbacks) {
    const next = offer.resolve(caller, name)
    if (next instanceof Failure) return new Failure(next.code, next.message, { ...next.facts, param: 'models' })
    if (!resolved.some((each) => each.model === next.model)) resolved.push(next)
  }
  return resolved
}

/** A model that makes embeddings does nothing else, and others make none. */
function wrongKind(resolved: Resolved, { embeddings }: Envelope): Failure | undefined {
  let wrong: ResolvedModel | undefined
  for (const each of resolved) {
    if (each.model.tags.includes('embeddings') !== (embeddings !== undefined)) wrong ??= each
  }
  if (!wrong) return undefined
  const { id } = wrong.model
  const message = embeddings
    ? `\`${id}\` does not make embeddings. Use a model with the tag \`embeddings\`: GET /v1/models lists them under \`output_modalities\`.`
    : `\`${id}\` makes embeddings and does not answer prompts. Call it with POST /v1/embeddings.`
  return invalidRequest(message, 'model')
}

/** The candidates of one model, and in which order to try them. */
interface Choice {
  readonly candidates: readonly Candidate[]
  readonly policy: RoutingPolicy
}

/** Applies the provider preferences of the caller, as far as the operator allows them. */
function chooseCandidates(
  deps: AdmitDependencies,
  request: GatewayRequest,
  offer: WorkspaceOffer,
  resolved: Resolved,
): readonly [Choice, ...Choice[]] | Failure {
  const { caller, surface, envelope } = request
  const { providerChoice } = deps.settings.current
  const preferences = providerChoice ? envelope.providers : undefined
  const choices: Choice[] = []
  for (const { model, policy: suffix } of resolved) {
    const all = offer.candidates(model, surface, caller, envelope)
    const candidates = preferences ? wantedCandidates(all, preferences, model.id) : all
    if (candidates instanceof Failure) return candidates
    const wanted = providerChoice ? (suffix ?? (preferences && policyOf(preferences))) : undefined
    choices.push({ candidates, policy: wanted ?? model.routing })
  }
  if (envelope.providers || resolved.some(hasPolicy)) {
    request.warnings = preferenceWarnings(providerChoice, envelope)
    if (request.warnings.length > 0 && isStrict(request.http.headers)) return strictRefusal(request.warnings)
  }
  if (resolved.length > 1) {
    request.models = new Map(
      resolved.flatMap(({ model }, at) => (choices[at]?.candidates ?? []).map((candidate) => [candidate, model])),
    )
  }
  assert(choices.length > 0, 'a request has a model')
  return choices as [Choice, ...Choice[]]
}

const hasPolicy = ({ policy }: ResolvedModel) => policy !== undefined

function preferenceWarnings(isAllowed: boolean, { providers }: Envelope): readonly Warning[] {
  if (!isAllowed) return [{ code: 'provider_choice_off', field: providers ? '/provider' : '/model' }]
  return (providers?.dropped ?? []).map((name) => ({ code: 'provider_option_dropped', field: `/provider/${name}` }))
}

function planRoutes(
  deps: AdmitDependencies,
  request: GatewayRequest,
  choices: readonly [Choice, ...Choice[]],
): Promise<void> | undefined {
  const { health } = deps
  const [{ candidates, policy }] = choices
  if (candidates.length === 1 && choices.length === 1) {
    request.plan = health.plan(candidates)
    return undefined
  }
  return planAmong(deps, request, choices, policy)
}

function planAmong(
  { health, retryBudget, sticky, settings }: AdmitDependencies,
  request: GatewayRequest,
  [{ candidates }, ...others]: readonly [Choice, ...Choice[]],
  policy: RoutingPolicy,
): Promise<void> | undefined {
  const { caller, model, session } = request
  const key = session && `${caller.workspaceId} ${model.id} ${session.id}`
  request.conversationKey = key
  const plan = (route: string | undefined): void => {
    const probes = retryBudget.level() >= 1 ? 'on' : 'off'
    const first = health.plan(candidates, { sticky: route, conversation: key, probes, policy })
    const rest = others.map((each) => health.plan(each.candidates, { probes, policy: each.policy }))
    const order = settings.current.providerChoice ? request.envelope.providers?.order : undefined
    const plans = order ? [first, ...rest].map((each) => inOrder(each, order)) : [first, ...rest]
    request.plan = plans.length === 1 && plans[0] ? plans[0] : joinPlans(plans)
  }
  const route = key === undefined ? undefined : sticky.find(key)
  return route instanceof Promise ? route.then(plan) : void plan(route)
}

function overLimit(request: GatewayRequest, refused: Refused): Failure {
  request.limits = refused.state
  request.record.limitSource = `${refused.scope.kind} ${refused.limit}`
  return limitFailure(refused)
}

function refusedMediaType(headers: RequestHeaders): Failure | undefined {
  const mediaType = headers.get('content-type')
  // The spelling of nearly every client.
  if (mediaType === 'application/json') return undefined
  if (mediaType !== null && /^application\/(json|[a-z.-]+\+json)\s*(;|$)/i.test(mediaType)) return undefined
  const got = mediaType === null ? 'none was sent' : `got ${mediaType.slice(0, 100)}`
  return new Failure('UNSUPPORTED_MEDIA_TYPE', `Send the body with Content-Type: application/json; ${got}.`)
}

/** A compressed body would have to be decompressed before its size is known, and no official client sends one. */
function refusedEncoding(headers: RequestHeaders): Failure | undefined {
  const encoding = headers.get('content-encoding')
  if (encoding === null || /^(identity)?$/i.test(encoding.trim())) return undefined
  const got = encoding.slice(0, 100)
  return new Failure('UNSUPPORTED_MEDIA_TYPE', `Send the body as it is, without Content-Encoding; got ${got}.`)
}

function bodyFailure({ reason }: BodyFault, { settings, random }: AdmitDependencies): Failure {
  if (reason === 'aborted') return invalidRequest('The body ended before it was complete.')
  if (reason === 'no-room') {
    const why = 'Tollgate is being sent too many large requests at once to take this one. Retry in a moment.'
    return new Failure('OVERLOADED', why, { retryAfterMs: Math.round(retryMinMs + random() * retrySpreadMs) })
  }
  const message = `The body is larger than this gateway takes (${formatBytes(settings.current.bodyBytesMax)}). Send less.`
  return new Failure('PAYLOAD_TOO_LARGE', message)
}

/** Whole mebibytes, or exact bytes: a rounded limit would be wrong. */
function formatBytes(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`
}
