// Parses a Messages body into a Conversation, for a route of another dialect. Accepts whatever official clients send;
// features that only Anthropic has are refused by name or omitted with a warning.

import type { Failure } from '../../../kernel/failure.ts'
import { utf8Text } from '../../../wire/bytes.ts'
import { JsonNode } from '../../../wire/json-members.ts'
import type { Sampling, TextBlock } from '../../canonical/conversation.ts'
import type { Envelope, ParsedRequest } from '../../canonical/translation.ts'
import { readCacheControl } from '../../request/cache-marks.ts'
import { RequestFields, readRequest } from '../../request/fields.ts'
import { WarningList } from '../../request/warnings.ts'
import type { ParseContext } from './context.ts'
import { withoutAttribution } from './edit.ts'
import { parseMessages, parseText, warnBlockMembers } from './parse-messages.ts'
import {
  collectUnsupported,
  parseOutputFormat,
  parseReasoning,
  parseServiceTier,
  parseStop,
  parseToolChoice,
  placesOf,
} from './parse-settings.ts'
import { applyToolChanges, parseTools } from './parse-tools.ts'

export function parseRequest(envelope: Envelope): ParsedRequest | Failure {
  return readRequest(() => {
    const { body, members } = envelope
    const fields = RequestFields.of(JSON.parse(utf8Text(body, 0, body.length)), '')
    refuseUntranslatable(fields, envelope)
    const context: ParseContext = { warnings: new WarningList(), unsupported: [] }
    const raw = JsonNode.root(body, members)
    const rawMessages = raw.member('messages') ?? fields.missing('messages')
    const messages = parseMessages(fields.optionalList('messages') ?? [], rawMessages, context)
    const declared = parseTools(fields.optionalList('tools') ?? [], raw.member('tools'), context)
    const { choice, parallel } = parseToolChoice(fields)
    collectUnsupported(fields, context)
    return {
      conversation: {
        system: [...parseSystem(fields, context), ...messages.leading],
        turns: messages.turns,
        tools: messages.toolChanges.length > 0 ? applyToolChanges(declared, messages.toolChanges) : declared,
        toolChoice: choice,
        parallelTools: parallel,
        sampling: parseSampling(fields),
        outputCap: envelope.outputCap,
        stop: parseStop(fields),
        reasoning: parseReasoning(fields),
        outputFormat: parseOutputFormat(fields, raw),
        // An empty id identifies no one.
        endUserId: fields.optionalObject('metadata')?.optionalText('user_id') || undefined,
        serviceTier: parseServiceTier(fields),
        verbosity: undefined,
        promptCacheKey: undefined,
        automaticCache: readCacheControl(fields),
        stream: envelope.stream,
        wantsStreamUsage: envelope.wantsStreamUsage,
        unsupported: context.unsupported,
        places: placesOf(fields),
      },
      warnings: context.warnings.list,
    }
  })
}

function refuseUntranslatable(fields: RequestFields, { outputCap }: Envelope): void {
  if (outputCap === 0) {
    fields.refuse(
      'max_tokens',
      '`max_tokens` must be at least 1 here: this model cannot warm a cache without generating.',
    )
  }
}

function parseSystem(fields: RequestFields, context: ParseContext): TextBlock[] {
  const system = fields.textOrObjects('system')
  const blocks: TextBlock[] =
    typeof system === 'string'
      ? system === ''
        ? []
        : [{ kind: 'text', text: system }]
      : system.map((block) => {
          block.optionalWord('type', ['text'])
          warnBlockMembers(block, context)
          return parseText(block, context)
        })
  // Parsed requests go to another dialect, where the billing line has no meaning.
  return blocks.flatMap((block) => {
    const text = withoutAttribution(block.text)
    return text === undefined ? [] : [{ ...block, text }]
  })
}

function parseSampling(fields: RequestFields): Sampling {
  const temperature = fields.optionalNumber('temperature')
  const topP = fields.optionalNumber('top_p')
  const topK = fields.optionalNumber('top_k')
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
  }
}
