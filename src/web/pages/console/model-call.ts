// A playground request. It uses the public API with a real key, so limits and balance apply; the console's session is not
// sent along.

import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, apiErrorOf } from '../api.ts'

export type Surface = keyof typeof surfaces

export interface PlaygroundRequest {
  readonly surface: Surface
  readonly key: string
  readonly model: string
  /** The last one is the user's. */
  readonly messages: readonly ChatMessage[]
  /** Empty = none. */
  readonly system?: string
  readonly maxTokens: number
  /** Absent = the provider's default, as is `topP`. */
  readonly temperature?: number | undefined
  readonly topP?: number | undefined
  /** Absent = the provider's default. */
  readonly effort?: string | undefined
  /** Absent = no tool. */
  readonly tool?: Tool
  /** A JSON Schema that the answer follows; absent = text. */
  readonly schema?: Schema | undefined
}

export type Schema = Readonly<Record<string, unknown>>

export interface ChatMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
  /** Data URLs. */
  readonly images?: readonly string[] | undefined
}

/** A function that the model may call; the playground shows the call and does not run it. */
export interface Tool {
  readonly name: string
  readonly description: string
  /** A JSON Schema. */
  readonly parameters: Schema
}

export interface ToolCall {
  readonly name: string
  /** JSON, as far as it has arrived. */
  readonly arguments: string
}

/** The pictures that all providers take. */
export const imageTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

export interface PlaygroundAnswer {
  /** An error inside the stream; empty = none. */
  readonly problem: string
}

/** The name, the path, header options of curl, and headers of a browser's request. */
export const surfaces = {
  chat: {
    label: 'OpenAI Chat Completions',
    path: '/v1/chat/completions',
    auth: '-H "Authorization: Bearer $TOLLGATE_KEY"',
    headers: (key: string) => ({ authorization: `Bearer ${key}` }),
  },
  responses: {
    label: 'OpenAI Responses',
    path: '/v1/responses',
    auth: '-H "Authorization: Bearer $TOLLGATE_KEY"',
    headers: (key: string) => ({ authorization: `Bearer ${key}` }),
  },
  messages: {
    label: 'Anthropic Messages',
    path: '/v1/messages',
    auth: '-H "x-api-key: $TOLLGATE_KEY" -H "anthropic-version: 2023-06-01"',
    headers: (key: string) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
  },
} as const

/** The parts of a message with images, the images first. */
const imageParts: Readonly<Record<Surface, (text: string, images: readonly string[]) => readonly object[]>> = {
  chat: (text, images) => [...images.map((url) => ({ type: 'image_url', image_url: { url } })), { type: 'text', text }],
  responses: (text, images) => [
    ...images.map((image_url) => ({ type: 'input_image', image_url })),
    { type: 'input_text', text },
  ],
  messages: (text, images) => [
    ...images.map((url) => {
      const [type = '', data = ''] = url.slice('data:'.length).split(';base64,')
      return { type: 'image', source: { type: 'base64', media_type: type, data } }
    }),
    { type: 'text', text },
  ],
}

/** Two of the APIs want a name for it. */
const schemaName = 'answer'

export function bodyOf(request: PlaygroundRequest): object {
  const { surface, model, system = '', maxTokens, temperature, topP, effort, tool, schema } = request
  const messages = request.messages.map(({ role, content, images = [] }) => ({
    role,
    content: images.length === 0 ? content : imageParts[surface](content, images),
  }))
  const sampling = { ...(temperature !== undefined && { temperature }), ...(topP !== undefined && { top_p: topP }) }
  if (surface === 'messages') {
    const tools = tool && [{ name: tool.name, description: tool.description, input_schema: tool.parameters }]
    const instructions = system !== '' && { system }
    return {
      model,
      max_tokens: maxTokens,
      ...sampling,
      stream: true,
      ...instructions,
      messages,
      ...(effort && { thinking: { type: 'adaptive' } }),
      ...((effort || schema) && {
        output_config: { ...(effort && { effort }), ...(schema && { format: { type: 'json_schema', schema } }) },
      }),
      ...(tools && { tools }),
    }
  }
  if (surface === 'responses') {
    // Unlike the other APIs, this one takes schemas as strict unless told otherwise.
    const tools = tool && [{ type: 'function', ...tool, strict: false }]
    const instructions = system !== '' && { instructions: system }
    return {
      model,
      max_output_tokens: maxTokens,
      ...sampling,
      stream: true,
      ...instructions,
      input: messages.length === 1 && typeof messages[0]?.content === 'string' ? messages[0].content : messages,
      ...(effort && { reasoning: { effort, summary: 'auto' } }),
      ...(schema && { text: { format: { type: 'json_schema', name: schemaName, schema, strict: false } } }),
      ...(tools && { tools }),
    }
  }
  const tools = tool && [{ type: 'function', function: tool }]
  const options = {
    ...sampling,
    ...(effort && { reasoning_effort: effort }),
    ...(schema && { response_format: { type: 'json_schema', json_schema: { name: schemaName, schema } } }),
    stream: true,
    stream_options: { include_usage: true },
  }
  const all = [...(system === '' ? [] : [{ role: 'system', content: system }]), ...messages]
  return { model, max_completion_tokens: maxTokens, ...options, messages: all, ...(tools && { tools }) }
}

/** An answer as far as it has arrived. */
export interface CallState {
  /** Id of the model that was called; empty = none yet. */
  readonly model: string
  /** Empty until the response has begun. */
  readonly requestId: string
  readonly text: string
  /** As far as the provider shows it. */
  readonly reasoning: string
  readonly toolCalls: readonly ToolCall[]
  /** undefined = running, or never started. */
  readonly outcome?: PlaygroundAnswer | ApiError
  readonly isRunning: boolean
}

export interface ModelCall extends CallState {
  send(request: PlaygroundRequest): void
  stop(): void
  /** Forgets the answer. */
  clear(): void
}

export const idleCall: CallState = {
  model: '',
  requestId: '',
  text: '',
  reasoning: '',
  toolCalls: [],
  isRunning: false,
}

/** One request at a time and its answer as it streams in. */
export function useModelCall(): ModelCall {
  const [answer, setAnswer] = useState(idleCall)
  const running = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const run = async (request: PlaygroundRequest) => {
    const abort = new AbortController()
    running.current = abort
    setAnswer({ ...idleCall, model: request.model, isRunning: true })
    const outcome = await callModel(request, abort.signal, (part) =>
      setAnswer((before) => ({ ...before, ...part })),
    ).catch(() => {
      const cause = abort.signal.aborted ? 'You stopped the request.' : 'The connection was lost.'
      return new ApiError(0, `${cause} See Requests for what was charged.`)
    })
    setAnswer((before) => ({ ...before, outcome, isRunning: false }))
  }
  return {
    ...answer,
    send: (request) => void run(request),
    stop: () => running.current?.abort(),
    clear: () => setAnswer(idleCall),
  }
}

/** Throws when the connection is lost or aborted. */
async function callModel(
  request: PlaygroundRequest,
  signal: AbortSignal,
  onProgress: (answer: Partial<CallState>) => void,
): Promise<PlaygroundAnswer | ApiError> {
  const { path, headers } = surfaces[request.surface]
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers(request.key) },
    body: JSON.stringify(bodyOf(request)),
    credentials: 'omit',
    signal,
  })
  onProgress({ requestId: response.headers.get('x-request-id') ?? '' })
  if (!response.ok || !response.body) return await apiErrorOf(response)
  let [text, reasoning, problem] = ['', '', '']
  const calls = new Map<number, ToolCall>()
  for await (const data of eventData(response.body)) {
    const event = JSON.parse(data) as StreamEvent
    text += textOf(event)
    reasoning += reasoningOf(event)
    addToolCalls(calls, event)
    problem = event.error?.message ?? event.response?.error?.message ?? problem
    onProgress({ text, reasoning, toolCalls: [...calls.values()] })
  }
  return { problem }
}

/** The fields used of the surfaces' events. */
interface StreamEvent {
  readonly type?: string
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: string | null
      readonly reasoning_content?: string | null
      readonly tool_calls?: readonly {
        readonly index: number
        readonly function?: { readonly name?: string; readonly arguments?: string }
      }[]
    }
  }[]
  readonly index?: number
  readonly content_block?: { readonly type: string; readonly name?: string }
  /** A text in Responses. */
  readonly delta?: string | { readonly text?: string; readonly thinking?: string; readonly partial_json?: string }
  readonly error?: { readonly message?: string }
  readonly output_index?: number
  readonly item?: { readonly type: string; readonly name?: string }
  readonly response?: { readonly error?: { readonly message?: string } | null }
}

function textOf({ type, choices, delta }: StreamEvent): string {
  if (typeof delta !== 'string') return choices?.[0]?.delta?.content ?? delta?.text ?? ''
  return type === 'response.output_text.delta' || type === 'response.refusal.delta' ? delta : ''
}

function reasoningOf({ type, choices, delta }: StreamEvent): string {
  if (typeof delta !== 'string') return choices?.[0]?.delta?.reasoning_content ?? delta?.thinking ?? ''
  return type === 'response.reasoning_summary_text.delta' || type === 'response.reasoning_text.delta' ? delta : ''
}

function addToolCalls(calls: Map<number, ToolCall>, event: StreamEvent) {
  const { type, choices, index = 0, content_block: block, delta, item, output_index: place = 0 } = event
  const add = (at: number, name = '', text = '') => {
    const before = calls.get(at) ?? { name: '', arguments: '' }
    calls.set(at, { name: before.name + name, arguments: before.arguments + text })
  }
  for (const { index: at, function: part } of choices?.[0]?.delta?.tool_calls ?? [])
    add(at, part?.name, part?.arguments)
  if (block?.type === 'tool_use') add(index, block.name)
  if (type === 'response.output_item.added' && item?.type === 'function_call') add(place, item.name)
  if (typeof delta === 'object' && delta.partial_json !== undefined) add(index, '', delta.partial_json)
  if (typeof delta === 'string' && type === 'response.function_call_arguments.delta') add(place, '', delta)
}

async function* eventData(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/)
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const data = line.startsWith('data:') ? line.slice('data:'.length).trim() : ''
      if (data !== '' && data !== '[DONE]') yield data
    }
  }
}
