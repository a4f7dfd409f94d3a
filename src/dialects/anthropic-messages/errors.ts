// Errors of the Messages API: reading providers' errors, writing ours.

import { type ContextOverflow, type Failure, failureTable, type ProviderRefusal } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import { sseEvent } from '../../wire/sse.ts'
import { faultInSuccess, type ProviderFault, statusesOf } from '../canonical/faults.ts'

/** HTTP statuses for error types inside a 200 (docs of 2026-11). */
const statuses = statusesOf({
  400: ['invalid_request_error'],
  401: ['authentication_error'],
  402: ['billing_error'],
  403: ['permission_error'],
  404: ['not_found_error'],
  413: ['request_too_large'],
  429: ['rate_limit_error'],
  500: ['api_error'],
  504: ['timeout_error'],
  529: ['overloaded_error'],
})

export function readErrorObject(error: unknown): ProviderFault {
  return faultInSuccess(error, statuses)
}

export function renderFailure(failure: Failure, requestId: RequestId): string {
  const { refusal, details, metadata, isSpendLimit } = failure.facts
  const isOwn = refusal === undefined || refusal.dialect === 'anthropic-messages'
  const error = {
    // Claude Code shows the message of this type as it is, and does not retry.
    type: isSpendLimit ? 'billing_error' : failureTable[failure.code].messagesType,
    message: withCapability(failure, refusal ? refusalMessage(failure.message, refusal) : failure.message),
    code: failure.code,
    ...(details === undefined || !isOwn ? {} : { details }),
    ...(metadata && { metadata }),
  }
  return JSON.stringify({ type: 'error', error, request_id: requestId })
}

export function renderStreamFailure(failure: Failure, requestId: RequestId): Uint8Array {
  return sseEvent('error', renderFailure(failure, requestId))
}

// Claude Code recovers from some refusals: it leaves out images, thinking or the effort and sends the request again. It
// recognises Anthropic's words, and in their place a token (`claude gateway --help` of 2.1.325, 2026-11). Other providers,
// and this gateway, use other words, so the token is added after them.

/** In the order of Claude Code's list: the first that fits wins, `$1` is what its words name. Anything uncertain gets no token. */
const capabilities: readonly (readonly [name: string, words: RegExp])[] = [
  // Chat templates of open models, such as Qwen's on vLLM.
  [
    'mid_conv_system',
    /system messages? must be at the (beginning|start)|only supports? (one|a single) system message/i,
  ],
  ['cache_control_field', /(unknown|unrecognized|unexpected|extra|unsupported)[^.]{0,60}cache_control/i],
  ['thinking_signature', /invalid_encrypted_content|encrypted content[^.]{0,60}(could not be|not) verified/i],
  [
    'thinking_signature',
    /thought[ _]?signature[^.]{0,60}(invalid|not valid|corrupted|missing)|(invalid|missing a) thought[ _]?signature/i,
  ],
  ['thinking_type:$1', /thinking[._ ]type[^a-z]{1,8}(enabled|adaptive)\b[^.]{0,80}(?:not support|unsupported)/i],
  ['thinking_type:$1', /\b(adaptive) thinking is not supported/i],
  [
    'structured_outputs_unsupported',
    /(response_format|text\.format|json_schema)[^.]{0,80}(not support|unsupported|unavailable)/i,
  ],
  [
    'structured_outputs_unsupported',
    /(not support|unsupported)[^.]{0,60}(response_format|json_schema|structured outputs?)/i,
  ],
  ['effort_unsupported', /unsupported (parameter|value):? '?(reasoning[._]effort|reasoning|output_config)/i],
  [
    'effort_unsupported',
    /reasoning[._ ]?effort[^.]{0,60}(not support|unsupported)|not support[^.]{0,40}reasoning[._ ]?effort/i,
  ],
  ['media_budget', /too many images/i],
  ['image_block', /not (take|support) (images\b|image input|image_url|vision)|images? of this type are not supported/i],
  ['image_block', /(unsupported|invalid|could not process|unable to process|failed to (load|decode))( \w+)? image\b/i],
  [
    'document_block',
    /not (take|support) (documents\b|pdfs?\b|file (input|content)s?)|(invalid|unable to process)( \w+)? (pdf|document|file data)\b/i,
  ],
  // Anthropic's words from a proxy of another dialect, and the place that strict mode names.
  [
    'beta_header:$1',
    /unexpected value(?:\(s\)|s)? `([\w.-]+)`[^.]{0,40}anthropic-beta|\(anthropic-beta\.([\w.-]*\w)\)/i,
  ],
]

function withCapability({ code, facts: { refusal } }: Failure, message: string): string {
  if (code !== 'INVALID_REQUEST' || refusal?.dialect === 'anthropic-messages' || refusal?.overflow) return message
  for (const [name, words] of capabilities) {
    const found = words.exec(message)
    if (!found) continue
    const named = found.slice(1).find((part) => part !== undefined) ?? ''
    return `${message} (capability_rejected: ${name.replace('$1', () => named)})`
  }
  return message
}

/**
 * Anthropic's two messages for a prompt that does not fit; clients react to them by compacting or by lowering the cap.
 */
const overflowSentences = /prompt is too long|input length and `?max_tokens`? exceed context limit/i

/** The provider's message, with the phrases that clients of this dialect match to recover from an error. */
function refusalMessage(said: string, { provider, dialect, word, overflow }: ProviderRefusal): string {
  const isOwn = dialect === 'anthropic-messages'
  // Hosts of this dialect may use other words: Bedrock says "Input is too long for requested model."
  if (overflow && !(isOwn && overflowSentences.test(said))) {
    const quoted = said === '' ? '' : ` Provider ${provider}: ${said}`
    return `${tooLong(overflow)}${quoted} (capability_rejected: ${overflowToken(overflow)})`
  }
  return isOwn || word === undefined || said.includes(word) ? said : `${said} (${word})`
}

/** The prompt alone would fit: lowering the cap is enough. */
function overflowToken({ tokens, limit, outputCap }: ContextOverflow): string {
  const isCap = tokens !== undefined && limit !== undefined && outputCap && tokens - outputCap < limit
  return isCap ? 'max_tokens_context_overflow' : 'prompt_too_long'
}

/** Anthropic's two messages: what is too long, and, if the output cap is part of it, by how much to lower the cap. */
function tooLong({ tokens, limit, outputCap, isEstimated }: ContextOverflow): string {
  if (tokens === undefined || limit === undefined) return 'prompt is too long:'
  if (isEstimated) return `prompt is too long: ${tokens} tokens > ${limit} maximum (estimated by Tollgate).`
  const tooMany = `prompt is too long: ${tokens} tokens > ${limit} maximum.`
  if (!outputCap) return tooMany
  const parts = `${tokens - outputCap} + ${outputCap} > ${limit}`
  return `${tooMany} input length and \`max_tokens\` exceed context limit: ${parts}, decrease input length or \`max_tokens\` and try again.`
}
