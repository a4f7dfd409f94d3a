// Renders sampling, reasoning effort, end user, caching and output format as far as the
// target supports them. Omitting a default value needs no warning; any other omission does.

import { type Conversation, type Effort, placeOf, type RawJson } from '../../canonical/conversation.ts'
import { jsonObject } from '../../canonical/json.ts'
import { warnCacheOptions } from '../../request/cache-marks.ts'
import { refuseAt } from '../../request/fields.ts'
import { fitEffort } from '../../request/reasoning.ts'
import {
  clampedTemperature,
  endUserMember,
  type Member,
  schemaFormatMembers,
  schemaInstruction,
} from '../../request/settings.ts'
import type { Rendering } from './context.ts'
import type { HiddenTool } from './render-tools.ts'

/** The effort to send; undefined = none. `offersTools`: the request has tools, the caller's or ours. */
export function renderEffort(
  conversation: Conversation,
  offersTools: boolean,
  rendering: Rendering,
): Effort | undefined {
  const { rules, warnings } = rendering
  const wanted = fitEffort(conversation, rendering)
  if (!offersTools || rules.toolsWithReasoning !== false || wanted === 'none') return wanted
  if (wanted === undefined && !rules.thinksByDefault) return undefined
  // The host refuses tools while the model reasons, and the caller needs the tools more.
  warnings.add('reasoning_dropped', wanted === undefined ? '/tools' : placeOf(conversation, 'reasoning'))
  return 'none'
}

export function renderSampling({ sampling }: Conversation, effort: Effort | undefined, rendering: Rendering): Member[] {
  const { rules, warnings } = rendering
  const reasons = effort === undefined ? rules.thinksByDefault === true : effort !== 'none'
  const accepted = rules.sampling !== 'none' && !(rules.sampling === 'without-reasoning' && reasons)
  const both = sampling.temperature !== undefined && sampling.topP !== undefined
  const take = (name: string, value: number | undefined, isAccepted: boolean, usual?: number): Member => {
    if (value === undefined || isAccepted) return [name, value === undefined ? undefined : String(value)]
    if (value !== usual) warnings.add(`${name}_dropped`, `/${name}`)
    return [name, undefined]
  }
  const bias = sampling.logitBias
  const takesBias = accepted && rules.logitBias !== false
  if (bias !== undefined && !takesBias) warnings.add('logit_bias_dropped', '/logit_bias')
  return [
    take(
      'temperature',
      accepted ? clampedTemperature(sampling.temperature, rendering) : sampling.temperature,
      accepted,
      1,
    ),
    take('top_p', sampling.topP, accepted && !(both && rules.temperatureOrTopP), 1),
    take('top_k', sampling.topK, accepted && rules.topK === true),
    take('frequency_penalty', sampling.frequencyPenalty, accepted && rules.penalties !== false, 0),
    take('presence_penalty', sampling.presencePenalty, accepted && rules.penalties !== false, 0),
    take('seed', sampling.seed, rules.seed !== false),
    ['logit_bias', takesBias ? bias : undefined],
  ]
}

export function renderEndUser(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const { endUserId } = conversation
  const name = rules.endUserIdName ?? 'user'
  if (endUserId === undefined) return [name, undefined]
  if (rules.endUserId !== false) return endUserMember(name, endUserId, rules)
  warnings.add('end_user_id_dropped', placeOf(conversation, 'endUserId'))
  return [name, undefined]
}

/** Hosts with `cache_control` cache only what is marked; others cache implicitly. */
export function renderCacheOptions(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const isSent = rules.cacheStyle === 'breakpoint'
  if (!isSent && rules.cacheStyle !== 'cache-control') warnCacheOptions(conversation, warnings)
  return ['prompt_cache_options', isSent ? conversation.promptCacheOptions?.written : undefined]
}

// The output format: native where the target supports it, otherwise through a hidden tool or an instruction.

export interface RenderedFormat {
  readonly responseFormat?: RawJson
  readonly hiddenTool?: HiddenTool
  /** Appended to the system prompt. */
  readonly instruction?: string
}

const anyObject = '{"type":"json_object"}'

export function renderFormat({ outputFormat, places }: Conversation, rendering: Rendering): RenderedFormat {
  if (!outputFormat) return {}
  const { rules, warnings, names } = rendering
  const place = places?.outputFormat ?? '/response_format'
  const way = rules.jsonOutput ?? 'schema'
  if (way === 'emulated') {
    if (rules.forcedToolChoice === false) return refuseAt(place, 'This model cannot be held to a JSON form.')
    const schema = outputFormat.kind === 'json-schema' ? outputFormat.schema : '{"type":"object"}'
    return { hiddenTool: { name: names.unused('json_output'), schema } }
  }
  if (outputFormat.kind === 'json-object') return { responseFormat: anyObject }
  if (way === 'schema') {
    const schema = jsonObject(schemaFormatMembers(outputFormat, place, warnings))
    return {
      responseFormat: jsonObject([
        ['type', '"json_schema"'],
        ['json_schema', schema],
      ]),
    }
  }
  warnings.add('json_schema_emulated', place)
  return { responseFormat: anyObject, instruction: schemaInstruction(outputFormat) }
}
