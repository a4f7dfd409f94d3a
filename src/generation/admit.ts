// The first steps of every call that names a model: who calls, what they sent, and where it could go. Each can end the
// call; nothing has been sent to a provider yet.

import type { Envelope } from '../dialects/canonical/envelope.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { Offer, OfferedModel } from '../routing/offer.ts'
import type { Caller } from '../tenancy/caller.ts'
import { BodyFault, readBody } from '../wire/read-body.ts'
import type { Story } from './story.ts'

export interface AdmitDependencies {
  authenticate(headers: Headers): Caller | Failure | Promise<Caller | Failure>
  /** What the configuration in force offers. */
  offer(): Offer
  readonly bodyBytesMax: number
}

export interface Admitted {
  readonly caller: Caller
  readonly envelope: Envelope
  readonly model: OfferedModel
  readonly candidates: readonly Candidate[]
}

/** Characters of what a client calls itself that are kept. */
const clientMax = 100

/** The dialect's reader for the kind of call at hand. */
export type ReadEnvelope = (body: Uint8Array<ArrayBuffer>, headers: Headers) => Envelope | Failure

export async function admit(
  deps: AdmitDependencies,
  request: Request,
  { record, surface }: Story,
  readEnvelope: ReadEnvelope,
): Promise<Admitted | Failure> {
  const { headers } = request
  // A key seen in the last seconds is known without asking the database, and then there is nothing to wait for.
  const known = deps.authenticate(headers)
  const caller = known instanceof Promise ? await known : known
  if (caller instanceof Failure) return caller
  record.caller = caller
  record.client = headers.get('user-agent')?.slice(0, clientMax)

  const refused = refusedMediaType(headers)
  if (refused) return refused
  const body = await readBody(request, { bytesMax: deps.bodyBytesMax })
  if (body instanceof BodyFault) return bodyFailure(body, deps.bodyBytesMax)
  const envelope = readEnvelope(body, headers)
  if (envelope instanceof Failure) return envelope
  record.stream = envelope.stream

  const offer = deps.offer()
  const model = offer.find(caller, envelope.model)
  if (model instanceof Failure) return model
  record.model = model.id
  record.priceVersion = model.priceVersion
  const candidates = offer.plan(model, surface)
  record.candidates = candidates.map(({ provider, route }) => ({
    provider: provider.id,
    upstreamModel: route.upstreamModel,
  }))
  return { caller, envelope, model, candidates }
}

function refusedMediaType(headers: Headers): Failure | undefined {
  const mediaType = headers.get('content-type')
  // As nearly every client spells it.
  if (mediaType === 'application/json') return undefined
  if (mediaType !== null && /^application\/(json|[a-z.-]+\+json)\s*(;|$)/i.test(mediaType)) return undefined
  const got = mediaType === null ? 'none was sent' : `got ${mediaType.slice(0, 100)}`
  return new Failure('UNSUPPORTED_MEDIA_TYPE', `Send the body with Content-Type: application/json; ${got}.`)
}

function bodyFailure({ reason }: BodyFault, bytesMax: number): Failure {
  if (reason === 'aborted') return invalidRequest('The body ended before it was complete.')
  return new Failure('PAYLOAD_TOO_LARGE', `The body is larger than this gateway takes (${size(bytesMax)}). Send less.`)
}

/** Whole mebibytes as such, anything else to the byte: a rounded limit would be a wrong one. */
function size(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`
}
