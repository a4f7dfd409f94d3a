// How providers say that an account has run dry, that they have no such model, or that something which a request names is
// not to be had. A code or type is theirs alone. A message may quote the request, so that any caller could write one that
// takes a route away from everybody: it counts only where it begins with a sentence of theirs that was not sent to them.
// To add one: a row with the words and who uses them, and a sentence of theirs in the test.

import type { ProviderFault } from '../dialects/canonical/provider-fault.ts'

interface Signs {
  /** All of a code or type. */
  readonly words: RegExp
  /** Beginnings of messages, no longer than what tells: the more is matched, the less looks like a quote. */
  readonly sentences: readonly RegExp[]
}

const quotaSigns: Signs = {
  words: /^(insufficient_quota|billing_hard_limit_reached|enforced_spend_limit_reached)$/,
  sentences: [
    // Anthropic, both as a 400 invalid_request_error; the second is its spend limit (anthropics/claude-code#38035, 2026-03).
    /^your credit balance is too low/i,
    /^you have reached your specified API usage limits/i,
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
    // Mistral and Perplexity, Together, Moonshot, Bedrock.
    /^(unknown|no such|invalid|unable to access|not found the|could not resolve the foundation) model\b/i,
    // OpenRouter. It says the same of features, with another word behind it.
    /^no endpoints found for /i,
  ],
}

/** `sent`: the body that the provider was sent; undefined = nothing of a caller's. */
export function saysOutOfQuota(fault: ProviderFault, sent: Uint8Array | undefined): boolean {
  return says(quotaSigns, fault, sent)
}

export function saysUnknownModel(fault: ProviderFault, sent: Uint8Array | undefined): boolean {
  return says(modelSigns, fault, sent)
}

function says({ words, sentences }: Signs, { type, code, message }: ProviderFault, sent?: Uint8Array): boolean {
  if (words.test(code ?? '') || words.test(type ?? '')) return true
  const found = sentences.map((sentence) => sentence.exec(message)?.[0]).filter((begins) => begins !== undefined)
  return found.length > 0 && !found.some((begins) => isQuote(begins, sent))
}

/** However the caller spelled it: JSON has more than one way to write a letter. */
function isQuote(words: string, sent: Uint8Array | undefined): boolean {
  if (sent === undefined) return false
  const plain = new TextDecoder()
    .decode(sent)
    .replace(/\\(?:u([0-9a-f]{4})|(.))/gi, (_, hex?: string, sign = '') =>
      hex === undefined ? sign : String.fromCharCode(Number.parseInt(hex, 16)),
    )
  return plain.toLowerCase().includes(words.toLowerCase())
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
