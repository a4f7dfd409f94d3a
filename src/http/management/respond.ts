// Answers of the management API on the wire: a value, a stream of events, a file.

import { requestIdHeaders } from '../../generation/answer-headers.ts'
import type { RequestId } from '../../kernel/ids.ts'
import type { StoredAnswer } from '../../tenancy/idempotency.ts'
import { pieceStream } from './piece-stream.ts'
import type { Download } from './route.ts'

export interface Answer extends StoredAnswer {
  readonly replayed?: boolean
}

export function respond({ status, body, replayed }: Answer, id: RequestId): Response {
  const headers = answerHeaders(id)
  if (replayed) headers['x-tollgate-replayed'] = 'true'
  if (status === 204) delete headers['content-type']
  return new Response(status === 204 ? null : body, { status, headers })
}

export function respondEvents(stream: ReadableStream<Uint8Array>, id: RequestId): Response {
  const headers = { ...answerHeaders(id), 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }
  return new Response(stream, { headers })
}

/** What goes wrong on the way cuts the answer off: half a file must not look like a whole one. */
export function respondFile(
  { type, name, pieces }: Download,
  id: RequestId,
  onFault: (thrown: unknown) => void,
): Response {
  const headers = {
    ...answerHeaders(id),
    'content-type': type,
    'content-disposition': `attachment; filename="${name}"`,
    // It may be silent for as long as it takes, and then the connection has no clock left for the next request.
    connection: 'close',
    'x-content-type-options': 'nosniff',
  }
  return new Response(pieceStream(pieces, onFault), { headers })
}

/** Answers may hold a secret that is shown once: no cache may keep it. */
export function answerHeaders(id: RequestId): Record<string, string> {
  return { ...requestIdHeaders(id), 'content-type': 'application/json', 'cache-control': 'no-store' }
}
