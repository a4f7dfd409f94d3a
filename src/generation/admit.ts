// The first steps of every call that names a model: who calls, what they sent, and where it could go. Each can end the
// call; nothing has been sent to a provider yet.

import type { Dialect, Envelope } from '../dialects/dialect.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { Offer, OfferedModel } from '../routing/offer.ts'
import type { RequestRecord } from '../telemetry/request-record.ts'
import type { Caller } from '../tenancy/caller.ts'
import { BodyFault, readBody } from '../wire/read-body.ts'

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

export interface Call {
  readonly request: Request
  readonly surface: Dialect
  /** The dialect's reader for this kind of call. */
  readEnvelope(body: Uint8Array<ArrayBuffer>, headers: Headers): Envelope | Failure
}

export async function admit(deps: AdmitDependencies, call: Call, record: RequestRecord): Promise<Admitted | Failure> {
  const { request, surface } = call
  const caller = await deps.authenticate(request.headers)
  if (caller instanceof Failure) return caller
  record.keyId = caller.keyId

  const body = await readJsonBody(request, deps.bodyBytesMax)
  if (body instanceof Failure) return body
  const envelope = call.readEnvelope(body, request.headers)
  if (envelope instanceof Failure) return envelope
  record.stream = envelope.stream

  const offer = deps.offer()
  const model = offer.find(caller, envelope.model)
  if (model instanceof Failure) return model
  record.model = model.id
  const candidates = offer.plan(model, surface)
  if (candidates instanceof Failure) return candidates
  return { caller, envelope, model, candidates }
}

async function readJsonBody(request: Request, bytesMax: number): Promise<Uint8Array<ArrayBuffer> | Failure> {
  const mediaType = request.headers.get('content-type')
  if (mediaType === null || !/^application\/(json|[a-z.-]+\+json)\s*(;|$)/i.test(mediaType)) {
    const got = mediaType === null ? 'none was sent' : `got ${mediaType.slice(0, 100)}`
    return new Failure('UNSUPPORTED_MEDIA_TYPE', `Send the body with Content-Type: application/json; ${got}.`)
  }
  const body = await readBody(request, { bytesMax })
  if (!(body instanceof BodyFault)) return body
  if (body.reason === 'aborted') return invalidRequest('The body ended before it was complete.')
  return new Failure('PAYLOAD_TOO_LARGE', `The body is larger than this gateway takes (${size(bytesMax)}). Send less.`)
}

/** Whole mebibytes as such, anything else to the byte: a rounded limit would be a wrong one. */
function size(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`
}
