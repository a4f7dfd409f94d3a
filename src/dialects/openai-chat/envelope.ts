// Reads what the gateway itself needs from a Chat Completions body.

import type { Failure } from '../../kernel/failure.ts'
import type { JsonSpan } from '../../wire/json.ts'
import { askedTier, openaiTiers } from '../canonical/tiers.ts'
import type { SentRequest } from '../canonical/translation.ts'
import { firstMessageSpans, memberSpans, openaiInstructing, readFields, routingFields } from '../request/fields.ts'

/** Each choice is generated and paid for. */
const choicesMax = 8

export function readEnvelope(body: Uint8Array<ArrayBuffer>): SentRequest | Failure {
  return readFields(body, (fields) => {
    const { model, fallbacks, providers } = routingFields(fields)
    fields.requiredList('messages', '`messages` is missing.')
    const stream = fields.optionalBoolean('stream') ?? false
    fields.ofKind('tools', ['array'], 'an array')
    fields.optionalNumber('temperature')
    const choices = fields.optionalInteger('n', 1, choicesMax) ?? 1
    const maxTokens = fields.optionalInteger('max_tokens', 1)
    const maxCompletionTokens = fields.optionalInteger('max_completion_tokens', 1)
    const offersTools = fields.hasEntries('tools')
    const offersFunctions = fields.hasEntries('functions')
    const effort = fields.value('reasoning_effort')
    const tier = askedTier(openaiTiers, fields.value('service_tier'))
    return {
      model,
      fallbacks,
      providers,
      stream,
      outputCap: maxCompletionTokens ?? maxTokens,
      choices,
      tier,
      offersTools: offersTools || offersFunctions,
      legacyCalls: offersFunctions && !offersTools,
      reasoning: effort === undefined ? undefined : effort === 'none' ? 'off' : 'on',
      // `include_usage` is overwritten in the forwarded body, so the provider cannot refuse a wrong one.
      wantsStreamUsage: fields.optionalObject('stream_options')?.optionalBoolean('include_usage') ?? false,
    }
  })
}

// A conversation is identified by its tools, its instructions and its first message.

export function conversationSpans(sent: SentRequest): readonly JsonSpan[] {
  return [...memberSpans(sent, 'tools'), ...firstMessageSpans(sent, 'messages', openaiInstructing)]
}
