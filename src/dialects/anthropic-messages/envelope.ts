// Reads what the gateway itself needs from a Messages request: the version header and a few fields of the body. Also the
// headers that are forwarded and those that report limits.

import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { RequestHeaders } from '../../wire/http-message.ts'
import type { JsonSpan } from '../../wire/json.ts'
import { recordOf } from '../canonical/json.ts'
import type { Envelope, SentRequest } from '../canonical/translation.ts'
import type { LimitViews, SpendView } from '../dialect.ts'
import {
  type EnvelopeFields,
  firstMessageSpans,
  memberSpans,
  readFields,
  refuse,
  routingFields,
} from '../request/fields.ts'
import { behindAttribution } from './request/edit.ts'
import { askedIn } from './tiers.ts'

export function readEnvelope(body: Uint8Array<ArrayBuffer>, headers: RequestHeaders): SentRequest | Failure {
  return (
    refusedVersion(headers) ??
    readFields(body, (fields) => {
      const shared = sharedFields(fields)
      // Zero is allowed: it warms the provider's prompt cache without generating.
      const outputCap = fields.optionalInteger('max_tokens', 0)
      if (outputCap === undefined) fields.refuse('max_tokens', '`max_tokens` is missing; this endpoint requires it.')
      const tier = askedIn(fields.value('speed'), fields.value('service_tier'))
      return { ...shared, stream: fields.optionalBoolean('stream') ?? false, outputCap, tier }
    })
  )
}

/** The same, without the fields that only matter for generation. */
export function readCountEnvelope(body: Uint8Array<ArrayBuffer>, headers: RequestHeaders): SentRequest | Failure {
  return refusedVersion(headers) ?? readFields(body, sharedFields)
}

function sharedFields(fields: EnvelopeFields): Envelope {
  const { model, fallbacks, providers } = routingFields(fields)
  fields.requiredList('messages', '`messages` is missing.')
  fields.ofKind('system', ['string', 'array'], 'a string or an array of text blocks')
  fields.ofKind('tools', ['array'], 'an array')
  fields.optionalNumber('temperature')
  if (fields.value('thread') !== undefined) refuse(threadRefusal())
  const offersTools = fields.hasEntries('tools')
  const reasoning = reasoningOf(fields)
  return {
    model,
    fallbacks,
    providers,
    stream: false,
    outputCap: undefined,
    choices: 1,
    offersTools,
    reasoning,
    wantsStreamUsage: true,
  }
}

/** An effort alone requests reasoning as well. */
function reasoningOf(fields: EnvelopeFields): Envelope['reasoning'] {
  const { type } = recordOf(fields.value('thinking'))
  if (type === undefined) return recordOf(fields.value('output_config')).effort === undefined ? undefined : 'on'
  return type === 'disabled' ? 'off' : 'on'
}

/**
 * Refused on any route: a thread would be stored under the operator's account together with those of other callers, and
 * would be lost on failover. Official clients know this code and continue without one.
 */
function threadRefusal(): Failure {
  const message = '`thread` is not available: this gateway keeps no conversations. Send all messages with each request.'
  const details = { error_code: 'thread_unsupported_request' }
  return new Failure('INVALID_REQUEST', message, { param: 'thread', details })
}

function refusedVersion(headers: RequestHeaders): Failure | undefined {
  const version = headers.get('anthropic-version')
  if (version !== null && isVersionDate(version)) return undefined
  const got = version === null ? 'is missing' : 'is not a date'
  return invalidRequest(
    `The header \`anthropic-version\` ${got}; send a date such as \`anthropic-version: 2023-06-01\`.`,
    'anthropic-version',
  )
}

// API versions. Any valid date is accepted from callers; the provider is sent a version it knows, so that an accepted
// date is never refused upstream.

/** Versions that Anthropic serves for messages, ascending (docs of 2026-11). */
const knownVersions = ['2023-06-01', '2026-10-21']

export function isVersionDate(text: string): boolean {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) && text >= '0001' ? Date.parse(text) : Number.NaN
  // The 31st of a short month is parsed as a day of the next one.
  return !Number.isNaN(time) && isoTime(time).startsWith(text)
}

/** The latest known version that is not after the caller's. */
export function upstreamVersion(wanted: string): string {
  return knownVersions.findLast((version) => version <= wanted) ?? (knownVersions[0] as string)
}

// All headers that start with `anthropic-`, such as version and betas, are forwarded: a beta flag and the body field it
// unlocks belong together, so neither is filtered.

export function forwardedHeaders(client: RequestHeaders): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of client) if (name.startsWith('anthropic-')) headers[name] = value
  headers['anthropic-version'] = upstreamVersion(headers['anthropic-version'] ?? '')
  return headers
}

// Remaining limits in the headers that Anthropic's clients read:
// https://docs.anthropic.com/en/api/rate-limits#response-headers

export function limitHeaders({ requests, tokens, spend }: LimitViews, now: number): Record<string, string> {
  const headers: Record<string, string> = spend ? spendHeaders(spend()) : {}
  for (const [name, view] of [['requests', requests] as const, ['tokens', tokens] as const]) {
    if (!view) continue
    headers[`anthropic-ratelimit-${name}-limit`] = String(view.limit)
    headers[`anthropic-ratelimit-${name}-remaining`] = String(view.remaining)
    headers[`anthropic-ratelimit-${name}-reset`] = wholeSecond(now + view.resetMs)
  }
  return headers
}

/** Shares from which Claude Code shows how much of a limit is used. */
const thresholds = [0.95, 0.75]

/**
 * A spend limit as Claude Code shows it (`claude gateway --help` of 2.1.325, 2026-11). Without the claim and the overage's
 * status, it shows the message of a refusal as it is.
 */
function spendHeaders({ used, period, resetsAt, isReached = false }: SpendView): Record<string, string> {
  const passed = isReached ? 1 : thresholds.find((threshold) => used > threshold)
  const status = isReached ? 'rejected' : passed === undefined ? 'allowed' : 'allowed_warning'
  // Below 1 for as long as requests are admitted.
  const share = isReached ? '1' : String(Math.min(99, Math.floor(used * 100)) / 100)
  const resets = String(Math.floor(resetsAt / 1000))
  const name = 'anthropic-ratelimit-unified'
  return {
    [`${name}-status`]: status,
    [`${name}-reset`]: resets,
    [`${name}-overage-reset`]: resets,
    [`${name}-overage-utilization`]: share,
    ...(passed !== undefined && { [`${name}-overage-surpassed-threshold`]: String(passed) }),
    ...(isReached
      ? { [`${name}-overage-period`]: period, [`${name}-overage-disabled-reason`]: 'org_spend_cap_reached' }
      : { [`${name}-representative-claim`]: 'overage', [`${name}-overage-status`]: status }),
  }
}

/** RFC 3339, rounded up, so that waiting until then is enough. */
function wholeSecond(epochMs: number): string {
  return isoTime(Math.ceil(epochMs / 1000) * 1000).replace('.000Z', 'Z')
}

// A conversation is identified by its system prompt, without the billing line that changes with every call, its tools
// and its first message.

export function conversationSpans(sent: SentRequest): readonly JsonSpan[] {
  const system = sent.members.get('system')
  return [
    ...(system ? [{ start: behindAttribution(system), end: system.end }] : []),
    ...memberSpans(sent, 'tools'),
    ...firstMessageSpans(sent, 'messages'),
  ]
}
