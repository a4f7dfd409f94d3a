// A call of the playground: the same public address, key, limits and wallet as any client's. Nothing of the console's
// session goes with it.

import { type Refusal, refusalOf } from '../parts/call-api.ts'

export type Dialect = 'chat' | 'messages'

export interface PlaygroundCall {
  readonly dialect: Dialect
  readonly key: string
  readonly model: string
  readonly prompt: string
  readonly maxTokens: number
  /** Absent = none is offered. */
  readonly tool?: OfferedTool
}

/** A function that the model may ask for; nobody runs it here. */
export interface OfferedTool {
  readonly name: string
  readonly description: string
  /** A JSON Schema. */
  readonly parameters: Readonly<Record<string, unknown>>
}

/** What the model asked for. */
export interface AskedCall {
  readonly name: string
  /** JSON, as far as it has come. */
  readonly arguments: string
}

export interface PlaygroundAnswer {
  readonly requestId: string
  /** A failure that came inside the stream; empty = none. */
  readonly problem: string
}

export const playgroundPaths: Readonly<Record<Dialect, string>> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
}

export function bodyOf({ dialect, model, prompt, maxTokens, tool }: PlaygroundCall): object {
  const messages = [{ role: 'user', content: prompt }]
  if (dialect === 'messages') {
    const tools = tool && [{ name: tool.name, description: tool.description, input_schema: tool.parameters }]
    return { model, max_tokens: maxTokens, stream: true, messages, ...(tools && { tools }) }
  }
  const tools = tool && [{ type: 'function', function: tool }]
  const options = { stream: true, stream_options: { include_usage: true } }
  return { model, max_completion_tokens: maxTokens, ...options, messages, ...(tools && { tools }) }
}

export function headersOf(dialect: Dialect, key: string): Readonly<Record<string, string>> {
  const json = { 'content-type': 'application/json' }
  return dialect === 'chat'
    ? { ...json, authorization: `Bearer ${key}` }
    : { ...json, 'x-api-key': key, 'anthropic-version': '2023-06-01' }
}

/** What is told while the answer comes in. */
export interface AnswerListener {
  onText(more: string): void
  /** All calls so far, in the order of their beginning. */
  onCalls(calls: readonly AskedCall[]): void
}

/** Throws where the connection breaks or is aborted. */
export async function callModel(
  call: PlaygroundCall,
  listener: AnswerListener,
  signal: AbortSignal,
): Promise<PlaygroundAnswer | Refusal> {
  const response = await fetch(playgroundPaths[call.dialect], {
    method: 'POST',
    headers: headersOf(call.dialect, call.key),
    body: JSON.stringify(bodyOf(call)),
    credentials: 'omit',
    signal,
  })
  if (!response.ok || !response.body) return await refusalOf(response)
  let problem = ''
  const calls = new Map<number, AskedCall>()
  for await (const data of eventData(response.body)) {
    const event = JSON.parse(data) as StreamEvent
    listener.onText(event.choices?.[0]?.delta?.content ?? event.delta?.text ?? '')
    if (addCalls(calls, event)) listener.onCalls([...calls.values()])
    if (event.error?.message) problem = event.error.message
  }
  return { requestId: response.headers.get('x-request-id') ?? '', problem }
}

/** What is read of the events of either dialect. */
interface StreamEvent {
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: string | null
      readonly tool_calls?: readonly {
        readonly index: number
        readonly function?: { readonly name?: string; readonly arguments?: string }
      }[]
    }
  }[]
  readonly index?: number
  readonly content_block?: { readonly type: string; readonly name?: string }
  readonly delta?: { readonly text?: string; readonly partial_json?: string }
  readonly error?: { readonly message?: string }
}

/** Whether the event was about a call. */
function addCalls(calls: Map<number, AskedCall>, event: StreamEvent): boolean {
  const add = (index: number, name: string, text: string): true => {
    const before = calls.get(index) ?? { name: '', arguments: '' }
    calls.set(index, { name: before.name + name, arguments: before.arguments + text })
    return true
  }
  const parts = event.choices?.[0]?.delta?.tool_calls ?? []
  for (const { index, function: part } of parts) add(index, part?.name ?? '', part?.arguments ?? '')
  const { index = 0, content_block: block, delta } = event
  if (block?.type === 'tool_use') return add(index, block.name ?? '', '')
  if (delta?.partial_json !== undefined) return add(index, '', delta.partial_json)
  return parts.length > 0
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
