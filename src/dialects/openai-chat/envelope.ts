// The facts of a Chat Completions body that the gateway relies on.

import type { Failure } from '../../kernel/failure.ts'
import { JsonFault, memberBoolean, memberKind, memberText, readJsonValueMembers } from '../../wire/json-members.ts'
import { type EnvelopeFields, readFields } from '../byte-lane/envelope.ts'
import type { Envelope } from '../canonical/translation.ts'

/** More choices than anyone shows a person; each is generated and paid for. */
const choicesMax = 8

export function readEnvelope(body: Uint8Array<ArrayBuffer>): Envelope | Failure {
  return readFields(body, (fields) => {
    const model = fields.requiredText('model')
    fields.requiredList('messages', () => missingMessages(fields))
    const stream = fields.optionalBoolean('stream') ?? false
    fields.optionalKind('tools', ['array'], 'an array')
    fields.optionalKind('temperature', ['number'], 'a number')
    const choices = fields.optionalInteger('n', 1, choicesMax) ?? 1
    const maxTokens = fields.optionalInteger('max_tokens', 1)
    const maxCompletionTokens = fields.optionalInteger('max_completion_tokens', 1)
    const offersTools = fields.hasEntries('tools')
    const offersFunctions = fields.hasEntries('functions')
    return {
      body,
      members: fields.members,
      model,
      stream,
      outputCap: maxCompletionTokens ?? maxTokens,
      choices,
      offersTools: offersTools || offersFunctions,
      legacyCalls: offersFunctions && !offersTools,
      reasoning: reasoningOf(fields),
      wantsStreamUsage: includesUsage(fields),
    }
  })
}

function reasoningOf(fields: EnvelopeFields): Envelope['reasoning'] {
  const effort = fields.find('reasoning_effort')
  if (!effort) return undefined
  return memberText(fields.body, effort) === 'none' ? 'off' : 'on'
}

function missingMessages(fields: EnvelopeFields): string {
  if (!fields.find('input')) return '`messages` is missing.'
  return '`messages` is missing. The body has `input`, which belongs to the Responses API; this path takes `messages`.'
}

function includesUsage(fields: EnvelopeFields): boolean {
  const options = fields.optionalKind('stream_options', ['object'], 'an object')
  if (!options) return false
  const members = readJsonValueMembers(fields.body, options.valueStart, options.valueEnd)
  if (members instanceof JsonFault) return fields.refuse('stream_options', `\`stream_options\`: ${members.message}.`)
  const include = members.find('include_usage')
  if (!include || memberKind(fields.body, include) === 'null') return false
  // It is overwritten on the way to the provider, which therefore cannot refuse it.
  const name = 'stream_options.include_usage'
  return memberBoolean(fields.body, include) ?? fields.refuse(name, `\`${name}\` must be true or false.`)
}
