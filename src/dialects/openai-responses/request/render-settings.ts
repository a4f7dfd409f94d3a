// Renders sampling, end user, caching and output format as far as the target supports them.
// Omitting a default value needs no warning; any other omission does.

import { type Conversation, type Effort, placeOf, type RawJson } from '../../canonical/conversation.ts'
import { jsonObject, jsonString } from '../../canonical/json.ts'
import { warnCacheOptions } from '../../request/cache-marks.ts'
import {
  clampedTemperature,
  endUserMember,
  type Member,
  schemaFormatMembers,
  schemaInstruction,
} from '../../request/settings.ts'
import type { Rendering } from './context.ts'

/** The dialect has only temperature and top_p. `effort` is the requested one, undefined = none. */
export function renderSampling({ sampling }: Conversation, effort: Effort | undefined, rendering: Rendering): Member[] {
  const { rules, warnings } = rendering
  const { temperature, topP, topK, frequencyPenalty, presencePenalty, seed, logitBias } = sampling
  const isReasoning = effort === undefined ? rules.thinksByDefault === true : effort !== 'none'
  const accepted = rules.sampling !== 'none' && !(rules.sampling === 'without-reasoning' && isReasoning)
  const drop = (name: string, value: unknown, usual?: number) => {
    if (value !== undefined && value !== usual) warnings.add(`${name}_dropped`, `/${name}`)
  }
  const take = (name: string, value: number | undefined, isAccepted: boolean): Member => {
    if (!isAccepted) drop(name, value, 1)
    return [name, value === undefined || !isAccepted ? undefined : String(value)]
  }
  drop('top_k', topK)
  drop('frequency_penalty', frequencyPenalty, 0)
  drop('presence_penalty', presencePenalty, 0)
  drop('seed', seed)
  drop('logit_bias', logitBias)
  const isEither = rules.temperatureOrTopP === true && temperature !== undefined
  return [
    take('temperature', accepted ? clampedTemperature(temperature, rendering) : temperature, accepted),
    take('top_p', topP, accepted && !isEither),
  ]
}

export function renderEndUser({ endUserId }: Conversation, { rules }: Rendering): Member {
  const name = rules.endUserIdName ?? 'safety_identifier'
  return endUserId === undefined ? [name, undefined] : endUserMember(name, endUserId, rules)
}

export function renderCacheOptions(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const isSent = rules.cacheStyle === 'breakpoint'
  if (!isSent) warnCacheOptions(conversation, warnings)
  return ['prompt_cache_options', isSent ? conversation.promptCacheOptions?.written : undefined]
}

// The output format and verbosity: the member `text`. If a host does not support a format, it is requested by
// instruction, with a warning.

export interface RenderedFormat {
  /** undefined = omit the member. */
  readonly text: RawJson | undefined
  /** Appended to the system prompt. */
  readonly instruction: string | undefined
  /** Any JSON object is requested; the provider refuses that unless the input mentions JSON. */
  readonly isAnyObject: boolean
}

const anyObject = '{"type":"json_object"}'

export function renderFormat(conversation: Conversation, rendering: Rendering): RenderedFormat {
  const { format, instruction } = formatOf(conversation, rendering)
  const { verbosity } = conversation
  const text = jsonObject([
    ['format', format],
    ['verbosity', verbosity && jsonString(verbosity)],
  ])
  return { text: text === '{}' ? undefined : text, instruction, isAnyObject: format === anyObject }
}

interface Format {
  readonly format?: RawJson
  readonly instruction?: string
}

function formatOf(conversation: Conversation, rendering: Rendering): Format {
  const { outputFormat } = conversation
  if (!outputFormat) return {}
  const { rules, warnings } = rendering
  const place = placeOf(conversation, 'outputFormat')
  const way = rules.jsonOutput ?? 'schema'
  if (outputFormat.kind === 'json-object') {
    if (way !== 'emulated') return { format: anyObject }
    warnings.add('json_object_emulated', place)
    return { instruction: 'Answer with a single JSON object.' }
  }
  if (way === 'schema') {
    const members = schemaFormatMembers(outputFormat, place, warnings)
    return { format: jsonObject([['type', '"json_schema"'], ...members]) }
  }
  warnings.add('json_schema_emulated', place)
  const instruction = schemaInstruction(outputFormat)
  return way === 'object' ? { format: anyObject, instruction } : { instruction }
}
