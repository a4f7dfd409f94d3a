// The sandbox as an upstream: parses a request with the same code as the gateway's surfaces, lets a model turn the
// conversation into reply events, and renders them as a provider's Response. It needs no network and no credential.

import { anthropicMessages } from '../../dialects/anthropic-messages/index.ts'
import type { Conversation } from '../../dialects/canonical/conversation.ts'
import type { Embeddings } from '../../dialects/canonical/embeddings.ts'
import type { RenderContext } from '../../dialects/canonical/translation.ts'
import type { Dialect } from '../../dialects/dialect.ts'
import { openaiChat } from '../../dialects/openai-chat/index.ts'
import { openaiResponses } from '../../dialects/openai-responses/index.ts'
import type { SurfaceName } from '../../dialects/surface.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import { estimatedInput } from '../../kernel/usage.ts'
import type { CancelSignal, Endpoint, Provider, Transport, UpstreamRequest } from '../provider.ts'
import { dimensionsMax, embed, embedModel } from './embed.ts'
import { composeReply, createModels, type Outage, type Reply, signThinking } from './models.ts'
import { checkTexts, checkToolResults, type Prompt, readPrompt } from './prompt.ts'

/** Also the value of `dialect:` in a configuration file that adds another sandbox under its own name. */
export const sandboxId = 'sandbox'

/** The context window of every sandbox model, as its catalog entries say. */
const contextTokensMax = 128_000
const throttledSeconds = 12

/** An error as a provider sends it. */
interface Refusal {
  readonly status: number
  readonly message: string
  readonly chat: { readonly type: string; readonly code?: string; readonly param?: string | undefined }
  readonly messagesType: string
  readonly retryAfterSeconds?: number
}

/** The differences between the APIs, besides the dialect. */
interface Wire {
  readonly dialect: Dialect
  readonly requestIdHeader: string
  readonly callIdPrefix: string
  /** Blank text and thinking that was changed are refused. */
  readonly checksBlocks: boolean
  renderRefusal(refusal: Refusal, requestId: string): string
}

const chatWire: Wire = {
  dialect: openaiChat,
  requestIdHeader: 'x-request-id',
  callIdPrefix: 'call_',
  checksBlocks: false,
  renderRefusal({ message, chat: { type, param = null, code = null } }) {
    return JSON.stringify({ error: { message, type, param, code } })
  },
}

const messagesWire: Wire = {
  dialect: anthropicMessages,
  requestIdHeader: 'request-id',
  callIdPrefix: 'toolu_',
  checksBlocks: true,
  renderRefusal({ message, messagesType: type }, requestId) {
    return JSON.stringify({ type: 'error', error: { type, message }, request_id: requestId })
  },
}

const responsesWire: Wire = { ...chatWire, dialect: openaiResponses }

/** undefined = requests of this surface are translated. The usage of Gemini cannot report what was written to a cache. */
const wiresBySurface: Readonly<Record<SurfaceName, Wire | undefined>> = {
  chat: chatWire,
  messages: messagesWire,
  responses: responsesWire,
  gemini: undefined,
}

const wires = Object.values(wiresBySurface).filter((wire) => wire !== undefined)

const endpoints: readonly Endpoint[] = wires.map(({ dialect: { id: dialect } }) => ({
  dialect,
  baseUrl: 'sandbox:',
  auth: 'none',
}))

export function createSandboxProvider(id: string, source: string, transport: Transport): Provider {
  return { id, endpoints, apiKey: undefined, source, transport, ignoresHealth: true }
}

export interface SandboxParts {
  readonly clock: Clock
  /** How the slow model waits; tests replace it. */
  readonly delay?: Delay
}

export type SandboxTransport = (request: UpstreamRequest) => Promise<Response>

export function createSandboxTransport({ clock, delay = timerDelay }: SandboxParts): SandboxTransport {
  const models = createModels()
  return async ({ path: target, body, signal }) => {
    if (signal.aborted) throw signal.reason
    const path = target.split('?', 1)[0] ?? target
    const wire = wires.find(({ dialect }) => path.startsWith(dialect.generationPath('', true))) ?? chatWire
    const { dialect } = wire
    const digest = new Bun.CryptoHasher('sha256').update(body).digest('hex').slice(0, 24)
    const requestId = `req_sandbox_${digest}`
    const named = { [wire.requestIdHeader]: requestId }
    const json = { ...named, 'content-type': 'application/json' }
    const refuse = (refusal: Refusal): Response => {
      const { status, retryAfterSeconds } = refusal
      const wait = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
      return new Response(wire.renderRefusal(refusal, requestId), { status, headers: { ...json, ...wait } })
    }

    const embedding = /(^\/embeddings|:(batchE|e)mbedContents?)$/.test(path) ? dialect.embeddings : undefined
    if (embedding) {
      const reply = embedPrompt(embedding, body, target)
      if (reply instanceof Failure) return refuse(refusalOf(reply))
      return typeof reply === 'string' ? new Response(reply, { headers: json }) : refuse(reply)
    }
    const isCount = path === dialect.tokenCount?.path
    if (!isCount && path !== dialect.generationPath('', true)) return refuse(unknownPath(path))
    const prompt = parsePrompt(wire, body, isCount, target)
    if (prompt instanceof Failure) return refuse(refusalOf(prompt))
    const model = models.get(prompt.model)
    if (model === undefined) return refuse(unknownModel(prompt.model))
    if (prompt.tokens > contextTokensMax) return refuse(promptTooLong(prompt.tokens, wire))
    if (isCount) return new Response(JSON.stringify({ input_tokens: prompt.tokens }), { headers: json })
    const draft = model(prompt)
    if (typeof draft === 'string') return refuse(outageOf(draft, prompt.model))

    const reply = composeReply(prompt, draft, {
      reply: `sandbox_${digest}`,
      call: (index) => `${wire.callIdPrefix}${digest}${index}`,
    })
    const context = renderContext(prompt, requestId, clock)
    if (prompt.stream) {
      return new Response(streamBody(streamItems(wire, reply, context), { delay, signal }), {
        headers: { ...named, 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
      })
    }
    const waitMs = reply.steps.reduce((sum, step) => sum + (step.type === 'wait' ? step.ms : 0), 0)
    if (waitMs > 0) await delay(waitMs, signal)
    if (signal.aborted) throw signal.reason
    const events = reply.steps.filter((step) => step.type !== 'wait')
    const bytes = new TextEncoder().encode(dialect.translation.renderReply(events, context))
    return new Response(reply.breaksOff ? bytes.slice(0, Math.ceil(bytes.length / 2)) : bytes, { headers: json })
  }
}

const headers = new Headers({ 'anthropic-version': '2023-06-01' })

function parsePrompt({ dialect, checksBlocks }: Wire, body: Uint8Array<ArrayBuffer>, isCount: boolean, target: string) {
  const sent = (isCount ? dialect.tokenCount : dialect)?.readEnvelope(body, headers, target)
  if (sent === undefined || sent instanceof Failure) return sent ?? invalidRequest('Not served.')
  const { envelope } = sent
  if (envelope.choices > 1) return invalidRequest('`n` must be 1 in the sandbox.', 'n')
  if (envelope.legacyCalls) return invalidRequest('The sandbox does not know `functions`; use `tools`.', 'functions')
  // The translation refuses a cap of zero, which Anthropic accepts to warm a cache.
  const parsed = dialect.translation.parseRequest({ ...sent, envelope: { ...envelope, outputCap: undefined } })
  if (parsed instanceof Failure) return parsed
  const { conversation, callForms, echo } = parsed
  const fault =
    checkToolResults(conversation) ??
    (checksBlocks ? (checkTexts(conversation) ?? checkThinking(conversation)) : undefined)
  const { model, outputCap, stream, wantsStreamUsage } = envelope
  return fault ?? { ...readPrompt(conversation, model, outputCap), stream, form: { callForms, echo, wantsStreamUsage } }
}

function embedPrompt(embedding: Embeddings, body: Uint8Array<ArrayBuffer>, target: string) {
  const sent = embedding.readEnvelope(body, headers, target)
  if (sent instanceof Failure) return sent
  const { envelope } = sent
  const asked = embedding.parseRequest(sent)
  if (asked instanceof Failure) return asked
  if (envelope.model !== embedModel) return unknownModel(envelope.model)
  if ((asked.dimensions ?? 1) > dimensionsMax) {
    return invalidRequest(`\`dimensions\` must be at most ${dimensionsMax}.`, 'dimensions')
  }
  const { vectors, usage = estimatedInput(0) } = embed(asked)
  const context = { model: envelope.model, quotedUsd: noCost } as unknown as RenderContext
  return embedding.renderReply({ vectors, usage }, envelope, context)
}

/** Thinking must come back unchanged, with its signature. */
function checkThinking({ turns }: Conversation): Failure | undefined {
  for (const { blocks, pointer = '' } of turns) {
    for (const [index, block] of blocks.entries()) {
      if (block.kind !== 'thinking' || block.signature === signThinking(block.text)) continue
      const at = `${pointer.slice(1).replaceAll('/', '.')}.content.${index}`
      return invalidRequest(`${at}: Invalid \`signature\` in \`thinking\` block`, at)
    }
  }
  return undefined
}

/** Providers report no cost; renderers omit an undefined member. */
const noCost = () => undefined as unknown as string

function renderContext(prompt: Prompt, requestId: string, clock: Clock): RenderContext {
  return {
    model: prompt.model,
    requestId: requestId as RequestId,
    createdSeconds: Math.floor(clock.now() / 1000),
    nowSeconds: () => Math.floor(clock.now() / 1000),
    wantsStreamUsage: true,
    estimatedInputTokens: prompt.tokens,
    ...prompt.form,
    quotedUsd: noCost,
    quoteUsage: () => estimatedInput(prompt.tokens),
  }
}

// Errors

function refusalOf({ message, facts }: Failure): Refusal {
  return {
    status: 400,
    message,
    chat: { type: 'invalid_request_error', param: facts.param },
    messagesType: 'invalid_request_error',
  }
}

function unknownPath(path: string): Refusal {
  const chat = { type: 'invalid_request_error' }
  return { status: 404, message: `Invalid URL (POST ${path})`, chat, messagesType: 'not_found_error' }
}

function unknownModel(model: string): Refusal {
  const chat = { type: 'invalid_request_error', code: 'model_not_found' }
  return { status: 404, message: `The model \`${model}\` does not exist.`, chat, messagesType: 'not_found_error' }
}

/** In each provider's words, because the gateway reads the counts from them. */
function promptTooLong(tokens: number, wire: Wire): Refusal {
  return {
    status: 400,
    message:
      wire === chatWire
        ? `This model's maximum context length is ${contextTokensMax} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`
        : `prompt is too long: ${tokens} tokens > ${contextTokensMax} maximum`,
    chat: { type: 'invalid_request_error', code: 'context_length_exceeded', param: 'messages' },
    messagesType: 'invalid_request_error',
  }
}

function outageOf(outage: Outage, model: string): Refusal {
  return outage === 'throttled'
    ? {
        status: 429,
        message: `Rate limit reached for ${model} in the sandbox. Please try again in ${throttledSeconds}s.`,
        chat: { type: 'requests', code: 'rate_limit_exceeded' },
        messagesType: 'rate_limit_error',
        retryAfterSeconds: throttledSeconds,
      }
    : {
        status: 503,
        message: `Overloaded (sandbox model ${model}). Please try again later.`,
        chat: { type: 'server_error' },
        messagesType: 'overloaded_error',
      }
}

// Streams

/** A record to send, or milliseconds to wait. */
export type StreamItem = string | number

function* streamItems(
  { dialect }: Wire,
  { steps, breaksOff }: Reply,
  context: RenderContext,
): Generator<StreamItem, void> {
  const renderer = dialect.translation.renderStream(context)
  const lastDelta = steps.findLastIndex(({ type }) => type === 'text-delta')
  for (const step of breaksOff ? steps.slice(0, lastDelta + 1) : steps) {
    const item = step.type === 'wait' ? step.ms : renderer.render(step)
    if (item !== '') yield item
  }
  if (!breaksOff) yield renderer.terminal
}

/** Resolves after this many milliseconds, or at once when the signal aborts; never rejects. */
export type Delay = (ms: number, signal: CancelSignal) => Promise<void>

export const timerDelay: Delay = (ms, signal) =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })

/**
 * Renders each record when it is read, so that a slow reader keeps nothing in memory. Ends like the body of a fetch: an
 * abort of the signal makes reading fail with its reason, cancel() stops silently.
 */
export function streamBody(
  items: Iterator<StreamItem, void>,
  { delay, signal }: { readonly delay: Delay; readonly signal: CancelSignal },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const ended = new AbortController()
  let onAbort: (() => void) | undefined

  function end() {
    if (onAbort) signal.removeEventListener('abort', onAbort)
    // Wakes a pull that is waiting, so that no timer outlives its reader.
    ended.abort()
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        onAbort = () => {
          end()
          controller.error(signal.reason)
        }
        signal.addEventListener('abort', onAbort)
        if (signal.aborted) onAbort()
      },
      async pull(controller) {
        while (!ended.signal.aborted) {
          const { done, value } = items.next()
          if (done) {
            end()
            return controller.close()
          }
          if (typeof value === 'string') return controller.enqueue(encoder.encode(value))
          await delay(value, ended.signal)
        }
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
}
