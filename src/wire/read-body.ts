// Whole bodies with a limit: of requests to us, and of answers from providers. A peer never makes us hold more than the
// limit, whatever length it announces.

import { assert } from '../kernel/assert.ts'
import { ByteBuffer } from './byte-buffer.ts'

export interface BodyLimits {
  readonly bytesMax: number
}

export class BodyFault {
  constructor(readonly reason: 'too-large' | 'aborted') {}
}

/** Never rejects: a client that goes away in the middle is an expected outcome. */
export function readBody(request: Request, limits: BodyLimits): Promise<Uint8Array<ArrayBuffer> | BodyFault> {
  assert(!request.bodyUsed, 'a body is read once')
  const announced = announcedLength(request.headers)
  if (announced !== undefined && announced > limits.bytesMax) return Promise.resolve(tooLarge)
  return readWithin(request, announced, limits.bytesMax).then(
    (body) => (body === 'too-large' ? tooLarge : body),
    () => aborted,
  )
}

const tooLarge = new BodyFault('too-large')
const aborted = new BodyFault('aborted')

/** Rejects where the connection does. Over the limit the rest is cancelled, which closes the connection. */
export function readResponseBody(response: Response, bytesMax: number): Promise<Uint8Array<ArrayBuffer> | 'too-large'> {
  const { headers } = response
  // A compressed answer is unpacked on the way in, and its Content-Length says nothing about what comes out.
  const announced = headers.has('content-encoding') ? undefined : announcedLength(headers)
  if (announced !== undefined && announced > bytesMax) {
    cancel(response.body)
    return Promise.resolve('too-large')
  }
  return readWithin(response, announced, bytesMax)
}

/** The first bytes of an answer, and no more of it. Rejects where the connection does. */
export async function readResponseStart(response: Response, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  if (response.body === null) return new Uint8Array(0)
  const reader = response.body.getReader()
  const collected = new ByteBuffer()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return collected.take()
    collected.append(value.subarray(0, bytesMax - collected.length))
    if (collected.length < bytesMax) continue
    cancel(reader)
    return collected.take()
  }
}

function readWithin(
  message: Request | Response,
  announced: number | undefined,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | 'too-large'> {
  if (announced === undefined) {
    return message.body === null ? Promise.resolve(new Uint8Array(0)) : readCapped(message.body, bytesMax)
  }
  // HTTP ends the body at the length it announced, so the native read is bounded. A message made in this process is
  // bound by nothing, and therefore measured.
  return message.arrayBuffer().then((buffer) => (buffer.byteLength > bytesMax ? 'too-large' : new Uint8Array(buffer)))
}

async function readCapped(
  body: ReadableStream<Uint8Array>,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | 'too-large'> {
  const reader = body.getReader()
  const collected = new ByteBuffer()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return collected.take()
    if (collected.length + value.length > bytesMax) {
      cancel(reader)
      return 'too-large'
    }
    collected.append(value)
  }
}

/** Not awaited: a peer that does not react must not hold up the refusal. */
function cancel(source: { cancel(): Promise<void> } | null): void {
  source?.cancel().catch(() => {})
}

/** undefined where the header is missing, or is not one plain number (`3, 3`) and so promises nothing. */
function announcedLength(headers: Headers): number | undefined {
  const text = headers.get('content-length')
  return text !== null && /^[0-9]+$/.test(text) ? Number(text) : undefined
}
