// What the gateway itself reads from a Messages request: the version header and a few fields of the body. Also the
// headers that are forwarded and those that report limits.

import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { JsonFault, type JsonMember, memberText, readJsonValueMembers } from '../../wire/json-members.ts'
import type { JsonSpan } from '../../wire/json-spans.ts'
import { type EnvelopeFields, firstMessageSpans, memberSpans, readFields } from '../byte-lane/envelope.ts'
import type { Envelope } from '../canonical/translation.ts'
import type { LimitViews } from '../dialect.ts'
import { behindAttribution } from './request/edit.ts'

export function readEnvelope(body: Uint8Array<ArrayBuffer>, headers: Headers): Envelope | Failure {
  return (
    refusedVersion(headers) ??
    readFields(body, (fields) => {
      const shared = sharedFields(fields)
      // Zero is allowed: it warms the provider's prompt cache without generating.
      const outputCap = fields.optionalInteger('max_tokens', 0)
      if (outputCap === undefined) fields.refuse('max_tokens', '`max_tokens` is missing; this endpoint requires it.')
      const stream = fields.optionalBoolean('stream') ?? false
      return { ...shared, stream, outputCap, wantsStreamUsage: true }
    })
  )
}

/** The same, without the fields that only matter for generation. */
export function readCountEnvelope(body: Uint8Array<ArrayBuffer>, headers: Headers): Envelope | Failure {
  return (
    refusedVersion(headers) ??
    readFields(body, (fields) => ({
      ...sharedFields(fields),
      stream: false,
      outputCap: undefined,
      wantsStreamUsage: true,
    }))
  )
}

function sharedFields(fields: EnvelopeFields) {
  const model = fields.requiredText('model')
  fields.requiredList('messages', () => '`messages` is missing.')
  fields.optionalKind('system', ['string', 'array'], 'a string or an array of text blocks')
  fields.optionalKind('tools', ['array'], 'an array')
  fields.optionalKind('temperature', ['number'], 'a number')
  if (fields.find('thread')) fields.refuseWith(threadRefusal())
  const offersTools = fields.hasEntries('tools')
  return { body: fields.body, members: fields.members, model, choices: 1, offersTools, reasoning: reasoningOf(fields) }
}

/** An effort alone requests reasoning as well. */
function reasoningOf(fields: EnvelopeFields): Envelope['reasoning'] {
  const mode = innerMember(fields, 'thinking', 'type')
  if (!mode) return innerMember(fields, 'output_config', 'effort') ? 'on' : undefined
  return memberText(fields.body, mode) === 'disabled' ? 'off' : 'on'
}

function innerMember({ body, members }: EnvelopeFields, outer: string, name: string): JsonMember | undefined {
  const member = members.find(outer)
  const inside = member && readJsonValueMembers(body, member.valueStart, member.valueEnd)
  return !inside || inside instanceof JsonFault ? undefined : inside.find(name)
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

function refusedVersion(headers: Headers): Failure | undefined {
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
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)
  if (!match) return false
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  return year >= 1 && day >= 1 && day <= daysIn(year, month)
}

/** 0 if it is not a month. */
function daysIn(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0
}

/** The latest known version that is not after the caller's. */
export function upstreamVersion(wanted: string): string {
  let chosen = knownVersions[0] as string
  for (const version of knownVersions) if (version <= wanted) chosen = version
  return chosen
}

// All headers that start with `anthropic-`, such as version and betas, are forwarded: a beta flag and the body field it
// unlocks belong together, so neither is filtered.

export function forwardedHeaders(client: Headers): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of client) if (name.startsWith('anthropic-')) headers[name] = value
  headers['anthropic-version'] = upstreamVersion(headers['anthropic-version'] ?? '')
  return headers
}

// Remaining limits in the headers that Anthropic's clients read:
// https://docs.anthropic.com/en/api/rate-limits#response-headers

export function limitHeaders({ requests, tokens }: LimitViews, now: number): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, view] of [['requests', requests] as const, ['tokens', tokens] as const]) {
    if (!view) continue
    headers[`anthropic-ratelimit-${name}-limit`] = String(view.limit)
    headers[`anthropic-ratelimit-${name}-remaining`] = String(view.remaining)
    headers[`anthropic-ratelimit-${name}-reset`] = wholeSecond(now + view.resetMs)
  }
  return headers
}

/** RFC 3339, rounded up, so that waiting until then is enough. */
function wholeSecond(epochMs: number): string {
  return isoTime(Math.ceil(epochMs / 1000) * 1000).replace('.000Z', 'Z')
}

// A conversation is identified by its system prompt, without the billing line that changes with every call, its tools
// and its first message.

/** Instructions are not messages in this dialect. */
const noInstructions: ReadonlySet<string> = new Set()

export function conversationSpans(envelope: Envelope): readonly JsonSpan[] {
  const system = memberSpans(envelope, 'system').map((span) => ({
    start: behindAttribution(envelope.body, span),
    end: span.end,
  }))
  return [...system, ...memberSpans(envelope, 'tools'), ...firstMessageSpans(envelope, noInstructions)]
}
