// Everything in a Chat Completions body that is neither a message nor a tool: how to sample, how much to say and think,
// in which form. Defaults written out count as not said where nothing depends on them.

import { efforts, type OutputFormat, type ReasoningWish, type Sampling } from '../canonical/conversation.ts'
import { type RequestFields, shownWord, wrongType } from '../request/fields.ts'
import type { ParseContext } from './parse-context.ts'

export function parseSampling(body: RequestFields, context: ParseContext): Sampling {
  const temperature = within(body, 'temperature', 0, 2)
  const topP = within(body, 'top_p', 0, 1)
  const topK = body.optionalNumber('top_k')
  // 0 is the default of both penalties and says nothing.
  const frequencyPenalty = within(body, 'frequency_penalty', -2, 2) || undefined
  const presencePenalty = within(body, 'presence_penalty', -2, 2) || undefined
  const seed = body.optionalNumber('seed')
  const bias = body.optionalObject('logit_bias')
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    // vLLM's word for "all tokens" is -1 or 0.
    ...(topK === undefined || topK <= 0 ? {} : { topK }),
    ...(frequencyPenalty === undefined ? {} : { frequencyPenalty }),
    ...(presencePenalty === undefined ? {} : { presencePenalty }),
    ...(seed === undefined ? {} : { seed }),
    ...(bias && bias.names.length > 0 ? { logitBias: context.rawText(bias.at) } : {}),
  }
}

function within(body: RequestFields, name: string, least: number, most: number): number | undefined {
  const value = body.optionalNumber(name)
  if (value === undefined || (value >= least && value <= most)) return value
  return body.refuse(name, `\`${name}\` must be from ${least} to ${most}.`)
}

export function parseStop(body: RequestFields, { warnings }: ParseContext): string[] {
  const value = body.value('stop')
  if (value === undefined) return []
  const list = typeof value === 'string' ? [value] : (body.optionalList('stop') ?? [])
  const stop = list.map((text, i) =>
    typeof text === 'string' ? text : wrongType(`${body.pointer('stop')}/${i}`, 'a string', text),
  )
  if (stop.includes('')) warnings.add('stop_dropped', '/stop')
  return stop.filter((text) => text !== '')
}

/** Where the wish was written, and what it is; several fields may speak of it, the native one first. */
export function parseReasoning(body: RequestFields): { wish: ReasoningWish; place: string } | undefined {
  const native = body.optionalWord('reasoning_effort', efforts)
  const reasoning = body.optionalObject('reasoning')
  const thinking = body.optionalObject('thinking')
  const effort = native ?? reasoning?.optionalWord('effort', efforts)
  const budgetTokens =
    effort === undefined ? (tokens(reasoning, 'max_tokens') ?? tokens(thinking, 'budget_tokens')) : undefined
  const mode = effort === undefined ? modeOf(reasoning, thinking) : undefined
  const visible = visibility(body, reasoning)
  if (effort === undefined && budgetTokens === undefined && mode === undefined && visible === undefined)
    return undefined
  const place = native ? '/reasoning_effort' : reasoning ? '/reasoning' : thinking ? '/thinking' : '/include_reasoning'
  const wish = {
    ...(effort === undefined ? {} : { effort }),
    ...(budgetTokens === undefined ? {} : { budgetTokens }),
    ...(mode === undefined ? {} : { mode }),
    ...(visible === undefined ? {} : { visible }),
  }
  return { wish, place }
}

function tokens(fields: RequestFields | undefined, name: string): number | undefined {
  const value = fields?.optionalNumber(name)
  if (value === undefined || (Number.isInteger(value) && value >= 0)) return value
  return fields?.refuse(name, `\`${name}\` must be a whole number of tokens.`)
}

function modeOf(reasoning: RequestFields | undefined, thinking: RequestFields | undefined): ReasoningWish['mode'] {
  const type = thinking?.optionalWord('type', ['enabled', 'disabled', 'adaptive', 'auto', 'between_tools'])
  if (type === 'disabled') return 'off'
  if (type === 'between_tools') return 'between-tools'
  if (type === 'adaptive' || type === 'auto') return 'adaptive'
  const enabled = reasoning?.optionalBoolean('enabled') ?? (type === 'enabled' ? true : undefined)
  return enabled === undefined ? undefined : enabled ? 'on' : 'off'
}

function visibility(body: RequestFields, reasoning: RequestFields | undefined): boolean | undefined {
  const exclude = reasoning?.optionalBoolean('exclude')
  return exclude === undefined ? body.optionalBoolean('include_reasoning') : !exclude
}

const formatMembers: ReadonlySet<string> = new Set(['name', 'description', 'schema', 'strict'])

export function parseOutputFormat(body: RequestFields, context: ParseContext): OutputFormat | undefined {
  const format = body.optionalObject('response_format')
  if (!format) return undefined
  const type = format.text('type')
  if (type === 'text') return undefined
  if (type === 'json_object') return { kind: 'json-object' }
  if (type !== 'json_schema') {
    return format.refuse('type', `The response format ${shownWord(type)} is not available for this model.`)
  }
  const wanted = format.optionalObject('json_schema') ?? format.missing('json_schema')
  wanted.warnUnknown(formatMembers, context.warnings)
  const schema = wanted.optionalObject('schema')
  // Without a schema nothing but JSON is asked for.
  if (!schema) return { kind: 'json-object' }
  return {
    kind: 'json-schema',
    name: wanted.optionalText('name'),
    description: wanted.optionalText('description'),
    schema: context.rawText(schema.at),
    strict: wanted.optionalBoolean('strict'),
  }
}
