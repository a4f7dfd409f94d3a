// A provider's error body, as the two families write it: `{"error": {message, type, code, param, details}}`, give or
// take, now and then inside a list. What is written otherwise is kept as text; nothing here is trusted.

import { retryAfterMs } from '../../wire/retry-after.ts'
import { isRecord, parseJson, recordOf, wordOf } from './json-value.ts'
import { retryDelayMs, statusWordOf } from './rpc-status.ts'

/** What a provider said when it refused or broke off, in its own words. Untrusted. */
export interface ProviderFault {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly code: string | undefined
  readonly message: string
  readonly param: string | undefined
  readonly details: unknown
  readonly retryAfterMs: number | undefined
  /** The model wrote something that is no reply; asked again, it may well write one. */
  readonly isChance?: true
  /** Some other host said it, which the provider had asked: what is true of that one's account is not of ours. */
  readonly isRelayed?: true
}

const textMax = 4096
const detailsMax = 4096

export function faultFromBody(status: number, headers: Headers, body: string): ProviderFault {
  const parsed = parseJson(body)
  // Vertex answers a call for a stream with a list of one.
  const [first]: unknown[] = Array.isArray(parsed) ? parsed : [parsed]
  const record = isRecord(first) ? first : undefined
  // Where `error` is but a word, what explains it stands beside it.
  const fault = faultFromError(status, retryAfterMs(headers), isRecord(record?.error) ? record.error : (record ?? ''))
  // An HTML page or plain text of some proxy on the way, or a shape that nobody knows: all of it may tell something.
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

/** OpenRouter says only that a provider failed; what that one said stands beside it, as text or as JSON in a text. */
function relayedWords({ message, metadata }: Record<string, unknown>): string | undefined {
  if (message !== 'Provider returned error') return undefined
  const { raw } = recordOf(metadata)
  return (typeof raw === 'string' ? wordsOf(parseJson(raw)) : undefined) ?? wordsOf(raw)
}

/**
 * Where the sentence for people stands, the most telling name first:
 *   message        OpenAI, Anthropic, Google, most; an object of the same kind with some resellers
 *   msg            FastAPI, in each entry of its list
 *   detail         FastAPI (Mistral, vLLM): a text or a list · problem+json (RFC 9457)
 *   title          problem+json
 *   error, errors  hosts that write a text or a list there
 * The next spelling is a row here and a case in the test.
 */
const wordNames = ['message', 'msg', 'detail', 'title', 'error', 'errors']
/** Deeper than any known shape; what nests further is not meant to be read. */
const depthMax = 4

/** What an error says, in whichever of these places; undefined = in none. */
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
    if (words !== undefined) return `${placeOf(fields.loc)}${words}`
  }
  return undefined
}

/** FastAPI says of each complaint what it is about: `["body", "temperature"]`. */
function placeOf(loc: unknown): string {
  const steps: unknown[] = Array.isArray(loc) ? loc : []
  const named = steps.filter((step) => typeof step === 'string' || typeof step === 'number')
  return named.length > 0 ? `${named.join('.')}: ` : ''
}

/** Numbers stand there too, with hosts that put their status into it; Messages has its finer words in the details. */
function codeOf({ code, details }: Record<string, unknown>): string | undefined {
  if (typeof code === 'number') return String(code)
  return wordOf(code) ?? wordOf(recordOf(details).error_code)
}

/** A 2xx that is no reply of the dialect. */
export function replyFault(message: string): ProviderFault {
  return faultFromError(undefined, undefined, { message })
}

/** They are told whole or not at all: half of them says something else. */
function shortDetails(details: unknown): unknown {
  return sizeOf(details, detailsMax) <= detailsMax ? details : undefined
}

/** Roughly its characters, counted no further than asked, and however deep it nests. */
function sizeOf(json: unknown, enough: number): number {
  const rest: unknown[] = [json]
  let size = 0
  while (rest.length > 0 && size <= enough) {
    const value = rest.pop()
    if (typeof value === 'string') size += value.length
    else if (Array.isArray(value)) for (const one of value as unknown[]) rest.push(one)
    else
      for (const [name, one] of Object.entries(recordOf(value))) {
        size += name.length
        rest.push(one)
      }
    size++
  }
  return size
}
