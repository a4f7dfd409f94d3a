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

// How much of unfinished bodies may be in memory together. The memory watch samples the process only now and then; a
// hundred clients that send a large body at once would fill it between two samples.

export type BodyRoom = ReturnType<typeof createBodyRoom>

export function createBodyRoom(bytesMax: number) {
  let taken = 0
  return {
    /** Takes room for more bytes of a body that already `has` some; false if there is none. */
    take(bytes: number, has: number): boolean {
      // A single body is always admitted: bodies have their own limit.
      if (taken > has && taken + bytes > bytesMax) return false
      taken += bytes
      return true
    },
    giveBack(bytes: number): void {
      taken -= bytes
    },
  }
}

export interface BodyLimits {
  readonly bytesMax: number
  /** Shared by all bodies that are being read; absent = there is always room. */
  readonly room?: BodyRoom
}

export class BodyFault {
  constructor(readonly reason: 'too-large' | 'aborted' | 'no-room') {}
}

/** Up to this a body takes no room: it comes in a piece or two, and costs no more than its connection does anyway. */
const smallBytes = 64 * 1024

/** Never rejects: a client that goes away in the middle is an expected outcome. */
export function readBody(
  request: Message & { readonly bodyUsed: boolean },
  limits: BodyLimits,
): Uint8Array<ArrayBuffer> | BodyFault | Promise<Uint8Array<ArrayBuffer> | BodyFault> {
  assert(!request.bodyUsed, 'a body is read once')
  const whole = request.takeWhole?.()
  if (whole) return whole.length > limits.bytesMax ? tooLarge : (whole as Uint8Array<ArrayBuffer>)
  const announced = announcedLength(request.headers)
  if (announced !== undefined && announced > limits.bytesMax) return Promise.resolve(tooLarge)
  const { bytesMax, room } = limits
  if (announced !== undefined && announced <= smallBytes) {
    return request.bytes().then(
      (bytes) => (bytes.length > bytesMax ? tooLarge : (bytes as Uint8Array<ArrayBuffer>)),
      () => aborted,
    )
  }
  const reading = room ? readInRoom(request, announced, bytesMax, room) : readWithin(request, announced, bytesMax)
  return reading.then(
    (body) => (body === 'too-large' ? tooLarge : body === 'no-room' ? noRoom : body),
    () => aborted,
  )
}

const tooLarge = new BodyFault('too-large')
const aborted = new BodyFault('aborted')
const noRoom = new BodyFault('no-room')

/**
 * A large body takes room as it comes: one that is announced and then sent drop by drop must not keep out the others. What
 * is read whole is not seen before it has all arrived, and takes room for all of it at once.
 */
function readInRoom(
  request: Message,
  announced: number | undefined,
  bytesMax: number,
  room: BodyRoom,
): Promise<Uint8Array<ArrayBuffer> | 'too-large' | 'no-room'> {
  if (announced !== undefined && announced <= readWholeMax) {
    if (!room.take(announced, 0)) return Promise.resolve('no-room')
    return readWithin(request, announced, bytesMax).finally(() => room.giveBack(announced))
  }
  if (request.body === null) return Promise.resolve(new Uint8Array(0))
  let taken = 0
  const refusal = (length: number) => {
    if (length > bytesMax) return 'too-large'
    if (length <= smallBytes) return undefined
    if (!room.take(length - taken, taken)) return 'no-room'
    taken = length
    return undefined
  }
  return readUnless(refusal, request.body, announced).finally(() => room.giveBack(taken))
}

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
  announced?: number,
): Promise<Uint8Array<ArrayBuffer> | Why> {
  const reader = body.getReader()
  const collected = new ByteBuffer(announced)
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
