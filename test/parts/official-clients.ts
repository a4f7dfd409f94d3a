// The official client libraries, current majors and those before, pointed at a server of ours; and what each makes of
// an error. Nothing is read from the environment: a developer's own keys stay out of it.

import Anthropic from '@anthropic-ai/sdk'
import AnthropicBefore from '@anthropic-ai/sdk-0'
import OpenAI from 'openai'
import OpenAIBefore from 'openai-6'

export const chatClientNames = ['openai 7', 'openai 6'] as const
export const messageClientNames = ['anthropic 1', 'anthropic 0'] as const
/** OpenAI's client on its other API. */
export const responseClientNames = ['openai 7 responses', 'openai 6 responses'] as const
export type ChatClientName = (typeof chatClientNames)[number]
export type MessageClientName = (typeof messageClientNames)[number]
export type ClientName = ChatClientName | MessageClientName
export type ResponseClientName = (typeof responseClientNames)[number]

export interface ClientSettings {
  /** As a user would set it: with `/v1` for chat clients, without for message clients. */
  readonly baseURL: string
  readonly apiKey: string
  /** None unless a test is about them. */
  readonly maxRetries?: number
  readonly defaultHeaders?: Readonly<Record<string, string>>
  readonly fetch?: (input: string | URL | Request, init?: RequestInit) => Promise<Response>
}

export function createChatClient(name: ChatClientName, settings: ClientSettings): OpenAI {
  const options = { maxRetries: 0, organization: null, project: null, ...settings }
  // The major before has the same methods; its types differ by name only.
  return name === 'openai 7' ? new OpenAI(options) : (new OpenAIBefore(options) as unknown as OpenAI)
}

export function createMessageClient(name: MessageClientName, settings: ClientSettings): Anthropic {
  const options = { maxRetries: 0, authToken: null, ...settings }
  return name === 'anthropic 1' ? new Anthropic(options) : (new AnthropicBefore(options) as unknown as Anthropic)
}

export function createResponseClient(name: ResponseClientName, settings: ClientSettings): OpenAI {
  return createChatClient(name === 'openai 7 responses' ? 'openai 7' : 'openai 6', settings)
}

export function isResponseClient(name: ClientName | ResponseClientName): name is ResponseClientName {
  return responseClientNames.some((known) => known === name)
}

export function isChatClient(name: ClientName): name is ChatClientName {
  return name.startsWith('openai')
}

/** The exception of each family by status; what is not listed is the family's plain APIError. */
const exceptionsOfAll: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  404: 'NotFoundError',
  429: 'RateLimitError',
  500: 'InternalServerError',
  503: 'InternalServerError',
}
const exceptionsOfNewest: Readonly<Record<number, string>> = {
  ...exceptionsOfAll,
  408: 'RequestTimeoutError',
  413: 'ContentTooLargeError',
  503: 'ServiceUnavailableError',
}

/** undefined: an error inside a stream, for which no client has a separate class. */
export function expectedException(client: ClientName, status: number | undefined): string {
  const table = client === 'anthropic 1' ? exceptionsOfNewest : exceptionsOfAll
  return table[status ?? 0] ?? 'APIError'
}

/** The fields that a program can read from a client's exception. */
export interface ReadError {
  readonly exception: string
  readonly status: number | undefined
  readonly code: unknown
  readonly type: unknown
  /** The text of the body's `error.message`. */
  readonly text: unknown
  readonly param: unknown
  readonly requestId: unknown
  /** `request_id` of the message shape's body. */
  readonly bodyRequestId: unknown
  readonly headers: Headers | undefined
}

/** Waits for a call to fail and reads its exception the way each family documents; a call that works is the failure. */
export async function readError(client: ClientName, call: PromiseLike<unknown>): Promise<ReadError> {
  const error = await call.then(
    (value) => {
      throw new Error(`expected an exception, got ${JSON.stringify(value)}`)
    },
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof Error)) throw new Error(`not an exception: ${String(error)}`)
  const fields = error as Error & Record<string, unknown>
  // Chat clients keep the inner object as `.error`, message clients the whole body.
  const body = fields.error as Record<string, unknown> | undefined
  const inner = isChatClient(client) ? body : (body?.error as Record<string, unknown> | undefined)
  return {
    exception: error.constructor.name,
    status: fields.status as number | undefined,
    code: isChatClient(client) ? fields.code : inner?.code,
    type: fields.type,
    text: inner?.message,
    param: fields.param,
    requestId: fields.requestID,
    bodyRequestId: isChatClient(client) ? undefined : body?.request_id,
    headers: fields.headers as Headers | undefined,
  }
}
