// Reads what the gateway itself needs from a Responses body.

import type { Failure } from '../../kernel/failure.ts'
import type { JsonSpan } from '../../wire/json.ts'
import { askedTier, openaiTiers } from '../canonical/tiers.ts'
import type { SentRequest } from '../canonical/translation.ts'
import {
  type EnvelopeFields,
  envelopeOf,
  firstMessageSpans,
  memberSpans,
  openaiInstructing,
  readFields,
  routingFields,
} from '../request/fields.ts'

/** Members that refer to something stored, and the advice. A response stored here was put into the input before. */
const stateful = Object.entries({
  previous_response_id:
    '`previous_response_id`: responses are not stored here. Send the whole conversation in `input`.',
  conversation: '`conversation`: conversations are not stored here. Send the whole one in `input`.',
  prompt: '`prompt`: templates are kept by one provider. Send their text in `instructions` and `input`.',
})

export function readEnvelope(body: Uint8Array<ArrayBuffer>): SentRequest | Failure {
  return readFields(body, (fields) => {
    const { model, fallbacks, providers } = routingFields(fields)
    checkInput(fields)
    if (fields.optionalBoolean('background')) {
      fields.refuse('background', '`background`: responses do not run in the background here. Leave it out.')
    }
    const wantsStore = fields.optionalBoolean('store')
    fields.ofKind('tools', ['array'], 'an array')
    fields.optionalNumber('temperature')
    const effort = fields.optionalObject('reasoning')?.value('effort')
    const tier = askedTier(openaiTiers, fields.value('service_tier'))
    return {
      model,
      fallbacks,
      providers,
      stream: fields.optionalBoolean('stream') ?? false,
      outputCap: fields.optionalInteger('max_output_tokens', 1),
      choices: 1,
      tier,
      offersTools: fields.hasEntries('tools'),
      reasoning: effort === undefined ? undefined : effort === 'none' ? 'off' : 'on',
      // The last event always has the usage.
      wantsStreamUsage: true,
      ...(wantsStore !== undefined && { wantsStore }),
    }
  })
}

/** A shorter form of a conversation, made and encrypted by the provider. */
export function readCompaction(body: Uint8Array<ArrayBuffer>): SentRequest | Failure {
  return readFields(body, (fields) => {
    const model = fields.text('model')
    checkInput(fields)
    return envelopeOf({ model, upstreamPath: '/responses/compact' })
  })
}

function checkInput(fields: EnvelopeFields): void {
  fields.requiredInput('belongs to Chat Completions; this path takes `input`.')
  for (const [name, reason] of stateful) {
    if (fields.value(name) !== undefined) fields.refuse(name, reason)
  }
}

// A conversation is identified by its tools, its instructions and its first item that is not an instruction.

export function conversationSpans(sent: SentRequest): readonly JsonSpan[] {
  const first = firstMessageSpans(sent, 'input', openaiInstructing)
  return [...memberSpans(sent, 'tools', 'instructions'), ...first]
}
