// The first steps of every call that names a model: authenticate, read the body, read the envelope, check limits, plan the
// routes. Each may end the request; nothing has been sent to a provider yet.

import type { RoutingPolicy } from '../catalog/model.ts'
import type { Envelope, SentRequest, Warning } from '../dialects/canonical/translation.ts'
import { assert, Failure, invalidRequest } from '../kernel/failure.ts'
import {
  type Arrival,
  isLimited,
  type Limiter,
  type LimitStates,
  limitFailure,
  type Refused,
} from '../limits/limiter.ts'
import type { CallBudget } from '../routing/failover.ts'
import type { Health } from '../routing/health.ts'
import { candidateRecords, type Offer, type ResolvedModel, shorten, type WorkspaceOffer } from '../routing/offer.ts'
import {
  type Candidate,
  type HealthPlan,
  inOrder,
  joinPlans,
  type OfferedModel,
  policyOf,
  wantedCandidates,
} from '../routing/plan.ts'
import type { StickyRoutes } from '../routing/sticky.ts'
import { allowsSource, sourceFailure } from '../tenancy/allowlist.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { CredentialCache } from '../tenancy/credentials.ts'
import type { EndUserMode } from '../tenancy/end-users.ts'
import type { StoredResponses } from '../tenancy/stored-responses.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import { BodyFault, readBody } from '../wire/read-body.ts'
import { isStrict } from './answer.ts'
import { bodyFailure } from './client-request.ts'
import { Content } from './content.ts'
import type { Exchange } from './exchange.ts'
import { readItemSession } from './kept-items.ts'
import type { KeptReasoning } from './kept-reasoning.ts'
import { strictRefusal } from './lanes.ts'
import { withTier } from './service-tier.ts'
import { readSession, recordAttribution, type SessionSettings, type TagContent } from './session.ts'
import { type Admitted, Refusal, type Storing } from './stages.ts'
import { inputToStore, withEarlier } from './stored-response.ts'

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
type ReadEnvelope = (body: Uint8Array<ArrayBuffer>, headers: RequestHeaders, url: string) => SentRequest | Failure

/** Tokens that count against limits until the usage is known; 0 for a call that generates nothing. */
type EstimateTokens = (asked: Pick<Admitted, 'envelope' | 'content'>, model: OfferedModel) => number

/** Characters of the user agent that are recorded. */
const clientMax = 100

export async function admit(
  deps: AdmitDependencies,
  exchange: Exchange,
  readEnvelope: ReadEnvelope,
  estimateTokens: EstimateTokens,
): Promise<Admitted | Refusal> {
  const { record, surface, http } = exchange
  const { endUsers, sessions } = deps.settings.current
  const caller = await identify(deps, exchange)
  if (caller instanceof Failure) return new Refusal(caller)
  const arrival = takeSlot(deps, exchange, caller)
  if (arrival instanceof Refusal) return arrival

  const read = await readSent(deps, exchange, caller, readEnvelope)
  if (read instanceof Failure) return new Refusal(read)
  const { sent, storing } = read
  const session = readSession(http.headers, sent, surface)
  const { headers } = http
  const misattributed = recordAttribution(record, { headers, caller, sent, session }, endUsers)
  if (misattributed) return new Refusal(misattributed)

  const { envelope } = sent
  const ownKeys = await deps.credentials.find(caller.workspaceId)
  const offer = deps.catalog.current.offer.with(ownKeys, caller.priceList)
  const routes = chooseRoutes(deps, offer, exchange, caller, sent)
  if (routes instanceof Failure) return new Refusal(routes)
  const { model, models, candidates, warnings } = routes
  const content = new Content(sent, surface, candidates, deps.tagContent(caller.workspaceId))
  const limits = arrival
    ? await countAgainstLimits(exchange, arrival, estimateTokens({ envelope, content }, model))
    : noLimits
  if (limits instanceof Refusal) return limits

  const { plan, conversationKey } = await planFor(deps, exchange, routes, { caller, session })
  const keepsReasoning = surface.losesReasoning && sessions.keepReasoning
  return {
    exchange,
    caller,
    envelope,
    content,
    model,
    models,
    plan,
    limits,
    warnings,
    session,
    conversationKey,
    keptReasoning:
      session && keepsReasoning
        ? { store: deps.keptReasoning, workspaceId: caller.workspaceId, sessionId: session.id }
        : undefined,
    storing,
  }
}

/** The same request to another model, of which a spend limit of the caller wants it answered. */
export async function admitOther(
  deps: AdmitDependencies,
  admitted: Admitted,
  modelId: string,
): Promise<Admitted | Failure> {
  const { exchange, caller, session } = admitted
  const ownKeys = await deps.credentials.find(caller.workspaceId)
  const offer = deps.catalog.current.offer.with(ownKeys, caller.priceList)
  const resolved = offer.resolve(caller, modelId)
  if (resolved instanceof Failure) return resolved
  const routes = routesTo(deps, offer, exchange, caller, admitted.content.sent, [resolved])
  if (routes instanceof Failure) return routes
  const { model, models, candidates } = routes
  const content = new Content(admitted.content.sent, exchange.surface, candidates, admitted.content.tags)
  const { plan, conversationKey } = await planFor(deps, exchange, routes, { caller, session })
  return { ...admitted, model, models, content, plan, conversationKey }
}

// ── The caller ──

async function identify(deps: AdmitDependencies, { record, http, connection }: Exchange): Promise<Caller | Failure> {
  const caller = await deps.authenticate(http.headers)
  if (caller instanceof Failure) return caller
  record.caller = caller
  record.client = http.headers.get('user-agent')?.slice(0, clientMax)
  if (!caller.sources) return caller
  const address = connection.address()
  return allowsSource(caller, address) ? caller : sourceFailure(caller, address)
}

/**
 * Before the body: a caller at its concurrency limit must not make us buffer what it sends. However the request ends from
 * here on, it counts as one of its minute when its slot is given back. Most keys have no limits and take none.
 */
function takeSlot(
  { limiter }: AdmitDependencies,
  exchange: Exchange,
  { limits }: Caller,
): Arrival | Refusal | undefined {
  if (!limits.some(isLimited)) return undefined
  const arrival = limiter.arrive(limits)
  if (arrival.kind === 'refused') return refusedByLimit(exchange, arrival)
  exchange.slot = arrival
  return arrival
}

const noLimits: LimitStates = {}

/** Counts the request and its tokens, which are not estimated without limits. Returns what is left. */
async function countAgainstLimits(
  exchange: Exchange,
  arrival: Arrival,
  tokens: number,
): Promise<LimitStates | Refusal> {
  // `arrival.admit` ends it, whatever the verdict, so there is nothing to give back meanwhile.
  exchange.slot = undefined
  const verdict = await arrival.admit(tokens)
  if (verdict.kind === 'refused') return refusedByLimit(exchange, verdict)
  exchange.slot = verdict
  return verdict.state
}

function refusedByLimit({ record }: Exchange, refused: Refused): Refusal {
  record.limitSource = `${refused.scope.kind} ${refused.limit}`
  return new Refusal(limitFailure(refused), refused.state)
}

// ── The body ──

const notStoring: Storing = { previousId: undefined, input: undefined, remembered: undefined, items: undefined }

interface ReadSent {
  readonly sent: SentRequest
  readonly storing: Storing
}

async function readSent(
  deps: AdmitDependencies,
  { record, surface, http, connection }: Exchange,
  caller: Caller,
  readEnvelope: ReadEnvelope,
): Promise<ReadSent | Failure> {
  const { memory } = connection
  const { bodyBytesMax, storeResponses, sessions } = deps.settings.current
  const { storage } = surface
  const refused = refusedMediaType(http.headers) ?? refusedEncoding(http.headers)
  if (refused) return refused
  const body = await readBody(http, bodyBytesMax)
  if (body instanceof BodyFault) return bodyFailure(body, tooLarge(bodyBytesMax), deps.random)
  const stored = storeResponses ? deps.storedResponses : undefined
  const kept = sessions.keepReasoning ? deps.keptReasoning : undefined
  const asked = { caller, headers: http.headers, body, bytesMax: bodyBytesMax }
  const whole = storage ? await withEarlier({ stored, kept, memory }, storage, asked) : { body, previousId: undefined }
  if (whole instanceof Failure) return whole
  if (whole.body.length > bodyBytesMax) return new Failure('PAYLOAD_TOO_LARGE', tooLarge(bodyBytesMax))
  const sent = readEnvelope(whole.body, http.headers, http.url)
  if (sent instanceof Failure) return sent
  const input = sent.envelope.wantsStore && storeResponses ? inputToStore(surface, sent) : undefined
  if (input instanceof Failure) return input
  record.stream = sent.envelope.stream
  const { previousId } = whole
  // A client that does not decline storage may refer to the items of the answer.
  const keepsItems = storage && kept && input === undefined && sent.envelope.wantsStore !== false
  const { workspaceId } = caller
  const items = keepsItems
    ? { store: kept, workspaceId, session: readItemSession(http.headers, sent, storage) }
    : undefined
  const remembered = memory && storage?.inputItems(sent)
  if (input === undefined && previousId === undefined && remembered === undefined && !items)
    return { sent, storing: notStoring }
  return {
    sent: input === undefined ? sent : { ...sent, envelope: { ...sent.envelope, isStored: true } },
    storing: { previousId, input, remembered, items },
  }
}

// ── The model and its routes ──

export type Resolved = readonly [ResolvedModel, ...ResolvedModel[]]

/**
 * The model, and those that follow if it fails: the caller's list or, without one, the operator's. The caller may name only
 * models that it may use. Of the operator's list, those that it may not use are skipped, and a strict caller gets none.
 */
function resolveModels(
  offer: WorkspaceOffer,
  caller: Caller,
  { model, fallbacks }: Envelope,
  headers: RequestHeaders,
): Resolved | Failure {
  const first = offer.resolve(caller, model)
  if (first instanceof Failure) return first
  if (!fallbacks) {
    const isAlone = first.model.fallbacks.length === 0 || isStrict(headers)
    return isAlone ? [first] : [first, ...offer.fallbacksOf(caller, first.model)]
  }
  const resolved: [ResolvedModel, ...ResolvedModel[]] = [first]
  for (const name of fallbacks) {
    const next = offer.resolve(caller, name)
    if (next instanceof Failure) return new Failure(next.code, next.message, { ...next.facts, param: 'models' })
    if (!resolved.some((each) => each.model === next.model)) resolved.push(next)
  }
  return resolved
}

/** A model that makes embeddings does nothing else, and others make none. */
export function wrongKind(resolved: Resolved, { embeddings }: Envelope): Failure | undefined {
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

/** What may serve the request. */
interface Routes extends Pick<Admitted, 'model' | 'models' | 'warnings'> {
  /** For each model, in the order in which the caller named them. */
  readonly choices: readonly Choice[]
  /** All of them, healthy or not. */
  readonly candidates: readonly Candidate[]
  /** Providers that the caller wants first. */
  readonly order: readonly string[] | undefined
}

function chooseRoutes(
  deps: AdmitDependencies,
  offer: WorkspaceOffer,
  exchange: Exchange,
  caller: Caller,
  sent: SentRequest,
): Routes | Failure {
  const resolved = resolveModels(offer, caller, sent.envelope, exchange.http.headers)
  if (!(resolved instanceof Failure)) return routesTo(deps, offer, exchange, caller, sent, resolved)
  exchange.record.requestedModel = shorten(sent.envelope.model)
  return resolved
}

function routesTo(
  { settings }: AdmitDependencies,
  offer: WorkspaceOffer,
  { record, surface, http }: Exchange,
  caller: Caller,
  sent: SentRequest,
  resolved: Resolved,
): Routes | Failure {
  const { envelope } = sent
  const { providerChoice } = settings.current
  const mismatch = wrongKind(resolved, envelope)
  if (mismatch) return mismatch
  const [{ model }] = resolved
  record.model = model.id
  record.priceVersion = model.priceVersion

  const preferences = providerChoice ? envelope.providers : undefined
  const choices: Choice[] = []
  for (const { model: each, policy: suffixPolicy } of resolved) {
    const all = offer.candidates(each, surface, caller, envelope)
    const candidates = preferences ? wantedCandidates(all, preferences, each.id) : all
    // The caller's preferences may exclude the operator's fallbacks, but do not have to know them.
    if (candidates instanceof Failure && choices.length > 0 && !envelope.fallbacks) continue
    if (candidates instanceof Failure) return candidates
    const able = withTier(candidates, each, sent)
    if (able instanceof Failure && choices.length > 0 && !envelope.fallbacks) continue
    if (able instanceof Failure) return able
    const wanted = providerChoice ? (suffixPolicy ?? (preferences && policyOf(preferences))) : undefined
    choices.push({ candidates: able, policy: wanted ?? each.routing })
  }
  const [first] = choices
  assert(first, 'a request has a model')
  const hasPreferences = envelope.providers || resolved.some(hasPolicy)
  const warnings = hasPreferences ? preferenceWarnings(providerChoice, envelope) : noWarnings
  if (warnings.length > 0 && isStrict(http.headers)) return strictRefusal(warnings)
  const isOne = choices.length === 1
  const candidates = isOne ? first.candidates : choices.flatMap((choice) => choice.candidates)
  const models = isOne ? [model] : [...new Set(candidates.map((candidate) => candidate.model))]
  return { model, models, warnings, candidates, choices, order: preferences?.order }
}

const noWarnings: readonly Warning[] = []

const hasPolicy = ({ policy }: ResolvedModel) => policy !== undefined

function preferenceWarnings(isAllowed: boolean, { providers }: Envelope): readonly Warning[] {
  if (!isAllowed) return [{ code: 'provider_choice_off', field: providers ? '/provider' : '/model' }]
  return (providers?.dropped ?? []).map((name) => ({ code: 'provider_option_dropped', field: `/provider/${name}` }))
}

/** The plan, and what identifies the conversation for its prompt cache. */
async function planFor(
  deps: AdmitDependencies,
  { record }: Exchange,
  routes: Routes,
  { caller, session }: Pick<Admitted, 'caller' | 'session'>,
): Promise<Pick<Admitted, 'plan' | 'conversationKey'>> {
  const { model, candidates } = routes
  const conversationKey =
    session && candidates.length > 1 ? `${caller.workspaceId} ${model.id} ${session.id}` : undefined
  const stickyRoute = conversationKey === undefined ? undefined : await deps.sticky.find(conversationKey)
  const plan = planRoutes(deps, routes, conversationKey, stickyRoute)
  record.candidates = candidateRecords(plan)
  return { plan, conversationKey }
}

function planRoutes(
  { health, retryBudget }: AdmitDependencies,
  { candidates, choices, order }: Routes,
  conversation: string | undefined,
  sticky: string | undefined,
): HealthPlan<Candidate> {
  if (candidates.length === 1) return health.plan(candidates)
  const probes = retryBudget.level() >= 1 ? 'on' : 'off'
  const plans = choices.map(({ candidates: each, policy }, i) => {
    const plan = health.plan(each, i === 0 ? { sticky, conversation, probes, policy } : { probes, policy })
    return order ? inOrder(plan, order) : plan
  })
  return plans.length === 1 && plans[0] ? plans[0] : joinPlans(plans)
}

// ── Refusals ──

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

function tooLarge(bytesMax: number): string {
  return `The body is larger than this gateway takes (${formatBytes(bytesMax)}). Send less.`
}

/** Whole mebibytes, or exact bytes: a rounded limit would be wrong. */
function formatBytes(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`
}
