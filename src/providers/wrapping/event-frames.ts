// AWS's binary framing of streams (application/vnd.amazon.eventstream), cut anywhere: frames out, each with its headers
// and payload. Checks what the frames themselves allow to be checked, and knows nothing of what is in them.
//
//   total length 4 │ headers length 4 │ CRC of both 4 │ headers │ payload │ CRC of all before 4     big-endian
//   header: name length 1 │ name │ type 1 │ value; type 7 is a text with its length in 2 bytes before it

export interface EventFrame {
  /** Those that are texts. */
  readonly headers: ReadonlyMap<string, string>
  readonly payload: Uint8Array
}

const preludeBytes = 12
const crcBytes = 4
/** The format's own limit is 16 MiB for a payload. */
const frameBytesMax = 17 * 1024 * 1024
/** Bytes of a value by its type; -1 = as many as the two bytes before it say. */
const valueBytes = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16]
const textType = 7

export class FrameFault extends Error {
  /** As broken connections have one: what follows cannot be read. */
  readonly code = 'BROKEN_FRAME'
}

export class EventFrameReader {
  #rest: Buffer = Buffer.alloc(0)

  /** The frames that are complete now; throws a FrameFault. */
  push(chunk: Uint8Array): EventFrame[] {
    this.#rest = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk])
    const frames: EventFrame[] = []
    while (this.#rest.length >= preludeBytes) {
      const length = this.#rest.readUInt32BE(0)
      if (length < preludeBytes + crcBytes || length > frameBytesMax)
        throw new FrameFault('a frame of no possible length')
      checkCrc(this.#rest, 8)
      if (this.#rest.length < length) break
      frames.push(readFrame(this.#rest.subarray(0, length)))
      this.#rest = this.#rest.subarray(length)
    }
    return frames
  }

  /** Whether the stream may end here. */
  get isBetweenFrames(): boolean {
    return this.#rest.length === 0
  }
}

function readFrame(frame: Buffer): EventFrame {
  const headersEnd = preludeBytes + frame.readUInt32BE(4)
  const payloadEnd = frame.length - crcBytes
  if (headersEnd > payloadEnd) throw new FrameFault('headers longer than their frame')
  checkCrc(frame, payloadEnd)
  return {
    headers: readHeaders(frame.subarray(preludeBytes, headersEnd)),
    payload: frame.subarray(headersEnd, payloadEnd),
  }
}

function checkCrc(bytes: Buffer, end: number): void {
  if (Bun.hash.crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw new FrameFault('a frame was damaged')
}

function readHeaders(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  const take = (count: number): Buffer => {
    if (at + count > bytes.length) throw new FrameFault('a header longer than its frame')
    at += count
    return bytes.subarray(at - count, at)
  }
  while (at < bytes.length) {
    const name = take(take(1).readUInt8()).toString()
    const type = take(1).readUInt8()
    const fixed = valueBytes[type]
    if (fixed === undefined) throw new FrameFault('a header of unknown type')
    const value = take(fixed === -1 ? take(2).readUInt16BE() : fixed)
    if (type === textType) headers.set(name, value.toString())
  }
  return headers
}
