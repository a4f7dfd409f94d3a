// What the gateway itself reads from a Chat Completions body, and the rate limit headers.

import type { Failure } from '../../kernel/failure.ts'
import type { JsonSpan } from '../../wire/json-spans.ts'
import { type EnvelopeFields, firstMessageSpans, memberSpans, readFields } from '../byte-lane/envelope.ts'
import type { Envelope } from '../canonical/translation.ts'
import type { LimitViews } from '../dialect.ts'

/** Each choice is generated and paid for. */
const choicesMax = 8

export function readEnvelope(body: Uint8Array<ArrayBuffer>): Envelope | Failure {
  return readFields(body, (fields) => {
    const model = fields.text('model')
    fields.requiredList('messages', missingMessages(fields))
    const stream = fields.optionalBoolean('stream') ?? false
    fields.ofKind('tools', ['array'], 'an array')
    fields.optionalNumber('temperature')
    const choices = fields.optionalInteger('n', 1, choicesMax) ?? 1
    const maxTokens = fields.optionalInteger('max_tokens', 1)
    const maxCompletionTokens = fields.optionalInteger('max_completion_tokens', 1)
    const offersTools = fields.hasEntries('tools')
    const offersFunctions = fields.hasEntries('functions')
    const effort = fields.value('reasoning_effort')
    return {
      body,
      members: fields.members,
      model,
      stream,
      outputCap: maxCompletionTokens ?? maxTokens,
      choices,
      offersTools: offersTools || offersFunctions,
      legacyCalls: offersFunctions && !offersTools,
      reasoning: effort === undefined ? undefined : effort === 'none' ? 'off' : 'on',
      // It is overwritten in the forwarded body, so the provider cannot refuse it.
      wantsStreamUsage: fields.optionalObject('stream_options')?.optionalBoolean('include_usage') ?? false,
    }
  })
}

function missingMessages(fields: EnvelopeFields): string {
  if (!fields.members.find('input')) return '`messages` is missing.'
  return '`messages` is missing. The body has `input`, which belongs to the Responses API; this path takes `messages`.'
}

// Remaining limits in the headers that OpenAI's clients read:
// https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers

export function limitHeaders({ requests, tokens }: LimitViews): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, view] of [['requests', requests] as const, ['tokens', tokens] as const]) {
    if (!view) continue
    headers[`x-ratelimit-limit-${name}`] = String(view.limit)
    headers[`x-ratelimit-remaining-${name}`] = String(view.remaining)
    headers[`x-ratelimit-reset-${name}`] = durationText(view.resetMs)
  }
  return headers
}

/** `350ms`, `12s`, `6m0s`, `1h0m5s`. Seconds are rounded up, so that waiting that long is enough. */
function durationText(milliseconds: number): string {
  if (milliseconds > 0 && milliseconds < 1000) return `${Math.ceil(milliseconds)}ms`
  const seconds = Math.ceil(milliseconds / 1000)
  const minutes = Math.floor(seconds / 60)
  if (minutes === 0) return `${seconds}s`
  const rest = `${seconds % 60}s`
  return minutes < 60 ? `${minutes}m${rest}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${rest}`
}

// A conversation is identified by its tools, its instructions and its first message.

const instructing: ReadonlySet<string> = new Set(['system', 'developer'])

export function conversationSpans(envelope: Envelope): readonly JsonSpan[] {
  return [...memberSpans(envelope, 'tools'), ...firstMessageSpans(envelope, instructing)]
}
