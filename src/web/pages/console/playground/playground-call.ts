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

export function bodyOf({ dialect, model, prompt, maxTokens }: PlaygroundCall): object {
  const messages = [{ role: 'user', content: prompt }]
  if (dialect === 'messages') return { model, max_tokens: maxTokens, stream: true, messages }
  return { model, max_completion_tokens: maxTokens, stream: true, stream_options: { include_usage: true }, messages }
}

export function headersOf(dialect: Dialect, key: string): Readonly<Record<string, string>> {
  const json = { 'content-type': 'application/json' }
  return dialect === 'chat'
    ? { ...json, authorization: `Bearer ${key}` }
    : { ...json, 'x-api-key': key, 'anthropic-version': '2023-06-01' }
}

/** Throws where the connection breaks or is aborted. */
export async function callModel(
  call: PlaygroundCall,
  onText: (more: string) => void,
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
  for await (const data of eventData(response.body)) {
    const event = JSON.parse(data) as StreamEvent
    onText(event.choices?.[0]?.delta?.content ?? event.delta?.text ?? '')
    if (event.error?.message) problem = event.error.message
  }
  return { requestId: response.headers.get('x-request-id') ?? '', problem }
}

/** What is read of the events of either dialect. */
interface StreamEvent {
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[]
  readonly delta?: { readonly text?: string }
  readonly error?: { readonly message?: string }
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
