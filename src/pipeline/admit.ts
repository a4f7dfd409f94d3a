// The first steps of every call that names a model: authenticate, read the body, read the envelope, check limits, plan the
// routes. Each may end the request; nothing has been sent to a provider yet.

import type { Envelope } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { type Limiter, limitFailure, type Refused } from '../limits/limiter.ts'
import type { Health } from '../routing/health.ts'
import type { CallBudget } from '../routing/hedge.ts'
import type { Offer } from '../routing/offer.ts'
import type { Candidate } from '../routing/plan.ts'
import { candidateRecords } from '../routing/plan.ts'
import type { StickyRoutes } from '../routing/sticky.ts'
import { allowsSource, sourceFailure } from '../tenancy/allowlist.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { CredentialCache } from '../tenancy/credentials.ts'
import { BodyFault, type BodyRoom, readBody } from '../wire/read-body.ts'
import type { GatewayRequest } from './request.ts'

export interface AdmitDependencies {
  authenticate(headers: Headers): Caller | Failure | Promise<Caller | Failure>
  readonly credentials: Pick<CredentialCache, 'open'>
  readonly limiter: Limiter
  readonly health: Pick<Health, 'plan'>
  readonly budget: Pick<CallBudget, 'level'>
  readonly sticky: Pick<StickyRoutes, 'find'>
  /** What the current configuration offers. */
  offer(): Offer
  readonly bodyBytesMax: number
  /** Memory for all bodies that are being read. */
  readonly bodyRoom: BodyRoom
  /** A number in [0, 1). */
  random(): number
}

/** Reads the envelope of the kind of call. */
type ReadEnvelope = (body: Uint8Array<ArrayBuffer>, headers: Headers) => Envelope | Failure

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
  // Without a promise for a key that is in the cache.
  const known = deps.authenticate(headers)
  const caller = known instanceof Promise ? await known : known
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
  const body = await readBody(http, { bytesMax: deps.bodyBytesMax, room: deps.bodyRoom })
  if (body instanceof BodyFault) return bodyFailure(body, deps)
  const envelope = readEnvelope(body, headers)
  if (envelope instanceof Failure) return envelope
  request.envelope = envelope
  request.bodyBytes = envelope.body.length
  record.stream = envelope.stream

  const opened = deps.credentials.open(caller.workspaceId)
  const offer = deps.offer().with(opened instanceof Promise ? await opened : opened)
  const model = offer.find(caller, envelope.model)
  if (model instanceof Failure) return model
  request.model = model
  record.model = model.id
  record.priceVersion = model.priceVersion

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

  planRoutes(deps, request, offer.candidates(model, surface, caller, envelope))
  record.candidates = candidateRecords(request.plan)
  return undefined
}

function planRoutes(
  { health, budget, sticky }: AdmitDependencies,
  request: GatewayRequest,
  candidates: readonly Candidate[],
): void {
  if (candidates.length === 1) {
    request.plan = health.plan(candidates)
    return
  }
  const { caller, model, surface, envelope } = request
  const key = conversationKey(caller.workspaceId, model.id, surface, envelope)
  request.conversationKey = key
  request.plan = health.plan(candidates, {
    sticky: key === undefined ? undefined : sticky.find(key),
    probes: budget.level() >= 1 ? 'on' : 'off',
    policy: model.routing,
  })
}

/** No provider caches less than about a thousand tokens. */
const cacheableBytesMin = 4096
/** Bytes hashed of each part; enough to distinguish conversations. */
const hashedBytes = 1024

/**
 * Identifies a conversation by its beginning, so that its next turn goes to the route that has its prompt cache, and tool
 * results go to the model that called the tool. undefined for short ones without tools, which no provider caches.
 */
export function conversationKey(
  workspaceId: string,
  modelId: string,
  surface: Pick<Dialect, 'conversationSpans'>,
  envelope: Envelope,
): string | undefined {
  // A tool loop has a key from its first call, because it will grow.
  if (envelope.body.length < cacheableBytesMin && !envelope.offersTools) return undefined
  let hash = 0n
  for (const { start, end } of surface.conversationSpans(envelope)) {
    hash = Bun.hash.wyhash(envelope.body.subarray(start, Math.min(end, start + hashedBytes)), hash)
  }
  return `${workspaceId} ${modelId} ${hash}`
}

function overLimit(request: GatewayRequest, refused: Refused): Failure {
  request.limits = refused.state
  request.record.limitSource = `${refused.scope.kind} ${refused.limit}`
  return limitFailure(refused, request.caller.keyName)
}

function refusedMediaType(headers: Headers): Failure | undefined {
  const mediaType = headers.get('content-type')
  // The spelling of nearly every client.
  if (mediaType === 'application/json') return undefined
  if (mediaType !== null && /^application\/(json|[a-z.-]+\+json)\s*(;|$)/i.test(mediaType)) return undefined
  const got = mediaType === null ? 'none was sent' : `got ${mediaType.slice(0, 100)}`
  return new Failure('UNSUPPORTED_MEDIA_TYPE', `Send the body with Content-Type: application/json; ${got}.`)
}

/** A compressed body would have to be decompressed before its size is known, and no official client sends one. */
function refusedEncoding(headers: Headers): Failure | undefined {
  const encoding = headers.get('content-encoding')
  if (encoding === null || /^(identity)?$/i.test(encoding.trim())) return undefined
  const got = encoding.slice(0, 100)
  return new Failure('UNSUPPORTED_MEDIA_TYPE', `Send the body as it is, without Content-Encoding; got ${got}.`)
}

function bodyFailure({ reason }: BodyFault, { bodyBytesMax, random }: AdmitDependencies): Failure {
  if (reason === 'aborted') return invalidRequest('The body ended before it was complete.')
  if (reason === 'no-room') {
    const why = 'Tollgate is being sent too many large requests at once to take this one. Retry in a moment.'
    return new Failure('OVERLOADED', why, { retryAfterMs: Math.round(retryMinMs + random() * retrySpreadMs) })
  }
  const message = `The body is larger than this gateway takes (${formatBytes(bodyBytesMax)}). Send less.`
  return new Failure('PAYLOAD_TOO_LARGE', message)
}

/** Whole mebibytes, or exact bytes: a rounded limit would be wrong. */
function formatBytes(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`
}
