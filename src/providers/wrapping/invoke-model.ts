// Messages on Bedrock's InvokeModel: the model and the wish for a stream stand in the path, version and beta flags in the
// body; a streamed reply comes in binary frames, each with one event of the dialect inside.
// https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html, 2026-11

import { readResponseStart } from '../../wire/read-body.ts'
import { type EventFrame, EventFrameReader, FrameFault } from './event-frames.ts'
import { messagesPath, readMessagesCall, withoutDialectHeaders } from './messages-call.ts'
import type { Wrapping } from './wrapping.ts'

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
    const headers = new Headers(response.headers)
    headers.set('content-type', 'text/event-stream')
    return new Response(eventsOf(response.body), { headers })
  },
}

/** Pull-based: one read of the provider for each time more is wanted. */
function eventsOf(framed: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const source = framed.getReader()
  const frames = new EventFrameReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await source.read()
          if (done) {
            if (frames.isBetweenFrames) return controller.close()
            throw new FrameFault('the stream ended inside a frame')
          }
          const text = frames.push(value).map(eventText).join('')
          if (text !== '') return controller.enqueue(new TextEncoder().encode(text))
        }
      },
      cancel: (reason) => source.cancel(reason),
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
  /** The dialect's word for what the host calls an exception, so that it is judged like the dialect's own errors. */
  readonly type: string
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
  resourcenotfoundexception: { type: 'not_found_error' },
}
const unknownError: HostError = { type: 'api_error' }

function hostErrorOf(exception: string): HostError {
  return hostErrors[exception.toLowerCase()] ?? unknownError
}

function errorText(exception: string, message: string): string {
  return `event: error\ndata: ${errorJson(exception, message)}\n\n`
}

function errorJson(exception: string, message: string): string {
  const { type } = hostErrorOf(exception)
  return JSON.stringify({ type: 'error', error: { type, message: message || exception } })
}

/** `x-amzn-errortype: ThrottlingException:http://…`, and a body that has only a message. */
function refusalOf(response: Response): Response {
  const [exception = ''] = (response.headers.get('x-amzn-errortype') ?? '').split(':')
  const { status = response.status } = hostErrorOf(exception)
  // Whoever asks knows the status at once, and decides how long to wait for the words.
  const words = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(encoder.encode(refusalText(exception, await readResponseStart(response, faultBytesMax))))
      controller.close()
    },
  })
  return new Response(words, { status, headers: response.headers })
}

function refusalText(exception: string, body: Uint8Array): string {
  const fields = jsonOf(body)
  if (fields.type === 'error') return JSON.stringify(fields)
  const { message, Message: shouted } = fields
  const said = [message, shouted].find((each) => typeof each === 'string') ?? ''
  return errorJson(exception, said as string)
}

function jsonOf(data: Uint8Array | string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(typeof data === 'string' ? data : new TextDecoder().decode(data))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
