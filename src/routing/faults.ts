// Classifies failed attempts: who is at fault and whether another route may be tried. The classes are the rows of one
// table; a provider's own words only help to find the row.

import { type ProviderFault, readOverflow } from '../dialects/canonical/faults.ts'
import type { Failure } from '../kernel/failure.ts'

interface FaultRow {
  /** Whether another candidate may be tried. */
  readonly tryNext: boolean
  /** Whether a provider that got the request probably bills the operator for it: it may have generated. An error is not billed. */
  readonly isBilled?: true
}

export const faultTable = {
  /** No connection, or a failed TLS handshake. */
  unreachable: { tryNext: true },
  /** The connection broke before an answer. */
  broken: { tryNext: true, isBilled: true },
  /** No meaningful event in time. */
  'timed out': { tryNext: true, isBilled: true },
  /** A 5xx or similar, and responses that are not from an API: a wrong address must not stay the first choice. */
  failing: { tryNext: true },
  /** A 2xx that is not an answer: an error inside it, no content, another dialect. */
  garbled: { tryNext: true, isBilled: true },
  throttled: { tryNext: true },
  /** Our credential was refused. The caller's key is fine, so it must never read as a 401. */
  'refused our credential': { tryNext: true },
  /** The account behind our credential has no money or quota left. */
  'out of quota': { tryNext: true },
  'does not know the model': { tryNext: true },
  /** A file or feature that the request names is not available to this account. Another provider may have it. */
  'lacks what was asked for': { tryNext: true },
  redirecting: { tryNext: true },
  'too large': { tryNext: true },
  /** The request itself is at fault: every route would refuse it. */
  "caller's fault": { tryNext: false },
  /** The request asks for something this route's dialect, model or host cannot serve; nothing was generated. */
  'cannot carry the request': { tryNext: true },
  /** The request's deadline came before the route's: earlier attempts used up the time. */
  'had too little time': { tryNext: false, isBilled: true },
  /** The client disconnected. */
  'client left': { tryNext: false, isBilled: true },
  /** The gateway stopped. */
  'shut down': { tryNext: false, isBilled: true },
  /** Another route that was tried in parallel answered first. */
  superseded: { tryNext: false, isBilled: true },
} as const satisfies Record<string, FaultRow>

export type FaultClass = keyof typeof faultTable

export function isBilled({ class: faultClass, isStale, refusal }: AttemptFault): boolean {
  const row: FaultRow = faultTable[faultClass]
  return row.isBilled === true && isStale !== true && refusal === undefined
}

export interface AttemptFault {
  readonly class: FaultClass
  /** The provider's HTTP status, if there was one. */
  readonly status: number | undefined
  readonly provider: ProviderFault | undefined
  /** The connection broke at once without a byte: most likely a pooled one that the provider had closed. */
  readonly isStale?: boolean
  /** The request was sent and nothing came back: it may still be running upstream. */
  readonly isAmbiguous?: boolean
  /** The same route may well answer if called again. */
  readonly isRepeatable?: true
  /** The error if the route could not be called at all. */
  readonly refusal?: Failure
}

export function attemptFault(faultClass: FaultClass, provider?: ProviderFault): AttemptFault {
  return { class: faultClass, status: provider?.status, provider }
}

/** Statuses that usually pass within seconds; 520–529 are those of CDNs, and 529 of overloaded models. */
function isPassingStatus(status: number | undefined): boolean {
  return status !== undefined && (passingStatuses.has(status) || (status >= 520 && status <= 529))
}

const passingStatuses: ReadonlySet<number> = new Set([408, 500, 502, 503, 504])

/**
 * Whether the same route may answer the same request a few seconds later: no connection, a broken one, an overloaded or
 * failing server, an empty or garbled answer. A model's slip is not transient: it depends on the prompt.
 */
export function isTransient({ class: faultClass, status, provider }: AttemptFault): boolean {
  if (faultClass === 'failing') return isPassingStatus(status)
  if (faultClass === 'garbled') return provider?.isInvalidOutput !== true
  return faultClass === 'unreachable' || faultClass === 'broken'
}

export function cannotCarry(refusal: Failure): AttemptFault {
  return { class: 'cannot carry the request', status: undefined, provider: undefined, refusal }
}

/** `sent`: the request body, which the provider may quote. */
export function classifyFault(fault: ProviderFault, sent?: Uint8Array): AttemptFault {
  const retryAfterMs = fault.retryAfterMs ?? waitInMessageMs(fault, sent)
  const attempted = attemptFault(faultClass(fault, sent), { ...fault, retryAfterMs })
  return fault.isInvalidOutput ? { ...attempted, isRepeatable: true } : attempted
}

/**
 * Words with which providers reject reasoning blocks: they belong to another organisation, region or model, or a caller
 * has moved them or left out what followed.
 */
const reasoningWords = new RegExp(
  [
    'invalid_encrypted_content',
    'thought.?signature',
    'invalid `?signature`? in `?thinking`?',
    'thinking`? blocks in the latest assistant message cannot be modified',
    'final block in an assistant message cannot be `?(redacted_)?thinking',
  ].join('|'),
  'i',
)

/** Whether the provider would accept the same request without the reasoning in its history. */
export function refusesReasoning({ status, code, message }: ProviderFault): boolean {
  return status === 400 && reasoningWords.test(`${code ?? ''} ${message}`)
}

/** Statuses that providers use for an account without credit; waiting does not help with any of them. */
const quotaStatuses: ReadonlySet<number> = new Set([400, 402, 403, 412, 429])
const credentialStatuses: ReadonlySet<number> = new Set([400, 403, 404])
const modelStatuses: ReadonlySet<number> = new Set([400, 403, 404, 410])
/** Statuses of something that this account cannot provide for this request. */
const lackStatuses: ReadonlySet<number> = new Set([400, 402])
const goneStatuses: ReadonlySet<number> = new Set([404, 410])
/** Something the request depends on failed, such as a tool server, or the chosen service tier is full. */
const dependencyStatuses: ReadonlySet<number> = new Set([424, 498])
/** The request itself is wrong and every route would refuse it. Other 4xx concern addresses and deployments. */
const callerStatuses: ReadonlySet<number> = new Set([400, 414, 422, 431, 451])

function faultClass(fault: ProviderFault, sent: Uint8Array | undefined): FaultClass {
  const { status } = fault
  if (isOverflow(fault)) return "caller's fault"
  // An error with a 200 that does not say whose fault it is; or a model's slip reported as a refusal.
  if (status === undefined || fault.isInvalidOutput) return 'garbled'
  const isOutOfQuota = quotaStatuses.has(status) && !paceWords.test(fault.message) && says(quotaSigns, fault, sent)
  if (isOutOfQuota) return 'out of quota'
  if (credentialStatuses.has(status) && says(credentialSigns, fault, sent)) return 'refused our credential'
  if (modelStatuses.has(status) && says(modelSigns, fault, sent)) return 'does not know the model'
  if (status === 403 && refusesContent(fault)) return "caller's fault"
  if (goneStatuses.has(status) && isFromIntermediary(fault)) return 'failing'
  // Callers name any files and features: a missing one says nothing about other requests.
  if (isLacking(fault, status)) return 'lacks what was asked for'
  if (status === 401 || status === 403) return 'refused our credential'
  if (status === 402) return 'out of quota'
  if (status === 413) return 'too large'
  if (status === 429) return 'throttled'
  if (callerStatuses.has(status)) return "caller's fault"
  return status >= 300 && status < 400 ? 'redirecting' : 'failing'
}

function isLacking(fault: ProviderFault, status: number): boolean {
  if (goneStatuses.has(status) || dependencyStatuses.has(status)) return true
  if (status === 403) return refusesThing(fault)
  // Even if quoted: otherwise a caller who writes such a sentence would make the account look empty.
  return lackStatuses.has(status) && says(lackSigns, fault)
}

/**
 * Some hosts report a prompt that is too long as a server error. With a status about our account or a wait, the same words
 * mean something else, such as tokens per minute.
 */
function isOverflow(fault: ProviderFault): boolean {
  const { status } = fault
  const canBe = status === undefined || status === 400 || status === 413 || status === 422 || status >= 500
  return canBe && readOverflow(fault) !== undefined
}

// ── Providers' words ──

// How providers say that an account is out of credit, that our credential is invalid, that they do not have a model, or that
// something the request names is not available. A code or type is the provider's own. A message may quote the request, so a
// caller could write one that takes a route away from everybody: it counts only if it begins with a known sentence that was
// not part of the request.
// To add one: a row with the words and who uses them, and an example in the test.

interface Signs {
  /** A whole code or type. */
  readonly words?: RegExp
  /**
   * Beginnings of messages, no longer than necessary: the more is matched, the less looks like a quote. The group `name` is
   * a model that the caller may have named elsewhere in the body; then the message is about the caller's choice.
   */
  readonly sentences: readonly RegExp[]
}

const quotaSigns: Signs = {
  // The last five: OpenAI, Moonshot, Qwen, MiniMax, and Z.ai, which has a number.
  words:
    /^(insufficient_quota|billing_hard_limit_reached|enforced_spend_limit_reached|billing_not_active|exceeded_current_quota_error|Arrearage|insufficient_balance_error|1113)$/,
  sentences: [
    // Anthropic, both as a 400 invalid_request_error; the second is its spend limit (anthropics/claude-code#38035, 2026-03).
    /^your credit balance is too low/i,
    /^you have reached your specified (workspace )?API usage limits/i,
    // Fireworks, as a 412.
    /^account \S{1,200} is suspended/i,
    // Google, as a 429 like its rate limits.
    /^your prepayment credits are depleted/i,
    /^your project( \S{1,100})? has exceeded its monthly spending cap/i,
    // xAI, as a 429 or a 403 (continuedev/continue#10373, Anantys-oss/koan#2412, 2026-07).
    /^your team \S{1,100} has either used all available credits/i,
    /^your newly created team doesn.t have any credits/i,
    /^you have run out of credits/i,
    // OpenRouter, of one key, as a 403.
    /^key limit exceeded/i,
    // DeepSeek, Z.ai, MiniMax.
    /^insufficient balance\b/i,
  ],
}

/**
 * Qwen's words for its tokens per minute come under the code of an empty account
 * (https://help.aliyun.com/en/model-studio/error-code, 2026-11). A caller who makes it quote them only shortens the cooldown.
 */
const paceWords = /^allocated quota exceeded|#tokens?-limit\b/i

/** A request too large for the remaining credit, or a missing feature: the account may serve the next request. */
const lackSigns: Signs = {
  sentences: [
    // OpenRouter, with a 402: the remaining credit would not pay for the output cap or the prompt.
    /^this request requires more credits, or fewer max_tokens/i,
    /^prompt tokens limit exceeded/i,
    // OpenAI, with a 400.
    /^your organization must be verified to generate\b/i,
  ],
}

const credentialSigns: Signs = {
  // Groq says the second with a 400.
  words: /^(invalid_api_key|organization_restricted)$/,
  sentences: [
    // Anthropic, with a 400.
    /^this organization has been disabled/i,
    /^this credential is only authorized for use with/i,
    // xAI, with a 400.
    /^incorrect API key provided/i,
    // Bedrock, with a 400, of an account that AWS has not verified or does not serve where it is.
    /^operation not allowed\.?$/i,
    /^access to anthropic models is not allowed from unsupported/i,
    // OpenAI, with a 403. Other scopes are those of files and tools, which the rest of the callers may not want.
    /^you have insufficient permissions for this operation\. missing scopes: ([\w.]{1,60}, ){0,20}model\.request\b/i,
    /^(your|the|this)( \S{1,30}){0,3} plan does not include\b/i,
    // The account was flagged, not the caller's content.
    /^(your|the|this)( \S{1,30})? (account|key|organi[sz]ation|project|team)( \S{1,100}){0,3} (has been|have been|was|is) flagged\b/i,
  ],
}

const modelSigns: Signs = {
  // Terms and permissions are Groq's, `not_supported` HuggingFace's, the last two Azure's.
  words:
    /^(model_(not_found|not_available|decommissioned|terms_required|permission_blocked(_org|_project)?|not_supported)|invalid_model|DeploymentNotFound|OperationNotSupported)$/,
  sentences: [
    // Anthropic, as the whole message.
    /^model: \S+$/,
    // OpenAI, Google, vLLM, Ollama, xAI, DeepSeek and most others: only the model's name in between.
    /^((the|requested|publisher) )*models?( ?\S{1,200})?( (is|was|does))? not (found|exist)/i,
    // Bedrock.
    /^(the provided|this) model (identifier is invalid|version has reached the end of its life)/i,
    /^access denied\. this model is marked by provider as legacy/i,
    /^model use case details have not been submitted/i,
    /^invocation of model ID \S{1,200} with on-demand throughput isn.t supported/i,
    /^you don.t have access to the model with the specified model ID/i,
    /^model access is denied due to\b/i,
    /^your account is not authorized to (access this model|invoke this API operation)/i,
    // Google. The last two name the operator's project.
    /^this model (models\/\S{1,200} )?is no longer available/i,
    /^publisher model \S{1,200} is not servable in region/i,
    /^project \S{1,100} is not allowed to use publisher model/i,
    // OpenAI, of a model that only its other interfaces have.
    /^this (is not a chat model|model is only supported in v1\/)/i,
    // The same, for models that require verification; most callers stream.
    /^your organization must be verified to (use|stream)\b/i,
    // Azure, if neither the deployment nor the address exists.
    /^resource not found$/i,
    // NVIDIA, the second with a 410; DeepInfra.
    /^function '\S{1,200}': not found for account/i,
    /^the model \S{1,200} has reached its end of life/i,
    /^model is not available/i,
    // HuggingFace.
    /^the requested model \S{1,200} is not supported by any provider/i,
    // Mistral and Perplexity, Together, Moonshot, Bedrock.
    /^(unknown|no such|invalid|unable to access|not found the|could not resolve the foundation) model\b/i,
    // OpenRouter. It says the same of features, with another word after it. `models` in a request names more models.
    /^no endpoints found for (?<name>\S{1,200}?)\.?(?!\S)/i,
    /^(?<name>\S{1,200}) is not a valid model ID/i,
  ],
}

/** `sent`: the body that the provider was sent; undefined = it contained nothing of a caller, or quotes count too. */
function says({ words, sentences }: Signs, { type, code, message }: ProviderFault, sent?: Uint8Array): boolean {
  if (words?.test(code ?? '') || words?.test(type ?? '')) return true
  const found = sentences.map((sentence) => sentence.exec(message)).filter((begins) => begins !== null)
  return found.length > 0 && !isQuoted(found, sent)
}

/** Whether any of the matched words may come from the request. */
function isQuoted(found: readonly RegExpExecArray[], sent: Uint8Array | undefined): boolean {
  if (sent === undefined) return false
  const body = plainBody(sent)
  return found.some((words) => isQuote(words, body))
}

function isQuote({ 0: words, groups }: RegExpExecArray, body: Buffer): boolean {
  if (body.includes(plainWords(words))) return true
  if (groups?.name === undefined) return false
  const others = body.toString().replace(/"model"\s*:\s*"[^"]*"/g, '')
  return others.includes(plainWords(`"${groups.name}"`))
}

/** Words of a 403 about the content. A message about policies may also mean those of the account. */
const contentWords = /^(content_|moderation|safety|(cyber|bio|misalignment)_policy)/i
/** xAI, OpenRouter. */
const contentPhrases = /violates usage guidelines|\bflagged\b|\bmoderation\b/i

function refusesContent({ type, code, message }: ProviderFault): boolean {
  return contentWords.test(code ?? '') || contentWords.test(type ?? '') || contentPhrases.test(message)
}

/** Words of a 403 about a thing that is not available to this account, such as Google's files and caches. */
const thingWords = /\b(files?|cached ?content|attachments?|feature|beta|tools?)\b/i

function refusesThing({ message }: ProviderFault): boolean {
  return thingWords.test(message)
}

/**
 * Whether a 404 or 410 comes from a proxy, or from a host at a wrong address, and not from the API. A sentence about a file
 * does not count: callers can provoke one at any time.
 */
function isFromIntermediary(fault: ProviderFault): boolean {
  const isPage = fault.message.trimStart().startsWith('<')
  return fault.type === undefined && fault.code === undefined && (isPage || !refusesThing(fault))
}

// ── Waits in messages ──

// How long a throttled route must wait if the message says so and no header does: "Please try again in 6m0s.", "please try
// again after 1 seconds". Words that the caller may have written are ignored: they would park the route for everybody.

/** A day, as for headers; health decides how much of it is used. */
const waitMaxMs = 24 * 3_600_000

const part = String.raw`(\d{1,9}(?:\.\d{1,12})?)\s?(ms|milliseconds?|h|hours?|m|min|minutes?|s|sec|seconds?)(?![a-z])[ ,]*`
const wait = new RegExp(`(?:try again|retry) (?:in|after) ((?:${part})+)`, 'i')
const parts = new RegExp(part, 'gi')
/** If the request contains this beginning, the rest may be a quote too. */
const beginning = /(?:try again|retry) (?:in|after) \d/i

const unitMs: readonly [name: RegExp, ms: number][] = [
  [/^(ms|milli)/i, 1],
  [/^s/i, 1000],
  [/^m/i, 60_000],
  [/^h/i, 3_600_000],
]

/** `sent`: the body that the provider was sent; undefined = it contained nothing of a caller. */
function waitInMessageMs({ status, message }: ProviderFault, sent: Uint8Array | undefined): number | undefined {
  const found = status === 429 ? wait.exec(message) : null
  const begun = found && beginning.exec(found[0])
  if (!found || !begun || isQuoted([begun], sent)) return undefined
  const spans = [...(found[1] ?? '').matchAll(parts)].map(([, count, unit = '']) => Number(count) * msOf(unit))
  return Math.min(Math.ceil(spans.reduce((sum, span) => sum + span, 0)), waitMaxMs)
}

function msOf(unit: string): number {
  return unitMs.find(([name]) => name.test(unit))?.[1] ?? 0
}

// ── The request in one spelling ──

// JSON can spell a letter in several ways. To find words of the request that a provider quotes, its body is decoded in one
// pass over the bytes, because a caller may send megabytes of escapes.

/** UTF-8 without escapes, with ASCII in lower case; only for searching with `plainWords`. */
export function plainBody(sent: Uint8Array): Buffer {
  const plain = withoutEscapes(sent)
  return Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength)
}

/** Words in the same spelling. */
export function plainWords(words: string): string {
  return words.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

const backslash = 0x5c
const letterU = 0x75
/** \b \f \n \r \t; all others are literal. */
const controls: Readonly<Record<number, number>> = { 98: 0x08, 102: 0x0c, 110: 0x0a, 114: 0x0d, 116: 0x09 }

/** An escape is longer than its character, so the result always fits. */
function withoutEscapes(sent: Uint8Array): Uint8Array {
  const plain = new Uint8Array(sent.length)
  let length = 0
  let at = 0
  while (at < sent.length) {
    const byte = sent[at] ?? 0
    if (byte !== backslash) {
      plain[length++] = lowerCase(byte)
      at++
      continue
    }
    const sign = sent[at + 1] ?? 0
    const unit = sign === letterU ? hexAt(sent, at + 2) : -1
    if (unit === -1) {
      plain[length++] = controls[sign] ?? lowerCase(sign)
      at += 2
      continue
    }
    at += 6
    const low = isHighSurrogate(unit) && sent[at] === backslash && sent[at + 1] === letterU ? hexAt(sent, at + 2) : -1
    const isPair = low >= 0xdc00 && low <= 0xdfff
    if (isPair) at += 6
    length = putCharacter(plain, length, isPair ? 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) : unit)
  }
  return plain.subarray(0, length)
}

function lowerCase(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

/** The value of four hexadecimal digits; -1 = not a number. */
function hexAt(bytes: Uint8Array, at: number): number {
  let value = 0
  for (let i = at; i < at + 4; i++) {
    const digit = digitOf(bytes[i] ?? 0)
    if (digit === -1) return -1
    value = value * 16 + digit
  }
  return value
}

function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const small = byte | 0x20
  return small >= 0x61 && small <= 0x66 ? small - 0x57 : -1
}

/** Appends a character as UTF-8; half a surrogate pair becomes U+FFFD. */
function putCharacter(bytes: Uint8Array, length: number, code: number): number {
  const whole = code >= 0xd800 && code <= 0xdfff ? 0xfffd : code
  if (whole < 0x80) {
    bytes[length] = lowerCase(whole)
    return length + 1
  }
  const more = whole < 0x800 ? 1 : whole < 0x10000 ? 2 : 3
  const lead = [0, 0xc0, 0xe0, 0xf0][more] ?? 0
  bytes[length] = lead | (whole >> (6 * more))
  for (let i = 1; i <= more; i++) bytes[length + i] = 0x80 | ((whole >> (6 * (more - i))) & 0x3f)
  return length + more + 1
}
