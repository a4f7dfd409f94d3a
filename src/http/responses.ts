// Responses outside a generation: failures in the format of the caller's client, JSON, event streams and files.

import type { Dialect } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import { createId, type RequestId } from '../kernel/ids.ts'
import { type AnswerHeaders, failureResponse, requestIdHeaders } from '../pipeline/answer.ts'
import type { StoredAnswer } from '../tenancy/idempotency.ts'
import type { Download } from './management/route.ts'

export function refuse(surface: Dialect, failure: Failure, id: RequestId = createId('req')): Response {
  return failureResponse(surface, failure, requestIdHeaders(id), id)
}

export function wrongMethod(method: string, allow: string): Failure {
  return new Failure('METHOD_NOT_ALLOWED', `${method} is not served here; use ${allow}.`, { allow })
}

export function jsonResponse(value: unknown, headers: AnswerHeaders = {}): Response {
  return new Response(JSON.stringify(value), {
    headers: { ...requestIdHeaders(createId('req')), 'content-type': 'application/json', ...headers },
  })
}

export interface ApiAnswer extends StoredAnswer {
  readonly replayed?: boolean
}

/** Answers may contain a secret that is shown once, so no cache may keep them. */
export function apiHeaders(id: RequestId): Record<string, string> {
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

const acceptsGzip = (accepted: string | null) => /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:\s*,|\s*$))/.test(accepted ?? '')

export function respond({ status, body, replayed }: ApiAnswer, id: RequestId, accepted: string | null): Response {
  const headers = apiHeaders(id)
  if (replayed) headers['x-tollgate-replayed'] = 'true'
  if (status === 204) delete headers['content-type']
  if (status === 204) return new Response(null, { status, headers })
  headers.vary = 'accept-encoding'
  if (body.length < compressMinBytes || !acceptsGzip(accepted)) return new Response(body, { status, headers })
  headers['content-encoding'] = 'gzip'
  return new Response(Bun.gzipSync(new TextEncoder().encode(body), { level: 1 }), { status, headers })
}

export function respondEvents(stream: ReadableStream<Uint8Array>, id: RequestId): Response {
  const headers = { ...apiHeaders(id), 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }
  return new Response(stream, { headers })
}

/** An error while reading breaks the response off, so that half a file does not look complete. */
export function respondFile(
  { type, name, pieces }: Download,
  id: RequestId,
  onError: (thrown: unknown) => void,
): Response {
  const headers = {
    ...apiHeaders(id),
    'content-type': type,
    'content-disposition': `attachment; filename="${name}"`,
    // The idle timeout was removed from this connection, so it must not serve another request.
    connection: 'close',
    'x-content-type-options': 'nosniff',
  }
  return new Response(textStream(pieces, onError), { headers })
}

const encoder = new TextEncoder()

/**
 * Pieces of text as a stream of bytes. The next piece is read when the last one was taken: a slow reader holds up only
 * itself, and nothing more is read once it has disconnected.
 */
export function textStream(
  pieces: AsyncIterable<string>,
  onError: (thrown: unknown) => void,
): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await iterator.next()
        if (done) controller.close()
        else controller.enqueue(encoder.encode(value))
      } catch (thrown) {
        onError(thrown)
        controller.error(thrown)
      }
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}
