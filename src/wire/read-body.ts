// Complete bodies with a limit: of requests to us, and of answers from providers. A peer never makes us hold more than the
// limit, whatever length it announces.

import { assert } from '../kernel/failure.ts'
import { ByteBuffer, space } from './bytes.ts'
import type { HeaderReader } from './http-message.ts'

/** A message whose body is read once: common to `Request`, `Response` and the responses of the gateway's HTTP client. */
export interface Message {
  readonly headers: HeaderReader
  readonly body: MessageBody | null
  bytes(): Promise<Uint8Array>
  /** The whole body, if all of it has arrived; the caller must not read it in another way then. */
  takeWhole?(): Uint8Array | undefined
}

export interface MessageBody {
  getReader(): BodyReader
  cancel(): Promise<void>
}

/**
 * Gets the pieces that arrive while a read waits, at once and without a promise. It returns undefined if the read is to wait
 * on, and otherwise what the read returns.
 */
export type TakePiece = (piece: Uint8Array) => Uint8Array | undefined

export interface BodyReader {
  /** Not every body calls `take`; pieces that came before the read are returned. */
  read(take?: TakePiece): Promise<BodyPiece>
  cancel(): Promise<void>
}

export interface BodyPiece {
  readonly done: boolean
  readonly value?: Uint8Array | undefined
}

/** Why a body was not read. The server gives up those that come too slowly, and those for which it has no room. */
export class BodyFault {
  constructor(readonly reason: 'too-large' | 'aborted' | 'too-slow' | 'no-room') {}
}

/** Never rejects: a client that goes away in the middle is an expected outcome. */
export function readBody(
  request: Message & { readonly bodyUsed: boolean },
  bytesMax: number,
): Uint8Array<ArrayBuffer> | BodyFault | Promise<Uint8Array<ArrayBuffer> | BodyFault> {
  assert(!request.bodyUsed, 'a body is read once')
  const whole = request.takeWhole?.()
  if (whole) return whole.length > bytesMax ? tooLarge : (whole as Uint8Array<ArrayBuffer>)
  const announced = announcedLength(request.headers)
  if (announced !== undefined && announced > bytesMax) return tooLarge
  return readWithin(request, announced, bytesMax).then(
    (body) => (body === 'too-large' ? tooLarge : body),
    (error) => (error instanceof BodyFault ? error : aborted),
  )
}

const tooLarge = new BodyFault('too-large')
const aborted = new BodyFault('aborted')

/** Above this a body is read in pieces though its length is known, so that the caller can see that it arrives. */
const readWholeMax = 1024 * 1024

/**
 * Rejects where the connection does. Over the limit the rest is cancelled, which closes the connection. `onProgress` is
 * called when it is sure that the answer has begun, and again with each piece: blank space may be there to pass the time.
 */
export function readResponseBody(
  response: Message,
  bytesMax: number,
  onProgress?: () => void,
): Promise<Uint8Array<ArrayBuffer> | 'too-large'> {
  const { headers } = response
  // A compressed answer is unpacked on the way in, and its Content-Length says nothing about what comes out.
  const announced = isEncoded(headers) ? undefined : announcedLength(headers)
  if (announced !== undefined && announced > bytesMax) {
    cancel(response.body)
    return Promise.resolve('too-large')
  }
  if (!onProgress) return readWithin(response, announced, bytesMax)
  // A provider that announces a length has generated the whole answer.
  if (announced !== undefined) onProgress()
  if (announced !== undefined && announced <= readWholeMax) return readWithin(response, announced, bytesMax)
  // Not earlier: reading `body` makes a stream of what can be taken whole.
  const { body } = response
  return body === null ? Promise.resolve(new Uint8Array(0)) : readCapped(body, bytesMax, onProgress)
}

/** Some name the encoding that is none. */
export function isEncoded(headers: HeaderReader): boolean {
  const encoding = headers.get('content-encoding')
  return encoding !== null && !/^(identity|none)?$/i.test(encoding.trim())
}

/** The first bytes of an answer, and no more of it. Never rejects: where the connection breaks, what came is all. */
export async function readResponseStart(response: Message, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  if (response.body === null) return new Uint8Array(0)
  const reader = response.body.getReader()
  const collected = new ByteBuffer()
  try {
    while (collected.length < bytesMax) {
      const { done, value } = await reader.read()
      if (done || !value) return collected.take()
      collected.append(value.subarray(0, bytesMax - collected.length))
    }
    cancel(reader)
  } catch {
    // Cut off, by its sender or by the caller.
  }
  return collected.take()
}

function readWithin(
  message: Message,
  announced: number | undefined,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | 'too-large'> {
  if (announced === undefined) {
    return message.body === null ? Promise.resolve(new Uint8Array(0)) : readCapped(message.body, bytesMax)
  }
  // HTTP ends the body at the length it announced, so this read is bounded. A message made in this process is
  // bound by nothing, and therefore measured.
  return message.bytes().then((bytes) => (bytes.length > bytesMax ? 'too-large' : (bytes as Uint8Array<ArrayBuffer>)))
}

function readCapped(
  body: MessageBody,
  bytesMax: number,
  onProgress?: () => void,
): Promise<Uint8Array<ArrayBuffer> | 'too-large'> {
  let hasBegun = false
  const refusal = (length: number, piece: Uint8Array) => {
    if (length > bytesMax) return 'too-large'
    hasBegun ||= onProgress !== undefined && piece.some((byte) => byte > space)
    if (hasBegun) onProgress?.()
    return undefined
  }
  return readUnless(refusal, body)
}

/** Calls `refusal` before each piece is kept, with the length until its end; cancels the rest of what it refuses. */
async function readUnless<Why extends string>(
  refusal: (length: number, piece: Uint8Array) => Why | undefined,
  body: MessageBody,
): Promise<Uint8Array<ArrayBuffer> | Why> {
  const reader = body.getReader()
  const collected = new ByteBuffer()
  for (;;) {
    const { done, value } = await reader.read()
    if (done || !value) return collected.take()
    const why = refusal(collected.length + value.length, value)
    if (why !== undefined) {
      cancel(reader)
      return why
    }
    collected.append(value)
  }
}

/** Not awaited: a peer that does not react must not hold up the refusal. */
function cancel(source: { cancel(): Promise<void> } | null): void {
  source?.cancel().catch(() => {})
}

/** undefined where the header is missing, or is not one plain number (`3, 3`) and so promises nothing. */
function announcedLength(headers: HeaderReader): number | undefined {
  const text = headers.get('content-length')
  return text !== null && /^[0-9]+$/.test(text) ? Number(text) : undefined
}
