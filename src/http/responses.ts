// Answers outside a generation: failures in the format of the caller's client, JSON, event streams and files.

import type { Dialect } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import { createId, type RequestId } from '../kernel/ids.ts'
import {
  Answer,
  type AnswerHeaders,
  acceptsGzip,
  type EventStream,
  failureAnswer,
  requestIdHeaders,
  textStream,
} from '../pipeline/answer.ts'
import type { StoredAnswer } from '../tenancy/idempotency.ts'
import type { HeaderReader } from '../wire/http-message.ts'
import type { Download } from './management/route.ts'

export function refuse(surface: Dialect, failure: Failure, id: RequestId = createId('req')): Answer {
  return failureAnswer(surface, failure, requestIdHeaders(id), id)
}

export function wrongMethod(method: string, allow: string): Failure {
  return new Failure('METHOD_NOT_ALLOWED', `${method} is not served here; use ${allow}.`, { allow })
}

export function jsonAnswer(value: unknown, headers: AnswerHeaders = {}): Answer {
  const all = { ...requestIdHeaders(createId('req')), 'content-type': 'application/json', ...headers }
  return new Answer(200, all, JSON.stringify(value))
}

export interface ApiAnswer extends StoredAnswer {
  readonly replayed?: boolean
}

/** Answers may contain a secret that is shown once, so no cache may keep them. */
export function apiHeaders(id: RequestId): AnswerHeaders {
  return {
    ...requestIdHeaders(id),
    'content-type': 'application/json',
    'cache-control': 'no-store',
    // An answer is data, also for a browser that opens its address.
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  }
}

/** Smaller bodies hardly compress. */
const compressMinBytes = 1024

export function apiAnswer({ status, body, replayed }: ApiAnswer, id: RequestId, asked: HeaderReader): Answer {
  const headers = apiHeaders(id)
  if (replayed) headers['x-tollgate-replayed'] = 'true'
  if (status === 204) delete headers['content-type']
  if (status === 204) return new Answer(status, headers)
  headers.vary = 'accept-encoding'
  if (body.length < compressMinBytes || !acceptsGzip(asked)) return new Answer(status, headers, body)
  headers['content-encoding'] = 'gzip'
  return new Answer(status, headers, Bun.gzipSync(body, { level: 1 }))
}

export function eventsAnswer(events: EventStream, id: RequestId): Answer {
  return new Answer(200, { ...apiHeaders(id), 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }, events)
}

/** An error while reading breaks the answer off, so that half a file does not look complete. */
export function fileAnswer(
  { type, name, pieces }: Download,
  id: RequestId,
  onError: (thrown: unknown) => void,
): Answer {
  const headers = {
    ...apiHeaders(id),
    'content-type': type,
    'content-disposition': `attachment; filename="${name}"`,
    // The idle timeout was removed from this connection, so it must not serve another request.
    connection: 'close',
    'x-content-type-options': 'nosniff',
  }
  return new Answer(200, headers, textStream(pieces, onError))
}
