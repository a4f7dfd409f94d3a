// Settings that several dialects render alike. Each function fits a setting to the target's rules, with a warning if it
// changes or omits what the caller asked for.

import { type Conversation, pointerTo, type RawJson, type Sampling, type TextBlock } from '../canonical/conversation.ts'
import { jsonNumber, type Members } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { Target } from '../canonical/translation.ts'
import { refuseAt, type WarningList } from './fields.ts'

export interface RulesAndWarnings {
  readonly rules: TargetRules
  readonly warnings: WarningList
}

// Sampling: a table per dialect, in the order of its members and of the warnings.

export interface SamplingRow {
  readonly setting: keyof Sampling
  /** The member's name; undefined = the dialect has none. */
  readonly member?: string
  /** Whether the target accepts the value; undefined = it always does. */
  readonly when?: (rules: TargetRules, value: number | RawJson) => boolean
  /** Accepted even where sampling settings are not. */
  readonly always?: boolean
  /** Values that may be omitted without a warning, if they differ from the usual defaults. */
  readonly isDefault?: (value: number | RawJson) => boolean
}

/** The names that callers know. Omitting a default needs no warning. */
const samplingFields: Readonly<Record<keyof Sampling, { readonly field: string; readonly usual?: number }>> = {
  temperature: { field: 'temperature', usual: 1 },
  topP: { field: 'top_p', usual: 1 },
  topK: { field: 'top_k' },
  frequencyPenalty: { field: 'frequency_penalty', usual: 0 },
  presencePenalty: { field: 'presence_penalty', usual: 0 },
  seed: { field: 'seed' },
  logitBias: { field: 'logit_bias' },
}

interface SamplingTarget extends RulesAndWarnings {
  /** The target accepts sampling settings in this request. */
  readonly isAccepted: boolean
  /** Highest temperature of the dialect, if the target has no rule. */
  readonly temperatureMax: number
}

/** Whether a target accepts sampling settings, in a request in which the model reasons or not. */
export function acceptsSampling({ sampling }: TargetRules, isReasoning: boolean): boolean {
  return sampling !== 'none' && !(sampling === 'without-reasoning' && isReasoning)
}

export function renderSampling(sampling: Sampling, rows: readonly SamplingRow[], target: SamplingTarget): Members {
  const { rules, warnings } = target
  const members: Record<string, RawJson> = {}
  for (const { setting, member, when, always, isDefault } of rows) {
    const value = sampling[setting]
    if (value === undefined) continue
    const { field, usual } = samplingFields[setting]
    const isSecond = setting === 'topP' && rules.temperatureOrTopP === true && sampling.temperature !== undefined
    const isSent = (target.isAccepted || always) && !isSecond && (when?.(rules, value) ?? true)
    if (member !== undefined && isSent) {
      members[member] = String(setting === 'temperature' ? clampedTemperature(Number(value), target) : value)
    } else if (!(isDefault?.(value) ?? (value === usual || isEmptyObject(value)))) {
      warnings.add(`${field}_dropped`, `/${field}`)
    }
  }
  return members
}

function isEmptyObject(value: number | RawJson): boolean {
  return typeof value === 'string' && /^\{\s*\}$/.test(value)
}

function clampedTemperature(temperature: number, { rules, warnings, temperatureMax }: SamplingTarget): number {
  const clamped = Math.min(Math.max(temperature, 0), rules.temperatureMax ?? temperatureMax)
  if (clamped !== temperature) warnings.add('temperature_clamped', '/temperature')
  return clamped
}

/** `min`: the provider refuses a lower cap. */
export function renderOutputCap(
  conversation: Conversation,
  { maxOutputTokens: max = Number.POSITIVE_INFINITY, defaultOutputCap }: Target,
  warnings: WarningList,
  min = 1,
): RawJson | undefined {
  const { outputCap } = conversation
  const pointer = pointerTo(conversation, 'outputCap')
  if (outputCap === 0)
    return refuseAt(pointer, 'The output cap must be at least 1: this model cannot generate nothing.')
  if (outputCap === undefined) return jsonNumber(defaultOutputCap)
  if (outputCap > max) warnings.add('max_tokens_clamped', pointer)
  else if (outputCap < min) warnings.add('max_tokens_raised', pointer)
  return String(outputCap > max ? max : Math.max(outputCap, min))
}

/**
 * If there are more sequences than the target accepts, the gateway matches all of them, so that the earliest match
 * counts.
 */
export function splitStop(
  stop: readonly string[],
  max: number,
): { readonly sent: readonly string[]; readonly matched: readonly string[] } {
  const filled = stop.filter((sequence) => sequence !== '')
  return filled.length <= max ? { sent: filled, matched: [] } : { sent: [], matched: filled }
}

/** Warns about hints for which a provider has no field. */
export function warnHints({ verbosity, promptCacheKey }: Conversation, warnings: WarningList): void {
  if (verbosity !== undefined && verbosity !== 'medium') warnings.add('verbosity_dropped', '/verbosity')
  if (promptCacheKey) warnings.add('prompt_cache_key_dropped', '/prompt_cache_key')
}

/** A hash is enough to distinguish users. */
export function hashedId(id: string, length: number): string {
  return new Bun.CryptoHasher('sha256').update(id).digest('hex').slice(0, length)
}

export function withInstruction(system: readonly TextBlock[], instruction: string | undefined): readonly TextBlock[] {
  return instruction === undefined ? system : [...system, { kind: 'text', text: instruction }]
}
