// Parses everything except messages and tools: tool choice, reasoning, output format, stop sequences, tier, and the
// fields that only this dialect has.

import type { JsonNode } from '../../../wire/json-members.ts'
import {
  type Conversation,
  efforts,
  type OutputFormat,
  type Places,
  type ReasoningWish,
  type ToolChoice,
} from '../../canonical/conversation.ts'
import { type RequestFields, wrongType } from '../../request/fields.ts'
import type { ParseContext } from './context.ts'

export function parseToolChoice(body: RequestFields): { choice: ToolChoice | undefined; parallel: false | undefined } {
  const fields = body.optionalObject('tool_choice')
  if (!fields) return { choice: undefined, parallel: undefined }
  const parallel = fields.optionalBoolean('disable_parallel_tool_use') ? false : undefined
  const type = fields.optionalWord('type', ['auto', 'any', 'tool', 'none']) ?? fields.missing('type')
  if (type === 'tool') return { choice: { kind: 'named', name: fields.text('name') }, parallel }
  return { choice: { kind: type === 'any' ? 'required' : type }, parallel }
}

const modes = { adaptive: 'adaptive', enabled: 'on', disabled: 'off', between_tools: 'between-tools' } as const

export function parseReasoning(body: RequestFields): ReasoningWish | undefined {
  const thinking = body.optionalObject('thinking')
  const effort = body.optionalObject('output_config')?.optionalWord('effort', efforts)
  const type = thinking?.optionalWord('type', ['adaptive', 'enabled', 'disabled', 'between_tools'])
  if (thinking && !type) thinking.missing('type')
  const budgetTokens = thinking?.optionalNumber('budget_tokens')
  const display = thinking?.optionalText('display')
  const wish: ReasoningWish = {
    ...(effort === undefined ? {} : { effort }),
    ...(budgetTokens === undefined ? {} : { budgetTokens }),
    ...(type === undefined ? {} : { mode: modes[type] }),
    ...(display === undefined ? {} : { visible: display !== 'omitted' }),
  }
  return Object.keys(wish).length > 0 ? wish : undefined
}

/** `output_config.format`, or its older name `output_format`. */
export function parseOutputFormat(body: RequestFields, raw: JsonNode): OutputFormat | undefined {
  const config = body.optionalObject('output_config')
  const format = config?.optionalObject('format') ?? body.optionalObject('output_format')
  if (!format) return undefined
  const node =
    config?.value('format') === undefined ? raw.member('output_format') : raw.member('output_config')?.member('format')
  format.optionalWord('type', ['json_schema'])
  if (!format.optionalObject('schema')) format.missing('schema')
  const schema = node?.member('schema')?.text ?? format.refuse('schema', 'A member of the format stands twice.')
  return { kind: 'json-schema', name: undefined, description: undefined, schema, strict: undefined }
}

export function parseStop(body: RequestFields): string[] {
  return (body.optionalList('stop_sequences') ?? []).map((value, i) =>
    typeof value === 'string' ? value : wrongType(`/stop_sequences/${i}`, 'a string', value),
  )
}

/** Only speed costs more; the tier says whether purchased capacity may be used. */
export function parseServiceTier(body: RequestFields): Conversation['serviceTier'] {
  if (body.optionalWord('speed', ['standard', 'fast']) === 'fast') return 'fast'
  const tier = body.optionalWord('service_tier', ['auto', 'standard_only'])
  return tier === 'standard_only' ? 'standard' : tier
}

/** JSON pointers to the settings whose names differ between dialects. */
export function placesOf(body: RequestFields): Places {
  const effort = body.optionalObject('output_config')?.value('effort') !== undefined
  const format = body.optionalObject('output_config')?.value('format') !== undefined
  return {
    system: '/system',
    outputCap: '/max_tokens',
    stop: '/stop_sequences',
    reasoning: effort ? '/output_config/effort' : '/thinking',
    outputFormat: format ? '/output_config/format' : '/output_format',
    endUserId: '/metadata/user_id',
    serviceTier: body.value('speed') === 'fast' ? '/speed' : '/service_tier',
    parallelTools: '/tool_choice/disable_parallel_tool_use',
    automaticCache: '/cache_control',
  }
}

/** Fields of Anthropic's platform, refused if omitting them would break a guarantee. */
const platformFields: readonly { readonly name: string; readonly refuse?: string; readonly addsInput?: true }[] = [
  { name: 'context_management' },
  { name: 'diagnostics' },
  { name: 'fallbacks' },
  { name: 'fallback_credit_token' },
  {
    name: 'inference_geo',
    refuse: '`inference_geo` cannot be guaranteed for this model; leave it out or choose one that Anthropic serves.',
  },
  {
    name: 'container',
    refuse: '`container` (with its skills) runs at Anthropic and is not available for this model.',
    addsInput: true,
  },
  {
    name: 'mcp_servers',
    refuse: '`mcp_servers` are called by Anthropic and are not available for this model.',
    addsInput: true,
  },
  { name: 'compaction', refuse: '`compaction` is done by Anthropic and is not available for this model.' },
]

const ownFields = [
  'model',
  'messages',
  'max_tokens',
  'system',
  'cache_control',
  'metadata',
  'output_config',
  'output_format',
  'service_tier',
  'speed',
  'stop_sequences',
  'stream',
  'thinking',
  'thread',
  'tool_choice',
  'tools',
  'temperature',
  'top_p',
  'top_k',
]

/** Records everything that has no place in the canonical form. */
export function collectUnsupported(body: RequestFields, context: ParseContext): void {
  for (const { name, refuse, addsInput } of platformFields) {
    if (isEmptyValue(body.value(name))) continue
    context.unsupported.push({
      field: `/${name}`,
      refuse: refuse !== undefined,
      ...(refuse && { reason: refuse }),
      ...(addsInput && { addsInput }),
    })
  }
  const known = [...ownFields, ...platformFields.map(({ name }) => name)]
  const unknown = (fields: RequestFields | undefined, names: readonly string[]) => {
    for (const name of fields?.names ?? []) {
      if (fields && !names.includes(name) && !isEmptyValue(fields.value(name))) {
        context.unsupported.push({ field: fields.pointer(name), refuse: false })
      }
    }
  }
  unknown(body, known)
  const config = body.optionalObject('output_config')
  unknown(config, ['effort', 'format'])
  unknown(config?.optionalObject('format') ?? body.optionalObject('output_format'), ['type', 'schema', 'name'])
  unknown(body.optionalObject('thinking'), ['type', 'budget_tokens', 'display'])
  unknown(body.optionalObject('tool_choice'), ['type', 'name', 'disable_parallel_tool_use'])
  unknown(body.optionalObject('metadata'), ['user_id'])
}

function isEmptyValue(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.length === 0)
}
