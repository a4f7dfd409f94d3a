// The fields of a Chat Completions body that no other dialect has a word for. What would change the shape of the answer
// or break a guarantee is refused, the rest is left out with a warning, and defaults written out are passed over.

import { isRecord } from '../canonical/json.ts'
import type { RequestFields } from '../request/fields.ts'
import { pointerStep } from '../request/warnings.ts'
import type { ParseContext } from './parse-context.ts'

/** Read elsewhere, or without meaning for a provider. */
const carried: ReadonlySet<string> = new Set([
  ...['model', 'messages', 'stream', 'stream_options', 'tools', 'tool_choice', 'parallel_tool_calls'],
  ...['functions', 'function_call', 'max_tokens', 'max_completion_tokens', 'temperature', 'top_p', 'top_k'],
  ...['frequency_penalty', 'presence_penalty', 'seed', 'logit_bias', 'stop', 'response_format'],
  ...['reasoning_effort', 'reasoning', 'thinking', 'include_reasoning', 'verbosity', 'service_tier'],
  ...['user', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_options', 'cache_control'],
  // For the caller's own records.
  'metadata',
])

/** Whether a value written out says nothing. */
const silent: Readonly<Record<string, (value: unknown) => boolean>> = {
  n: (value) => value === 1,
  logprobs: (value) => value === false,
  top_logprobs: (value) => value === 0,
  modalities: (value) => Array.isArray(value) && value.every((modality) => modality === 'text'),
  store: (value) => value === false,
  min_p: (value) => value === 0,
  repetition_penalty: (value) => value === 1,
}

/** What the caller would parse or relies on, and what to do instead. */
const refused: Readonly<Record<string, string>> = {
  n: 'This model gives one answer per request: leave out `n`, or send the request several times.',
  logprobs: '`logprobs` are not available for this model.',
  top_logprobs: '`top_logprobs` are not available for this model.',
  audio: '`audio` output is not available for this model.',
  modalities: '`modalities` other than text are not available for this model.',
  moderation: '`moderation` is not available for this model.',
  web_search_options: '`web_search_options` is not available for this model.',
}

/** Have a provider look things up and read them. */
const lookups: ReadonlySet<string> = new Set(['web_search_options', 'plugins', 'search_parameters', 'web_search'])
/** Have the model speak. */
const speech: ReadonlySet<string> = new Set(['audio', 'modalities'])
/** What hosts look up at most where the caller sets no limit. */
const maxSearches = 20

export function parseLeftovers(body: RequestFields, { unsupported }: ParseContext): void {
  for (const name of body.names) {
    const value = body.value(name)
    if (value === undefined || carried.has(name)) continue
    if (Object.hasOwn(silent, name) && silent[name]?.(value)) continue
    const reason = Object.hasOwn(refused, name) ? refused[name] : undefined
    const field = body.pointer(name)
    const adds = {
      ...(lookups.has(name) && ({ addsInput: true, maxSearches } as const)),
      ...(speech.has(name) && ({ wantsAudio: true } as const)),
    }
    unsupported.push(
      reason === undefined ? { field, refuse: false, ...adds } : { field, refuse: true, reason, ...adds },
    )
  }
  for (const [name, known] of Object.entries(knownInside)) {
    const inner = isRecord(body.value(name)) ? body.optionalObject(name) : undefined
    for (const member of inner?.names ?? []) {
      const value = inner?.value(member)
      if (known.includes(member) || value === undefined || value === false) continue
      unsupported.push({ field: `/${name}${pointerStep(member)}`, refuse: false })
    }
  }
}

/** Members of settings that are objects; every other one is left out with a warning. */
const knownInside: Readonly<Record<string, readonly string[]>> = {
  stream_options: ['include_usage'],
  reasoning: ['effort', 'max_tokens', 'enabled', 'exclude'],
  thinking: ['type', 'budget_tokens'],
  response_format: ['type', 'json_schema'],
  // Also flat, as some clients write it.
  tool_choice: [
    ...['type', 'name', 'function', 'custom', 'tool', 'allowed_tools', 'mode', 'tools'],
    'disable_parallel_tool_use',
  ],
}

const tiers = { auto: 'auto', default: 'standard', flex: 'economy', priority: 'fast', fast: 'fast' } as const

export function parseServiceTier(
  body: RequestFields,
  { unsupported }: ParseContext,
): (typeof tiers)[keyof typeof tiers] | undefined {
  const tier = body.optionalText('service_tier')
  if (tier === undefined) return undefined
  if (Object.hasOwn(tiers, tier)) return tiers[tier as keyof typeof tiers]
  unsupported.push({ field: '/service_tier', refuse: false })
  return undefined
}
