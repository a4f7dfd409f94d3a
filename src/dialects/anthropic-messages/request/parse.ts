// Parses a Messages body into a Conversation, for a route of another dialect. Accepts whatever official clients send;
// features that only Anthropic has are refused by name or omitted with a warning.

import type { Failure } from '../../../kernel/failure.ts'
import {
  type Conversation,
  efforts,
  type OutputFormat,
  type Pointers,
  type ReasoningSettings,
  type TextBlock,
} from '../../canonical/conversation.ts'
import type { ParsedRequest, SentRequest } from '../../canonical/translation.ts'
import { markOf } from '../../request/cache-marks.ts'
import {
  collectUnsupported,
  type OwnFields,
  type ParseContext,
  parseBody,
  type RequestFields,
  routingMembers,
} from '../../request/fields.ts'
import { askedIn } from '../tiers.ts'
import { withoutAttribution } from './edit.ts'
import { parseMessages, parseText, warnBlockMembers } from './parse-messages.ts'
import { applyToolChanges, parseTool } from './parse-tools.ts'

export function parseRequest(sent: SentRequest): ParsedRequest | Failure {
  return parseBody(sent, (fields, context) => {
    if (sent.envelope.outputCap === 0) {
      const why = '`max_tokens` must be at least 1 here: this model cannot warm a cache without generating.'
      fields.refuse('max_tokens', why)
    }
    if (fields.value('messages') === undefined) fields.missing('messages')
    const messages = parseMessages(fields.objects('messages'), context)
    const declared = fields.objects('tools').flatMap((tool) => parseTool(tool, context) ?? [])
    const toolChoice = parseToolChoice(fields)
    const config = fields.optionalObject('output_config')
    // Its older name is `output_format`.
    const format = config?.optionalObject('format') ?? fields.optionalObject('output_format')
    collectUnsupported(fields, ownFields, context, platformFields)
    collectUnsupported(config, ['effort', 'format'], context)
    collectUnsupported(format, ['type', 'schema', 'name'], context)
    collectUnsupported(fields.optionalObject('thinking'), ['type', 'budget_tokens', 'display'], context)
    collectUnsupported(fields.optionalObject('tool_choice'), ['type', 'name', 'disable_parallel_tool_use'], context)
    collectUnsupported(fields.optionalObject('metadata'), ['user_id'], context)
    return {
      conversation: {
        system: [...parseSystem(fields, context), ...messages.leading],
        turns: messages.turns,
        tools: messages.toolChanges.length > 0 ? applyToolChanges(declared, messages.toolChanges) : declared,
        ...toolChoice,
        sampling: {
          temperature: fields.optionalNumber('temperature'),
          topP: fields.optionalNumber('top_p'),
          topK: fields.optionalNumber('top_k'),
        },
        outputCap: sent.envelope.outputCap,
        stop: fields.texts('stop_sequences'),
        reasoning: parseReasoning(fields, config),
        outputFormat: format && parseOutputFormat(format, context),
        // An empty id identifies no one.
        endUserId: fields.optionalObject('metadata')?.optionalText('user_id') || undefined,
        serviceTier: parseServiceTier(fields),
        automaticCache: markOf(fields).cacheMark,
        unsupported: context.unsupported,
        pointers: pointersOf(fields, config),
      },
      warnings: context.warnings.list,
    }
  })
}

function parseSystem(fields: RequestFields, context: ParseContext): TextBlock[] {
  const blocks = fields.blocks('system', (block) => {
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

// Parses everything except messages and tools: tool choice, reasoning, output format, stop sequences, tier, and the
// fields that only this dialect has.

function parseToolChoice(body: RequestFields): Pick<Conversation, 'toolChoice' | 'parallelTools'> {
  const fields = body.optionalObject('tool_choice')
  if (!fields) return {}
  const parallelTools = fields.optionalBoolean('disable_parallel_tool_use') ? false : undefined
  const type = fields.optionalWord('type', ['auto', 'any', 'tool', 'none']) ?? fields.missing('type')
  if (type === 'tool') return { toolChoice: { kind: 'named', name: fields.text('name') }, parallelTools }
  return { toolChoice: { kind: type === 'any' ? 'required' : type }, parallelTools }
}

const modes = { adaptive: 'adaptive', enabled: 'on', disabled: 'off', between_tools: 'between-tools' } as const

function parseReasoning(body: RequestFields, config: RequestFields | undefined): ReasoningSettings | undefined {
  const thinking = body.optionalObject('thinking')
  const effort = config?.optionalWord('effort', efforts)
  const type = thinking?.optionalWord('type', ['adaptive', 'enabled', 'disabled', 'between_tools'])
  if (thinking && !type) thinking.missing('type')
  const budgetTokens = thinking?.optionalNumber('budget_tokens')
  const display = thinking?.optionalText('display')
  if (!thinking && effort === undefined) return undefined
  const visible = display === undefined ? undefined : display !== 'omitted'
  return { effort, budgetTokens, mode: type && modes[type], visible }
}

function parseOutputFormat(format: RequestFields, context: ParseContext): OutputFormat {
  format.optionalWord('type', ['json_schema'])
  const schema = format.requiredObject('schema')
  const written = context.rawText(schema.at)
  return { kind: 'json-schema', schema: written }
}

function parseServiceTier(body: RequestFields): Conversation['serviceTier'] {
  const speed = body.optionalWord('speed', ['standard', 'fast'])
  return askedIn(speed, body.optionalWord('service_tier', ['auto', 'standard_only']))
}

/** JSON pointers to the settings whose names differ between dialects. */
function pointersOf(body: RequestFields, config: RequestFields | undefined): Pointers {
  return {
    system: '/system',
    stop: '/stop_sequences',
    reasoning: config?.value('effort') ? '/output_config/effort' : '/thinking',
    outputFormat: config?.value('format') ? '/output_config/format' : '/output_format',
    endUserId: '/metadata/user_id',
    serviceTier: body.value('speed') === 'fast' ? '/speed' : '/service_tier',
    parallelTools: '/tool_choice/disable_parallel_tool_use',
  }
}

/** Fields of Anthropic's platform. */
const platformFields: OwnFields = {
  inference_geo: {
    reason: '`inference_geo` cannot be guaranteed for this model; leave it out or choose one that Anthropic serves.',
  },
  container: {
    addsInput: true,
    reason: '`container` (with its skills) runs at Anthropic and is not available for this model.',
  },
  mcp_servers: {
    addsInput: true,
    reason: '`mcp_servers` are called by Anthropic and are not available for this model.',
  },
  // Claude Code's auto mode then makes the check itself (protocol of `claude gateway` 2.1.325); without an error it had none.
  safeguards: { reason: '`safeguards` are checked by Anthropic and are not available for this model; leave them out.' },
  compaction: { reason: '`compaction` is done by Anthropic and is not available for this model.' },
}

/** Parsed elsewhere. */
export const ownFields = [
  ...['model', 'messages', 'max_tokens', 'system', 'cache_control', 'metadata', 'output_config', 'output_format'],
  ...['service_tier', 'speed', 'stop_sequences', 'stream', 'thinking', 'thread', 'tool_choice', 'tools'],
  ...['temperature', 'top_p', 'top_k'],
  ...routingMembers,
]
