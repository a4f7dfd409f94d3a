// What a model at a host accepts: the dialect's limits, then every row that names the model, then the host's own facts,
// the later winning member by member. Pure, so that whoever builds routes may keep the answer.

import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import type { DialectId } from '../../dialects/dialect.ts'
import { claudeModels } from './claude-models.ts'
import { openaiModels } from './openai-models.ts'
import { otherModels } from './other-models.ts'
import type { RuleRow } from './rule-table.ts'

/** In the order in which they are read. */
export const ruleTable: readonly RuleRow[] = [...openaiModels, ...claudeModels, ...otherModels]

/** What a dialect's own definition fixes, whoever hosts it. */
export const dialectDefaults: Readonly<Record<DialectId, TargetRules>> = {
  'openai-chat': { temperatureMax: 2, stopMax: 4, toolsMax: 128, toolNameMax: 64, toolIdMax: 40 },
  'anthropic-messages': {
    temperatureMax: 1,
    penalties: false,
    seed: false,
    logitBias: false,
    toolNameMax: 64,
    toolIdMax: 64,
    toolIdPattern: /^[A-Za-z0-9_-]+$/,
    cacheStyle: 'cache-control',
    mediaInToolResults: true,
  },
}

export interface RuleQuestion {
  readonly dialect: DialectId
  /** What the provider calls the model. */
  readonly upstreamModel: string
  readonly endpointRules: TargetRules | undefined
}

export function rulesFor(question: RuleQuestion, table: readonly RuleRow[] = ruleTable): TargetRules {
  const { dialect, upstreamModel, endpointRules } = question
  const matching = table.filter((row) => row.dialect === dialect && row.models.test(upstreamModel))
  let rules = dialectDefaults[dialect]
  for (const row of matching) rules = { ...rules, ...row.rules }
  return Object.freeze({ ...rules, ...endpointRules })
}
