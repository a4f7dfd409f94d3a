// How providers say that an account has run dry, that our credential is no good, that they have no such model, or that
// something which a request names is not to be had. A code or type is theirs alone. A message may quote the request, so
// that any caller could write one that takes a route away from everybody: it counts only where it begins with a sentence
// of theirs that was not sent to them.
// To add one: a row with the words and who uses them, and a sentence of theirs in the test.

import type { ProviderFault } from '../dialects/canonical/faults.ts'
import { plainBody, plainWords } from './plain-body.ts'

interface Signs {
  /** All of a code or type. */
  readonly words?: RegExp
  /**
   * Beginnings of messages, no longer than what tells: the more is matched, the less looks like a quote. `name`: of a
   * model, where a caller may name further ones in the body; what is said of those is about the caller's own.
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
    // Google, as a 429 like any throttle of its.
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
 * (https://help.aliyun.com/en/model-studio/error-code, 2026-11). Whoever quotes them parks less, never more.
 */
const paceWords = /^allocated quota exceeded|#tokens?-limit\b/i

/** A request too large for what is left, or a feature: the account may serve the next one. */
const lackSigns: Signs = {
  sentences: [
    // OpenRouter, with a 402, of an output cap or a prompt that the rest of the credit would not pay.
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
    // Whoever was flagged, it was not what the caller wrote.
    /^(your|the|this)( \S{1,30})? (account|key|organi[sz]ation|project|team)( \S{1,100}){0,3} (has been|have been|was|is) flagged\b/i,
  ],
}

const modelSigns: Signs = {
  // Terms and permissions are Groq's, `not_supported` HuggingFace's, the last two Azure's.
  words:
    /^(model_(not_found|not_available|decommissioned|terms_required|permission_blocked(_org|_project)?|not_supported)|invalid_model|DeploymentNotFound|OperationNotSupported)$/,
  sentences: [
    // Anthropic, where that is all it says.
    /^model: \S+$/,
    // OpenAI, Google, vLLM, Ollama, xAI, DeepSeek and most others: nothing but the model's name in between.
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
    // The same, of models for which it wants to know who asks; a stream is what most callers ask for.
    /^your organization must be verified to (use|stream)\b/i,
    // Azure, where neither the deployment nor the address is known.
    /^resource not found$/i,
    // NVIDIA, the second with a 410; DeepInfra.
    /^function '\S{1,200}': not found for account/i,
    /^the model \S{1,200} has reached its end of life/i,
    /^model is not available/i,
    // HuggingFace.
    /^the requested model \S{1,200} is not supported by any provider/i,
    // Mistral and Perplexity, Together, Moonshot, Bedrock.
    /^(unknown|no such|invalid|unable to access|not found the|could not resolve the foundation) model\b/i,
    // OpenRouter. It says the same of features, with another word behind it. `models` of its requests names more.
    /^no endpoints found for (?<name>\S{1,200}?)\.?(?!\S)/i,
    /^(?<name>\S{1,200}) is not a valid model ID/i,
  ],
}

/** `sent`: the body that the provider was sent; undefined = nothing of a caller's. */
export function saysOutOfQuota(fault: ProviderFault, sent: Uint8Array | undefined): boolean {
  return !paceWords.test(fault.message) && says(quotaSigns, fault, sent)
}

/** Quoted or not: otherwise whoever writes such a sentence would have the account taken for empty. */
export function saysLacking(fault: ProviderFault): boolean {
  return says(lackSigns, fault)
}

export function saysBadCredential(fault: ProviderFault, sent: Uint8Array | undefined): boolean {
  return says(credentialSigns, fault, sent)
}

export function saysUnknownModel(fault: ProviderFault, sent: Uint8Array | undefined): boolean {
  return says(modelSigns, fault, sent)
}

function says({ words, sentences }: Signs, { type, code, message }: ProviderFault, sent?: Uint8Array): boolean {
  if (words?.test(code ?? '') || words?.test(type ?? '')) return true
  const found = sentences.map((sentence) => sentence.exec(message)).filter((begins) => begins !== null)
  return found.length > 0 && !isQuoted(found, sent)
}

/** Whether any of these words of a provider's may be the caller's own. */
export function isQuoted(found: readonly RegExpExecArray[], sent: Uint8Array | undefined): boolean {
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

/** Of a 403: what was written is not allowed. A message that speaks of policies may as well mean those of the account. */
const contentWords = /^(content_|moderation|safety|(cyber|bio|misalignment)_policy)/i
/** xAI, OpenRouter. */
const contentPhrases = /violates usage guidelines|\bflagged\b|\bmoderation\b/i

export function refusesContent({ type, code, message }: ProviderFault): boolean {
  return contentWords.test(code ?? '') || contentWords.test(type ?? '') || contentPhrases.test(message)
}

/** Of a 403: a thing that the request names or wants is not for this account. Google's files and caches among them. */
const thingWords = /\b(files?|cached ?content|attachments?|feature|beta|tools?)\b/i

export function refusesThing({ message }: ProviderFault): boolean {
  return thingWords.test(message)
}

/**
 * Of a 404 or 410: no API said it, but some proxy, or a host at an address that the operator got wrong. A sentence about
 * a file is left out: callers can have one said whenever they like.
 */
export function isNobodys(fault: ProviderFault): boolean {
  const isPage = fault.message.trimStart().startsWith('<')
  return fault.type === undefined && fault.code === undefined && (isPage || !refusesThing(fault))
}
