// Reading providers' error bodies. Most write `{"error": {message, type, code, param, details}}`, sometimes inside a
// list. Anything else is kept as text. Nothing here is trusted.

import type { ContextOverflow } from '../../kernel/failure.ts'
import type { HeaderReader } from '../../wire/http-message.ts'
import { retryAfterMs } from '../../wire/retry-after.ts'
import { isRecord, listOf, parseJson, recordOf, textOf, wordOf } from './json.ts'

/** A provider's error, in its own words. Untrusted. */
export interface ProviderFault {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly code: string | undefined
  readonly message: string
  readonly param: string | undefined
  readonly details: unknown
  readonly retryAfterMs: number | undefined
  /** The model wrote something that is not a reply; a retry may succeed. */
  readonly isInvalidOutput?: true
  /** Reported by another host behind the provider, so it says nothing about our account with the provider. */
  readonly isRelayed?: true
}

const textMax = 4096
const detailsMax = 4096

export function faultFromBody(status: number, headers: HeaderReader, body: string): ProviderFault {
  const parsed = parseJson(body)
  // Vertex answers a streaming request with a list of one error.
  const [first]: unknown[] = Array.isArray(parsed) ? parsed : [parsed]
  const record = isRecord(first) ? first : undefined
  // Where `error` is only a word, the explanation stands beside it.
  const fault = faultFromError(status, retryAfterMs(headers), isRecord(record?.error) ? record.error : (record ?? ''))
  // For an HTML page, a proxy's plain text or an unknown shape, keep the whole body: any of it may be informative.
  const message = fault.message === '' ? (wordsOf(record) ?? body.trim()) : fault.message
  return { ...fault, message: message.slice(0, textMax) }
}

export function faultFromError(status: number | undefined, retryMs: number | undefined, error: unknown): ProviderFault {
  const fields = recordOf(error)
  const relayed = relayedWords(fields)
  return {
    status,
    ...(relayed !== undefined && { isRelayed: true }),
    type: wordOf(fields.type) ?? statusWordOf(fields),
    code: codeOf(fields),
    message: (relayed ?? wordsOf(error) ?? '').slice(0, textMax),
    param: wordOf(fields.param),
    details: shortDetails(fields.details),
    retryAfterMs: retryMs ?? retryDelayMs(fields.details),
  }
}

/**
 * Reads an error inside a 200. Its status follows from its code or type, by the dialect's table; undefined if neither
 * is known. Resellers put the status itself into the code.
 */
export function faultInSuccess(error: unknown, statuses: ReadonlyMap<string, number>): ProviderFault {
  const fault = faultFromError(undefined, undefined, error)
  const { code = '', type = '' } = fault
  const status = /^[45]\d\d$/.test(code) ? Number(code) : (statuses.get(code) ?? statuses.get(type))
  return { ...fault, status }
}

/** The HTTP status of each code or type. */
export function statusesOf(words: Readonly<Record<number, readonly string[]>>): ReadonlyMap<string, number> {
  return new Map(Object.entries(words).flatMap(([status, list]) => list.map((word) => [word, Number(status)] as const)))
}

/** In both OpenAI dialects (reference and SDKs, 2026-11). */
export const openaiStatuses = statusesOf({
  400: [
    ...['invalid_request_error', 'invalid_prompt', 'bio_policy', 'cyber_policy', 'misalignment_policy_violation'],
    ...['content_filter', 'content_policy_violation', 'context_length_exceeded', 'invalid_encrypted_content'],
  ],
  401: ['invalid_api_key', 'authentication_error'],
  403: ['permission_error'],
  404: ['model_not_found'],
  429: ['insufficient_quota', 'rate_limit_exceeded', 'rate_limit_error', 'rate_limit', 'tokens', 'requests'],
  500: ['server_error', 'vector_store_timeout'],
  503: ['server_is_overloaded', 'overloaded_error'],
})

/**
 * OpenRouter only says that a provider failed. The provider's message is in `metadata.raw`, as text or as JSON in a
 * string.
 */
function relayedWords({ message, metadata }: Record<string, unknown>): string | undefined {
  if (message !== 'Provider returned error') return undefined
  const { raw } = recordOf(metadata)
  return (typeof raw === 'string' ? wordsOf(parseJson(raw)) : undefined) ?? wordsOf(raw)
}

/**
 * Members that may hold the human-readable message, most specific first:
 *   message        OpenAI, Anthropic, Google, most; some resellers nest an object of the same kind
 *   msg            FastAPI, in each entry of its list
 *   detail         FastAPI (Mistral, vLLM): a string or a list · problem+json (RFC 9457)
 *   title          problem+json
 *   error, errors  hosts that put a string or a list there
 * To support another spelling, add a row here and a test case.
 */
const wordNames = ['message', 'msg', 'detail', 'title', 'error', 'errors']
/** Deeper than any known shape. */
const depthMax = 4

/** The human-readable message, or undefined if there is none. */
function wordsOf(error: unknown, depth = 0): string | undefined {
  if (typeof error === 'string') return error.trim() === '' ? undefined : error
  if (depth === depthMax) return undefined
  if (Array.isArray(error)) {
    const list: unknown[] = error
    return list.flatMap((entry) => wordsOf(entry, depth + 1) ?? []).join('; ') || undefined
  }
  const fields = recordOf(error)
  for (const name of wordNames) {
    const words = wordsOf(fields[name], depth + 1)
    if (words !== undefined) return `${locationOf(fields.loc)}${words}`
  }
  return undefined
}

/** FastAPI names the location of each error: `["body", "temperature"]`. */
function locationOf(loc: unknown): string {
  const named = listOf(loc).filter((step) => typeof step === 'string' || typeof step === 'number')
  return named.length > 0 ? `${named.join('.')}: ` : ''
}

/** Some hosts put their numeric status into `code`; Messages has a finer code in the details. */
function codeOf({ code, details }: Record<string, unknown>): string | undefined {
  if (typeof code === 'number') return String(code)
  return wordOf(code) ?? wordOf(recordOf(details).error_code)
}

/** A response with a success status that is not a reply of the dialect. */
export function replyFault(message: string): ProviderFault {
  return faultFromError(undefined, undefined, { message })
}

/** Details are passed on whole or not at all, because part of them would be misleading. */
function shortDetails(details: unknown): unknown {
  try {
    return (JSON.stringify(details)?.length ?? 0) <= detailsMax ? details : undefined
  } catch {
    // Nested deeper than the stack.
    return undefined
  }
}

// Google's additions to errors in any dialect, including Claude on Vertex: a status word (google.rpc.Status) and
// details that may hold a finer reason and a retry delay.

/** As in wire/retry-after.ts: longer delays are clamped to this, not ignored. */
const waitMaxMs = 24 * 60 * 60 * 1000

/** For example `RESOURCE_EXHAUSTED`. Other hosts write `error` there, which carries no information. */
export function statusWordOf({ status }: Readonly<Record<string, unknown>>): string | undefined {
  return /^[A-Z]+(_[A-Z]+)*$/.test(wordOf(status) ?? '') ? wordOf(status) : undefined
}

export function reasonIn(details: unknown): string | undefined {
  return wordOf(detailOf(details, 'google.rpc.ErrorInfo').reason) || undefined
}

/** Reads `{"retryDelay": "34.07s"}`, the JSON form of a duration. */
export function retryDelayMs(details: unknown): number | undefined {
  const { retryDelay } = detailOf(details, 'google.rpc.RetryInfo')
  const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(textOf(retryDelay)) ?? []
  return seconds === undefined ? undefined : Math.min(Math.ceil(Number(seconds) * 1000), waitMaxMs)
}

function detailOf(details: unknown, type: string): Record<string, unknown> {
  return recordOf(listOf(details).find((detail) => textOf(recordOf(detail)['@type']).endsWith(`/${type}`)))
}

// Messages that say that a prompt exceeds the context window, with the token counts they give. Each host words this
// differently, in any dialect and with any status, so all phrases are tried on every error. To add one: a row with its
// source, and an example in the test.

/** Codes and types that mean the same without a message. */
const overflowWords = /^(context_length_exceeded|exceed_context_size_error|model_context_window_exceeded)$/

/**
 * `tokens` is the total requested, `input` and `cap` are its two parts, and `limit` is what the model accepts. Rows
 * with more counts come first.
 */
const phrases: readonly RegExp[] = [
  // Anthropic
  /prompt is too long: (?<tokens>\d+) tokens > (?<limit>\d+)/i,
  /input length and `?max_tokens`? exceed context limit: (?<input>\d+) \+ (?<cap>\d+) > (?<limit>\d+)/i,
  /prompt is too long/i,
  // OpenAI, DeepSeek, OpenRouter, SGLang, older vLLM
  /maximum context length is (?<limit>[\d,]+)[\s\S]{0,60}?requested (?:about )?(?<tokens>[\d,]+) tokens \((?<input>[\d,]+) [^),]{0,60}, (?<cap>[\d,]+) /i,
  /maximum context length is (?<limit>[\d,]+)[\s\S]{0,60}?(?:resulted in|requested|requested about) (?<tokens>[\d,]+) tokens/i,
  // vLLM
  /maximum context length is (?<limit>[\d,]+)[\s\S]{0,60}?requested (?<cap>\d+) output tokens[\s\S]{0,60}?(?<input>\d+) input tokens/i,
  /(?<!\d)(?<cap>\d{1,12})\. This model's maximum context length is (?<limit>\d+) tokens and your request has (?<input>\d+) input/i,
  // OpenAI, from GPT-5 on
  /configured limit of (?<limit>[\d,]+) tokens\. Your messages resulted in (?<tokens>[\d,]+) tokens/i,
  /exceeds? the context window/i,
  // xAI
  /maximum prompt length is (?<limit>\d+) but the request contains (?<tokens>\d+)/i,
  // Google
  /input token count \(?(?<tokens>\d+)\)? exceeds the maximum number of tokens allowed \(?(?<limit>\d+)/i,
  /input token count.{0,20} exceeds the maximum/i,
  // llama.cpp
  /request \((?<tokens>\d+) tokens\) exceeds the available context size \((?<limit>\d+)/i,
  /exceeds? the available context size/i,
  // Hosts of open models: Fireworks, NVIDIA, Moonshot, Mistral, Together
  /input length \(?(?<tokens>\d+)\)? exceeds[\s\S]{0,40}? maximum (?:context|allowed input) length \(?(?:of )?(?<limit>\d+)/i,
  /input \((?<tokens>\d+) tokens\) is longer than the model's context length \((?<limit>\d+)/i,
  /exceeded model token limit: (?<limit>\d+) \(requested: (?<tokens>\d+)\)/i,
  /(?<!\d)(?<tokens>\d{1,12}) tokens[\s\S]{0,40}? too large for model with (?<limit>\d+) maximum context length/i,
  /`inputs` tokens \+ `max_new_tokens` must be/i,
  /(?:exceeds?|exceeded) (?:the |this |the model's |model's )?(?:maximum )?context length/i,
  /maximum context length is \d/i,
  // Bedrock, which counts tokens or bytes (strands-agents/harness-sdk#1663, 2026-02)
  /input is too long for requested model/i,
  /too many total text bytes/i,
  // Many, before or after the words above
  /\bcontext_length_exceeded\b/,
]

/** undefined if the error is about something else. */
export function readOverflow({ type, code, message }: ProviderFault): ContextOverflow | undefined {
  for (const phrase of phrases) {
    const found = phrase.exec(message)
    if (found) return countsOf(found.groups ?? {})
  }
  return overflowWords.test(code ?? '') || overflowWords.test(type ?? '') ? {} : undefined
}

function countsOf(groups: Readonly<Record<string, string | undefined>>): ContextOverflow {
  const count = (name: string) => (groups[name] === undefined ? undefined : Number(groups[name].replaceAll(',', '')))
  const [input, outputCap, limit] = [count('input'), count('cap'), count('limit')]
  const tokens = count('tokens') ?? (input === undefined ? undefined : input + (outputCap ?? 0))
  return {
    ...(tokens === undefined ? {} : { tokens }),
    ...(limit === undefined ? {} : { limit }),
    ...(outputCap === undefined ? {} : { outputCap }),
  }
}
