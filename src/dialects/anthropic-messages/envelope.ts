// The facts of a Messages request that the gateway relies on: the version header, and a few fields of the body.

import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { JsonFault, type JsonMember, memberText, readJsonValueMembers } from '../../wire/json-members.ts'
import { type EnvelopeFields, readFields } from '../byte-lane/envelope.ts'
import type { Envelope } from '../canonical/translation.ts'
import { isVersionDate } from './version.ts'

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

/** The same body without what only matters when something is generated. */
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

/** An effort alone asks for reasoning as well. */
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
 * Whatever the route: a thread would be kept under the operator's account, where every other caller's are, and would be
 * lost with the first failover. Official clients know this code and go on without one.
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
