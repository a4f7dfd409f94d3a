// Settings that several dialects render alike. Each function fits a setting to the target's rules, with a warning if it
// changes or omits what the caller asked for.

import {
  type Conversation,
  type OutputFormat,
  placeOf,
  type RawJson,
  type TextBlock,
} from '../canonical/conversation.ts'
import { jsonString } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { Target } from '../canonical/translation.ts'
import { refuseAt } from './fields.ts'
import { isStrictSchema } from './schema.ts'
import type { WarningList } from './warnings.ts'

/** A member of the body; undefined = omit it. */
export type Member = readonly [name: string, value: RawJson | undefined]

interface SettingsContext {
  readonly rules: TargetRules
  readonly warnings: WarningList
}

/** `least`: the provider refuses a lower cap. */
export function renderOutputCap(
  name: string,
  conversation: Conversation,
  target: Target,
  warnings: WarningList,
  least = 1,
): Member {
  const { outputCap } = conversation
  const { maxOutputTokens: most = Number.POSITIVE_INFINITY, defaultOutputCap } = target
  const place = placeOf(conversation, 'outputCap')
  if (outputCap === 0) return refuseAt(place, 'The output cap must be at least 1: this model cannot generate nothing.')
  if (outputCap === undefined) return [name, defaultOutputCap === undefined ? undefined : String(defaultOutputCap)]
  if (outputCap > most) {
    warnings.add('max_tokens_clamped', place)
    return [name, String(most)]
  }
  if (outputCap < least) warnings.add('max_tokens_raised', place)
  return [name, String(Math.max(outputCap, least))]
}

export function clampedTemperature(
  temperature: number | undefined,
  { rules, warnings }: SettingsContext,
): number | undefined {
  const most = rules.temperatureMax ?? 2
  if (temperature === undefined || temperature <= most) return temperature
  warnings.add('temperature_clamped', '/temperature')
  return most
}

/**
 * If there are more sequences than the target accepts, the gateway matches all of them, so that the earliest match
 * counts.
 */
export function splitStop(
  stop: readonly string[],
  most: number,
): { readonly sent: readonly string[]; readonly matched: readonly string[] } {
  const filled = stop.filter((sequence) => sequence !== '')
  return filled.length <= most ? { sent: filled, matched: [] } : { sent: [], matched: filled }
}

/** The end-user id of the OpenAI dialects, under the target's name for it. */
export function endUserMember(
  name: 'user' | 'safety_identifier',
  endUserId: string,
  { endUserIdMax }: TargetRules,
): Member {
  const most = endUserIdMax ?? (name === 'user' ? 64 : 128)
  // A hash is enough to distinguish users, and email addresses should not be shared.
  if (endUserId.length <= most && !endUserId.includes('@')) return [name, jsonString(endUserId)]
  return [name, jsonString(new Bun.CryptoHasher('sha256').update(endUserId).digest('hex').slice(0, most))]
}

/** The service tier of the OpenAI dialects. */
export function renderServiceTier(conversation: Conversation, { rules, warnings }: SettingsContext): Member {
  const { serviceTier } = conversation
  // Hosts without tiers serve everything as standard, and some refuse the field.
  if (serviceTier === undefined || serviceTier === 'auto' || (serviceTier === 'standard' && !rules.fastTier)) {
    return ['service_tier', undefined]
  }
  if (!rules.fastTier) {
    warnings.add('service_tier_dropped', placeOf(conversation, 'serviceTier'))
    return ['service_tier', undefined]
  }
  return ['service_tier', jsonString({ standard: 'default', fast: 'fast', economy: 'flex' }[serviceTier])]
}

/** The members of a JSON schema format in the OpenAI dialects. */
export function schemaFormatMembers(
  { name, description, schema, strict }: OutputFormat & { kind: 'json-schema' },
  place: string,
  warnings: WarningList,
): Member[] {
  const canBeStrict = isStrictSchema(schema)
  if (strict && !canBeStrict) warnings.add('strict_dropped', place)
  return [
    // A required label without meaning.
    ['name', jsonString(name?.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'output')],
    ['description', description === undefined ? undefined : jsonString(description)],
    ['schema', schema],
    ['strict', String((strict ?? true) && canBeStrict)],
  ]
}

/** Asks for a schema in words, for targets that only know "any JSON object". */
export function schemaInstruction({ schema }: OutputFormat & { kind: 'json-schema' }): string {
  return `Answer with a single JSON object that follows this JSON Schema:\n${schema}`
}

export function withInstruction(system: readonly TextBlock[], instruction: string | undefined): readonly TextBlock[] {
  return instruction === undefined ? system : [...system, { kind: 'text', text: instruction }]
}
