// The first steps of every call that names a model: who calls, what they sent, how much they may, and where it could go.
// Each can end the call; nothing has been sent to a provider yet.

import type { Envelope } from '../dialects/canonical/translation.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { type Limiter, limitFailure, type Refused } from '../limits/limiter.ts'
import type { Candidate } from '../routing/candidate.ts'
import { candidateRecords } from '../routing/explain-plan.ts'
import type { Health } from '../routing/health/health.ts'
import type { HealthPlan } from '../routing/health/plan-with-health.ts'
import type { RetryBudget } from '../routing/health/retry-budget.ts'
import type { StickyRoutes } from '../routing/health/sticky.ts'
import type { Offer, OfferedModel } from '../routing/offer.ts'
import { allowsSource, sourceFailure } from '../tenancy/allowlist.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { CredentialCache } from '../tenancy/credentials.ts'
import type { BodyRoom } from '../wire/body-room.ts'
import { BodyFault, readBody } from '../wire/read-body.ts'
import { conversationKey } from './conversation-key.ts'
import type { Story } from './story.ts'

export interface AdmitDependencies {
  authenticate(headers: Headers): Caller | Failure | Promise<Caller | Failure>
  readonly credentials: Pick<CredentialCache, 'open'>
  readonly limiter: Limiter
  readonly health: Pick<Health, 'plan'>
  readonly budget: Pick<RetryBudget, 'level'>
  readonly sticky: Pick<StickyRoutes, 'find'>
  /** What the configuration in force offers. */
  offer(): Offer
  readonly bodyBytesMax: number
  /** For all bodies that are on their way. */
  readonly bodyRoom: BodyRoom
  /** A number in [0, 1). */
  random(): number
}

export interface Admitted {
  readonly caller: Caller
  readonly envelope: Envelope
  readonly model: OfferedModel
  readonly plan: HealthPlan<Candidate>
  /** Names the conversation for its prompt cache; undefined where no choice of routes could lose one. */
  readonly conversation: string | undefined
}

/** The dialect's reader for the kind of call at hand. */
export type ReadEnvelope = (body: Uint8Array<ArrayBuffer>, headers: Headers) => Envelope | Failure

/** What counts against a limit until the real number is known; 0 for a call that generates nothing. */
export type EstimateTokens = (envelope: Envelope, model: OfferedModel) => number

/** A little different for everyone, or all would come back at once. */
const retryMinMs = 1_000
const retrySpreadMs = 2_000

/** Characters of what a client calls itself that are kept. */
const clientMax = 100

export async function admit(
  deps: AdmitDependencies,
  request: Request,
  story: Story,
  readEnvelope: ReadEnvelope,
  estimateTokens: EstimateTokens,
): Promise<Admitted | Failure> {
  const { record, surface } = story
  const { headers } = request
  // A key seen in the last seconds is known without asking the database, and then there is nothing to wait for.
  const known = deps.authenticate(headers)
  const caller = known instanceof Promise ? await known : known
  if (caller instanceof Failure) return caller
  record.caller = caller
  record.client = headers.get('user-agent')?.slice(0, clientMax)
  if (caller.sources) {
    const address = story.connection.address()
    if (!allowsSource(caller, address)) return sourceFailure(caller, address)
  }

  // Before the body: a caller without a place for one more request must not make us hold what it sends. Whatever ends the
  // story from here on ends the arrival, and so counts a request that could not be served.
  const arrival = caller.limits.length === 0 ? undefined : deps.limiter.arrive(caller.limits)
  if (arrival?.kind === 'refused') return overLimit(story, caller, arrival)
  story.admission = arrival

  const refused = refusedMediaType(headers) ?? refusedEncoding(headers)
  if (refused) return refused
  const body = await readBody(request, { bytesMax: deps.bodyBytesMax, room: deps.bodyRoom })
  if (body instanceof BodyFault) return bodyFailure(body, deps)
  const envelope = readEnvelope(body, headers)
  if (envelope instanceof Failure) return envelope
  record.stream = envelope.stream

  const opened = deps.credentials.open(caller.workspaceId)
  const offer = deps.offer().with(opened instanceof Promise ? await opened : opened)
  const model = offer.find(caller, envelope.model)
  if (model instanceof Failure) return model
  record.model = model.id
  record.priceVersion = model.priceVersion

  // Most keys have no limits, and then nobody asks how long the prompt is.
  if (arrival) {
    const tokens = estimateTokens(envelope, model)
    story.admission = undefined
    const counting = arrival.admit(tokens)
    const admission = counting instanceof Promise ? await counting : counting
    if (admission.kind === 'refused') return overLimit(story, caller, admission)
    story.limits = admission.state
    story.admission = admission
  }

  const candidates = offer.candidates(model, surface, caller, envelope)
  const planned = planOf(deps, story, caller, envelope, model, candidates)
  record.candidates = candidateRecords(planned.plan)
  return { caller, envelope, model, ...planned }
}

function overLimit(story: Story, { keyName }: Caller, refused: Refused): Failure {
  story.limits = refused.state
  story.record.limitSource = `${refused.scope.kind} ${refused.limit}`
  return limitFailure(refused, keyName)
}

function planOf(
  { health, budget, sticky }: AdmitDependencies,
  { surface }: Story,
  caller: Caller,
  envelope: Envelope,
  model: OfferedModel,
  candidates: readonly Candidate[],
): Pick<Admitted, 'plan' | 'conversation'> {
  if (candidates.length === 1) return { plan: health.plan(candidates), conversation: undefined }
  const conversation = conversationKey(caller.workspaceId, model.id, surface, envelope)
  const kept = conversation === undefined ? undefined : sticky.find(conversation)
  const probes = budget.level() >= 1 ? 'on' : 'off'
  return { plan: health.plan(candidates, { sticky: kept, probes, policy: model.routing }), conversation }
}

function refusedMediaType(headers: Headers): Failure | undefined {
  const mediaType = headers.get('content-type')
  // As nearly every client spells it.
  if (mediaType === 'application/json') return undefined
  if (mediaType !== null && /^application\/(json|[a-z.-]+\+json)\s*(;|$)/i.test(mediaType)) return undefined
  const got = mediaType === null ? 'none was sent' : `got ${mediaType.slice(0, 100)}`
  return new Failure('UNSUPPORTED_MEDIA_TYPE', `Send the body with Content-Type: application/json; ${got}.`)
}

/** A packed body would have to be unpacked before it could be measured, and no official client sends one. */
function refusedEncoding(headers: Headers): Failure | undefined {
  const encoding = headers.get('content-encoding')
  if (encoding === null || /^(identity)?$/i.test(encoding.trim())) return undefined
  const got = encoding.slice(0, 100)
  return new Failure('UNSUPPORTED_MEDIA_TYPE', `Send the body as it is, without Content-Encoding; got ${got}.`)
}

function bodyFailure({ reason }: BodyFault, { bodyBytesMax: bytesMax, random }: AdmitDependencies): Failure {
  if (reason === 'aborted') return invalidRequest('The body ended before it was complete.')
  if (reason === 'no-room') {
    const why = 'Tollgate is being sent too many large requests at once to take this one. Retry in a moment.'
    return new Failure('OVERLOADED', why, { retryAfterMs: Math.round(retryMinMs + random() * retrySpreadMs) })
  }
  return new Failure('PAYLOAD_TOO_LARGE', `The body is larger than this gateway takes (${size(bytesMax)}). Send less.`)
}

/** Whole mebibytes as such, anything else to the byte: a rounded limit would be a wrong one. */
function size(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`
}
