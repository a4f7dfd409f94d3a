// Messages on Bedrock's InvokeModel: the model and whether to stream are in the path, version and beta flags in the
// body; a streamed reply comes in binary frames, each with one event of the dialect inside.
// https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html, 2026-11

import { parseRecord } from '../../dialects/canonical/json.ts'
import { type MessageBody, readResponseStart } from '../../wire/read-body.ts'
import type { UpstreamResponse } from '../provider.ts'
import { messagesPath, readMessagesCall, type Wrapping, withoutDialectHeaders } from './messages-call.ts'

const version = 'bedrock-2023-05-31'
const framedType = 'application/vnd.amazon.eventstream'
const faultBytesMax = 64 * 1024
const encoder = new TextEncoder()

export const invokeModel: Wrapping = {
  wrap({ path, headers, body }, endpoint) {
    if (path !== messagesPath) return undefined
    const call = readMessagesCall(body, headers, endpoint)
    const verb = call.isStreamed ? 'invoke-with-response-stream' : 'invoke'
    const flags = call.betas.length > 0 && { anthropic_beta: call.betas }
    const first = { anthropic_version: version, ...flags, ...call.stubTools() }
    return {
      path: `/model/${encodeURIComponent(call.model)}/${verb}`,
      headers: { ...withoutDialectHeaders(headers), accept: call.isStreamed ? framedType : 'application/json' },
      body: call.bodyWith(first, ['model', 'stream']),
      warnings: call.warnings,
    }
  },
  unwrap(response) {
    if (response.status !== 200) return refusalOf(response)
    const type = response.headers.get('content-type') ?? ''
    if (!type.startsWith(framedType) || !response.body) return response
    const { headers } = response
    return {
      status: 200,
      headers: { get: (name) => (name === 'content-type' ? 'text/event-stream' : headers.get(name)) },
      ...bodyOf(eventsOf(response.body)),
    }
  },
}

function bodyOf(stream: ReadableStream<Uint8Array>): Pick<UpstreamResponse, 'body' | 'bytes'> {
  return { body: stream, bytes: () => new Response(stream).bytes() }
}

/** Pull-based: one read of the provider for each time more is wanted. */
function eventsOf(framed: MessageBody): ReadableStream<Uint8Array> {
  const source = framed.getReader()
  const frames = new EventFrameReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await source.read()
          if (done || !value) {
            if (frames.isBetweenFrames) return controller.close()
            throw new FrameFault('the stream ended inside a frame')
          }
          const text = frames.push(value).map(eventText).join('')
          if (text !== '') return controller.enqueue(encoder.encode(text))
        }
      },
      cancel: () => source.cancel(),
    },
    { highWaterMark: 0 },
  )
}

/** One record of the dialect's own stream; '' for a frame that has none. */
function eventText({ headers, payload }: EventFrame): string {
  const kind = headers.get(':message-type')
  if (kind === 'exception') {
    const { message } = jsonOf(payload)
    return errorText(headers.get(':exception-type') ?? '', typeof message === 'string' ? message : '')
  }
  if (kind === 'error') return errorText(headers.get(':error-code') ?? '', headers.get(':error-message') ?? '')
  const { bytes } = jsonOf(payload)
  // The host wraps the event once more; some that stand in for it do not.
  const event = typeof bytes === 'string' ? Buffer.from(bytes, 'base64').toString() : Buffer.from(payload).toString()
  const { type } = jsonOf(event)
  return typeof type === 'string' ? `event: ${type}\ndata: ${event}\n\n` : ''
}

interface HostError {
  /** The dialect's word for what the host calls an exception, so that it is classified like the dialect's own errors. */
  readonly type: string
  /** The dialect's error has none; it is read like those of other dialects. */
  readonly code?: string
  /** In place of the host's, where that would blame the caller; absent = the host's. */
  readonly status?: number
}

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html, 2026-11 */
const hostErrors: Readonly<Record<string, HostError>> = {
  throttlingexception: { type: 'rate_limit_error' },
  // A 400 of the host's.
  servicequotaexceededexception: { type: 'rate_limit_error', status: 429 },
  serviceunavailableexception: { type: 'overloaded_error' },
  modelnotreadyexception: { type: 'overloaded_error' },
  modeltimeoutexception: { type: 'timeout_error' },
  // 424s of the host's: it is the model that failed.
  modelerrorexception: { type: 'api_error', status: 500 },
  modelstreamerrorexception: { type: 'api_error', status: 500 },
  validationexception: { type: 'invalid_request_error' },
  accessdeniedexception: { type: 'permission_error' },
  unrecognizedclientexception: { type: 'authentication_error' },
  expiredtokenexception: { type: 'authentication_error' },
  // The only resource that a call names is the model, in its path.
  resourcenotfoundexception: { type: 'not_found_error', code: 'model_not_found' },
}
const unknownError: HostError = { type: 'api_error' }

function hostErrorOf(exception: string): HostError {
  return hostErrors[exception.toLowerCase()] ?? unknownError
}

function errorText(exception: string, message: string): string {
  return `event: error\ndata: ${errorJson(exception, message)}\n\n`
}

function errorJson(exception: string, message: string): string {
  const { type, code } = hostErrorOf(exception)
  return JSON.stringify({ type: 'error', error: { type, code, message: message || exception } })
}

/** `x-amzn-errortype: ThrottlingException:http://…`, or `__type` in the body; otherwise the body has only a message. */
function refusalOf(response: UpstreamResponse): UpstreamResponse {
  const [exception = ''] = (response.headers.get('x-amzn-errortype') ?? '').split(':')
  const { status = response.status } = hostErrorOf(exception)
  // The caller gets the status at once and decides how long to wait for the body.
  const words = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const body = await readResponseStart(response, faultBytesMax)
      controller.enqueue(encoder.encode(refusalText(exception, body, response.status)))
      controller.close()
    },
  })
  return { status, headers: response.headers, ...bodyOf(words) }
}

/** A 404 without a known exception comes from a wrong address: it gets no type, which would make it the API's own words. */
function refusalText(header: string, body: Uint8Array, status: number): string {
  const fields = jsonOf(body)
  if (fields.type === 'error') return JSON.stringify(fields)
  const { message, Message: shouted, __type: written } = fields
  const exception = header || (typeof written === 'string' ? written.slice(written.lastIndexOf('#') + 1) : '')
  const said = [message, shouted].find((each) => typeof each === 'string') ?? ''
  if (status === 404 && hostErrorOf(exception) === unknownError) return `${said || exception}`
  return errorJson(exception, said as string)
}

function jsonOf(data: Uint8Array | string): Readonly<Record<string, unknown>> {
  return parseRecord(typeof data === 'string' ? data : new TextDecoder().decode(data)) ?? {}
}

// AWS's binary framing of streams (application/vnd.amazon.eventstream): chunks cut anywhere in, frames out.
//
//   total length 4 │ headers length 4 │ CRC of both 4 │ headers │ payload │ CRC of all before 4     big-endian
//   header: name length 1 │ name │ type 1 │ value; type 7 is a text with its length in 2 bytes before it

export interface EventFrame {
  /** Only the headers with a string value. */
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
