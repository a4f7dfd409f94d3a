// One way to talk through any official client, whole or streamed with the client's own accumulator, so that a behaviour
// is written down once and holds for all of them. It reads what a program would read and judges nothing.

import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import {
  type ClientName,
  type ClientSettings,
  createChatClient,
  createMessageClient,
  createResponseClient,
  isChatClient,
  isResponseClient,
  type ResponseClientName,
} from '../parts/official-clients.ts'

export interface Tool {
  readonly name: string
  readonly description: string
  readonly schema: { readonly type: 'object'; readonly [member: string]: unknown }
}

/** A user's text, an answer that goes back as the client gave it, or the results of that answer's calls in order. */
export type Turn = string | ClientReply | { readonly results: readonly string[] }

export interface Ask {
  readonly model: string
  readonly system?: string
  readonly turns: readonly Turn[]
  readonly tools?: readonly Tool[]
  readonly maxTokens?: number
}

export interface ClientReply {
  readonly text: string
  readonly thinking: string
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[]
  readonly stop: string | null | undefined
  /** Every name of the model that the reply or its events carried. */
  readonly models: readonly string[]
  /** Disjoint buckets, whichever way the family counts. */
  readonly tokens: { readonly input: number; readonly read: number; readonly written: number; readonly output: number }
  readonly reasoningTokens: number | undefined
  readonly cost: unknown
  /** The client's own idea of the request's id. */
  readonly requestId: string | null | undefined
  readonly headers: Headers
  /** The assistant's turn, to be sent back. */
  readonly turn: unknown
}

export type Mode = 'whole' | 'streamed'
export type Talk = (ask: Ask, mode: Mode) => Promise<ClientReply>

export function createTalk(
  name: ClientName | ResponseClientName,
  { url, key }: { readonly url: string; readonly key: string },
  more: Partial<ClientSettings> = {},
): Talk {
  const settings: ClientSettings = { baseURL: `${url}/v1`, apiKey: key, ...more }
  if (isResponseClient(name)) {
    const client = createResponseClient(name, settings)
    return (ask, mode) => (mode === 'whole' ? responseWhole(client, ask) : responseStreamed(client, ask))
  }
  if (isChatClient(name)) {
    const client = createChatClient(name, settings)
    return (ask, mode) => (mode === 'whole' ? chatWhole(client, ask) : chatStreamed(client, ask))
  }
  const client = createMessageClient(name, { ...settings, baseURL: url })
  return (ask, mode) => (mode === 'whole' ? messageWhole(client, ask) : messageStreamed(client, ask))
}

type ChatBody = OpenAI.ChatCompletionCreateParamsNonStreaming

function chatBody({ model, system, turns, tools, maxTokens }: Ask): ChatBody {
  return {
    model,
    messages: [
      ...(system === undefined ? [] : [{ role: 'system' as const, content: system }]),
      ...turns.flatMap((turn, index) => chatTurn(turn, turns[index - 1])),
    ],
    ...(tools && {
      tools: tools.map(({ name, description, schema }) => ({
        type: 'function' as const,
        function: { name, description, parameters: schema },
      })),
    }),
    ...(maxTokens !== undefined && { max_completion_tokens: maxTokens }),
  }
}

function chatTurn(turn: Turn, before: Turn | undefined): OpenAI.ChatCompletionMessageParam[] {
  if (typeof turn === 'string') return [{ role: 'user', content: turn }]
  if ('turn' in turn) return [turn.turn as OpenAI.ChatCompletionMessageParam]
  return turn.results.map((content, index) => ({ role: 'tool', tool_call_id: callId(before, index), content }))
}

function callId(before: Turn | undefined, index: number): string {
  const id = typeof before === 'object' && 'calls' in before ? before.calls[index]?.id : undefined
  if (id === undefined) throw new Error('results follow the answer that asked for them')
  return id
}

async function chatWhole(client: OpenAI, ask: Ask): Promise<ClientReply> {
  const call = client.chat.completions.create(chatBody(ask))
  const { response } = await call.withResponse()
  const data = await call
  const thinking = reasoningOf(data.choices[0]?.message)
  return { ...readChat(data), thinking, models: [data.model], requestId: data._request_id, headers: response.headers }
}

async function chatStreamed(client: OpenAI, ask: Ask): Promise<ClientReply> {
  const { headers, fetching } = watchHeaders()
  const body = { ...chatBody(ask), stream: true as const, stream_options: { include_usage: true } }
  const stream = client.withOptions({ fetch: fetching }).chat.completions.stream(body)
  let thinking = ''
  const models = new Set<string>()
  stream.on('chunk', (chunk) => {
    thinking += reasoningOf(chunk.choices[0]?.delta)
    models.add(chunk.model)
  })
  const data = await stream.finalChatCompletion()
  models.add(data.model)
  return {
    ...readChat(data),
    thinking,
    models: [...models],
    requestId: headers().get('x-request-id'),
    headers: headers(),
  }
}

/** The accumulators keep the response to themselves. */
function watchHeaders() {
  let headers = new Headers()
  const fetching: ClientSettings['fetch'] = async (input, init) => {
    const response = await fetch(input, init)
    headers = response.headers
    return response
  }
  return { headers: () => headers, fetching }
}

/** A field that chat clients pass on and do not type. */
function reasoningOf(from: object | undefined): string {
  return from && 'reasoning_content' in from ? String(from.reasoning_content) : ''
}

function readChat({ choices, usage }: OpenAI.ChatCompletion) {
  const choice = choices[0]
  if (!choice || !usage) throw new Error('a reply has a choice and usage')
  const { cached_tokens: read = 0, cache_write_tokens: written = 0 } = usage.prompt_tokens_details ?? {}
  if (usage.total_tokens !== usage.prompt_tokens + usage.completion_tokens) throw new Error('the total is the sum')
  return {
    text: choice.message.content ?? '',
    calls: (choice.message.tool_calls ?? []).map((call) => {
      if (call.type !== 'function') throw new Error('only functions were offered')
      return { id: call.id, name: call.function.name, input: JSON.parse(call.function.arguments) as unknown }
    }),
    stop: choice.finish_reason,
    tokens: { input: usage.prompt_tokens - read - written, read, written, output: usage.completion_tokens },
    reasoningTokens: usage.completion_tokens_details?.reasoning_tokens,
    cost: 'cost' in usage ? usage.cost : undefined,
    turn: choice.message,
  }
}

function messageBody({
  model,
  system,
  turns,
  tools,
  maxTokens = 1000,
}: Ask): Anthropic.MessageCreateParamsNonStreaming {
  return {
    model,
    max_tokens: maxTokens,
    ...(system !== undefined && { system }),
    messages: turns.map((turn, index) => messageTurn(turn, turns[index - 1])),
    ...(tools && {
      tools: tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema })),
    }),
  }
}

function messageTurn(turn: Turn, before: Turn | undefined): Anthropic.MessageParam {
  if (typeof turn === 'string') return { role: 'user', content: turn }
  if ('turn' in turn) return turn.turn as Anthropic.MessageParam
  const results = turn.results.map((content, index) => ({
    type: 'tool_result' as const,
    tool_use_id: callId(before, index),
    content,
  }))
  return { role: 'user', content: results }
}

async function messageWhole(client: Anthropic, ask: Ask): Promise<ClientReply> {
  const call = client.messages.create(messageBody(ask))
  const { response } = await call.withResponse()
  const data = await call
  const cost = costOf(data.usage)
  return { ...readMessage(data), cost, models: [data.model], requestId: data._request_id, headers: response.headers }
}

async function messageStreamed(client: Anthropic, ask: Ask): Promise<ClientReply> {
  const stream = client.messages.stream(messageBody(ask))
  let cost: unknown
  // The accumulator takes over the counts that it knows; the cost is read from the event.
  stream.on('streamEvent', (event) => {
    if (event.type === 'message_delta') cost = costOf(event.usage)
  })
  const { response, request_id } = await stream.withResponse()
  const data = await stream.finalMessage()
  return { ...readMessage(data), cost, models: [data.model], requestId: request_id, headers: response.headers }
}

function costOf(usage: object): unknown {
  return 'cost' in usage ? usage.cost : undefined
}

function readMessage({ content, stop_reason, usage }: Anthropic.Message) {
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    thinking: content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [block] : [])),
    stop: stop_reason,
    tokens: {
      input: usage.input_tokens,
      read: usage.cache_read_input_tokens ?? 0,
      written: usage.cache_creation_input_tokens ?? 0,
      output: usage.output_tokens,
    },
    reasoningTokens: usage.output_tokens_details?.thinking_tokens,
    turn: { role: 'assistant', content },
  }
}

type ResponseBody = OpenAI.Responses.ResponseCreateParamsNonStreaming
type InputItem = OpenAI.Responses.ResponseInputItem

function responseBody({ model, system, turns, tools, maxTokens }: Ask): ResponseBody {
  return {
    model,
    ...(system !== undefined && { instructions: system }),
    input: turns.flatMap((turn, index) => responseTurn(turn, turns[index - 1])),
    ...(tools && {
      tools: tools.map(({ name, description, schema }) => ({
        type: 'function' as const,
        name,
        description,
        parameters: schema,
        strict: false,
      })),
    }),
    ...(maxTokens !== undefined && { max_output_tokens: maxTokens }),
  }
}

function responseTurn(turn: Turn, before: Turn | undefined): InputItem[] {
  if (typeof turn === 'string') return [{ role: 'user', content: turn }]
  if ('turn' in turn) return turn.turn as InputItem[]
  return turn.results.map((output, index) => ({ type: 'function_call_output', call_id: callId(before, index), output }))
}

async function responseWhole(client: OpenAI, ask: Ask): Promise<ClientReply> {
  const call = client.responses.create(responseBody(ask))
  const { response } = await call.withResponse()
  const data = await call
  return { ...readResponse(data), models: [data.model], requestId: data._request_id, headers: response.headers }
}

async function responseStreamed(client: OpenAI, ask: Ask): Promise<ClientReply> {
  const { headers, fetching } = watchHeaders()
  const body = { ...responseBody(ask), stream: true as const }
  const stream = client.withOptions({ fetch: fetching }).responses.stream(body)
  const models = new Set<string>()
  stream.on('response.created', (event) => void models.add(event.response.model))
  const data = await stream.finalResponse()
  models.add(data.model)
  return { ...readResponse(data), models: [...models], requestId: headers().get('x-request-id'), headers: headers() }
}

function readResponse({ output, output_text, status, incomplete_details, usage }: OpenAI.Responses.Response) {
  if (!usage) throw new Error('a response has usage')
  const { cached_tokens: read } = usage.input_tokens_details
  const written = Number(
    Object.entries(usage.input_tokens_details).find(([name]) => name === 'cache_write_tokens')?.[1],
  )
  if (usage.total_tokens !== usage.input_tokens + usage.output_tokens) throw new Error('the total is the sum')
  const calls = output.flatMap((item) => (item.type === 'function_call' ? [item] : []))
  return {
    text: output_text,
    thinking: output
      .flatMap((item) => (item.type === 'reasoning' ? item.summary.map(({ text }) => text) : []))
      .join('\n\n'),
    calls: calls.map((item) => ({ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) as unknown })),
    stop: status === 'completed' && calls.length > 0 ? 'calls' : (incomplete_details?.reason ?? status),
    tokens: { input: usage.input_tokens - read - written, read, written, output: usage.output_tokens },
    reasoningTokens: usage.output_tokens_details.reasoning_tokens || undefined,
    cost: costOf(usage),
    turn: output,
  }
}
