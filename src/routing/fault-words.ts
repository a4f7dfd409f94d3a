// How providers say that an account has run dry, that our credential is no good, that they have no such model, or that
// something which a request names is not to be had. A code or type is theirs alone. A message may quote the request, so
// that any caller could write one that takes a route away from everybody: it counts only where it begins with a sentence
// of theirs that was not sent to them.
// To add one: a row with the words and who uses them, and a sentence of theirs in the test.

import type { ProviderFault } from '../dialects/canonical/provider-fault.ts'

interface Signs {
  /** All of a code or type. */
  readonly words: RegExp
  /**
   * Beginnings of messages, no longer than what tells: the more is matched, the less looks like a quote. `name`: of a
   * model, where a caller may name further ones in the body; what is said of those is about the caller's own.
   */
  readonly sentences: readonly RegExp[]
}

const quotaSigns: Signs = {
  // The last three: OpenAI, Moonshot, Qwen.
  words:
    /^(insufficient_quota|billing_hard_limit_reached|enforced_spend_limit_reached|billing_not_active|exceeded_current_quota_error|Arrearage)$/,
  sentences: [
    // Anthropic, both as a 400 invalid_request_error; the second is its spend limit (anthropics/claude-code#38035, 2026-03).
    /^your credit balance is too low/i,
    /^you have reached your specified (workspace )?API usage limits/i,
    // Fireworks, as a 412.
    /^account \S{1,200} is suspended/i,
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
    // OpenAI, with a 403. Other scopes are those of files and tools, which the rest of the callers may not want.
    /^you have insufficient permissions for this operation\. missing scopes: ([\w.]{1,60}, ){0,20}model\.request\b/i,
    /^(your|the|this)( \S{1,30}){0,3} plan does not include\b/i,
    // Whoever was flagged, it was not what the caller wrote.
    /^(your|the|this)( \S{1,30})? (account|key|organi[sz]ation|project|team)( \S{1,100}){0,3} (has been|have been|was|is) flagged\b/i,
  ],
}

const modelSigns: Signs = {
  words: /^(model_(not_found|not_available|decommissioned)|invalid_model|DeploymentNotFound)$/,
  sentences: [
    // Anthropic, where that is all it says.
    /^model: \S+$/,
    // OpenAI, Google, vLLM, Ollama, xAI, DeepSeek and most others: nothing but the model's name in between.
    /^((the|requested|publisher) )*models?( ?\S{1,200})?( (is|was|does))? not (found|exist)/i,
    // Bedrock.
    /^(the provided|this) model (identifier is invalid|version has reached the end of its life)/i,
    /^access denied\. this model is marked by provider as legacy/i,
    /^model use case details have not been submitted/i,
    // Google.
    /^this model (models\/\S{1,200} )?is no longer available/i,
    // OpenAI, of a model that only its other interfaces have.
    /^this (is not a chat model|model is only supported in v1\/)/i,
    // Azure, where neither the deployment nor the address is known.
    /^resource not found$/i,
    // NVIDIA, DeepInfra.
    /^function '\S{1,200}': not found for account/i,
    /^model is not available/i,
    // Mistral and Perplexity, Together, Moonshot, Bedrock.
    /^(unknown|no such|invalid|unable to access|not found the|could not resolve the foundation) model\b/i,
    // OpenRouter. It says the same of features, with another word behind it. `models` of its requests names more.
    /^no endpoints found for (?<name>\S{1,200}?)\.?(?!\S)/i,
    /^(?<name>\S{1,200}) is not a valid model ID/i,
  ],
}

/** `sent`: the body that the provider was sent; undefined = nothing of a caller's. */
export function saysOutOfQuota(fault: ProviderFault, sent: Uint8Array | undefined): boolean {
  return says(quotaSigns, fault, sent)
}

export function saysBadCredential(fault: ProviderFault, sent: Uint8Array | undefined): boolean {
  return says(credentialSigns, fault, sent)
}

export function saysUnknownModel(fault: ProviderFault, sent: Uint8Array | undefined): boolean {
  return says(modelSigns, fault, sent)
}

function says({ words, sentences }: Signs, { type, code, message }: ProviderFault, sent?: Uint8Array): boolean {
  if (words.test(code ?? '') || words.test(type ?? '')) return true
  const found = sentences.map((sentence) => sentence.exec(message)).filter((begins) => begins !== null)
  if (found.length === 0 || sent === undefined) return found.length > 0
  const body = plainText(sent)
  return !found.some((begins) => isQuote(begins, body))
}

function isQuote({ 0: words, groups }: RegExpExecArray, body: string): boolean {
  if (body.includes(words.toLowerCase())) return true
  const name = groups?.name?.toLowerCase()
  return name !== undefined && body.replace(/"model"\s*:\s*"[^"]*"/g, '').includes(`"${name}"`)
}

/** However the caller spelled it: JSON has more than one way to write a letter. */
function plainText(sent: Uint8Array): string {
  return new TextDecoder()
    .decode(sent)
    .replace(/\\(?:u([0-9a-f]{4})|(.))/gi, (_, hex?: string, sign = '') =>
      hex === undefined ? sign : String.fromCharCode(Number.parseInt(hex, 16)),
    )
    .toLowerCase()
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
 * Of a 404: no API said it, but some proxy, or a host at an address that the operator got wrong. A sentence about a file
 * is left out: callers can have one said whenever they like.
 */
export function isNobodys(fault: ProviderFault): boolean {
  const isPage = fault.message.trimStart().startsWith('<')
  return fault.type === undefined && fault.code === undefined && (isPage || !refusesThing(fault))
}
