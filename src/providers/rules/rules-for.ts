// Combines the rules of a model at a host: the dialect's, then every row that names the model, then the host's
// facts about all its models and about this one. Later rules win member by member. Pure, so that routes can keep the
// result.

import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import type { DialectId } from '../../dialects/dialect.ts'
import { claudeModels } from './claude-models.ts'
import { geminiModels } from './gemini-models.ts'
import { openaiModels, responsesModels } from './openai-models.ts'
import { otherModels } from './other-models.ts'
import type { ModelRules, RuleRow } from './rule-table.ts'

/** In the order in which they are read. */
export const ruleTable: readonly RuleRow[] = [
  ...openaiModels,
  ...responsesModels,
  ...claudeModels,
  ...geminiModels,
  ...otherModels,
]

/** Rules of all hosts of a dialect, besides the limits that its renderer knows. */
const dialectRules: Readonly<Partial<Record<DialectId, TargetRules>>> = {
  // Codex sends one to every host.
  'openai-responses': { promptCacheKey: true },
}

export interface RuleQuestion {
  readonly dialect: DialectId
  /** The provider's name for the model. */
  readonly upstreamModel: string
  readonly endpointRules: TargetRules | undefined
  /** The host's rules for some of its models. */
  readonly modelRules?: readonly ModelRules[] | undefined
  /** The abilities of the model according to the catalog; none = nothing is known. */
  readonly tags?: readonly string[]
  /** Whether the operator wants cache marks on this model, whatever its name; undefined = the operator did not say. */
  readonly cacheMarks?: boolean | undefined
}

export function rulesFor(question: RuleQuestion, table: readonly RuleRow[] = ruleTable): TargetRules {
  const { dialect, upstreamModel, endpointRules, modelRules = [], tags = [], cacheMarks } = question
  const named = ({ models }: ModelRules) => models.test(upstreamModel)
  const rows = table.filter((row) => row.dialect === dialect && named(row))
  let rules: TargetRules = { ...dialectRules[dialect] }
  for (const row of rows) rules = { ...rules, ...row.rules }
  rules = { ...rules, ...endpointRules }
  for (const row of modelRules.filter(named)) rules = { ...rules, ...row.rules }
  // Messages is the dialect in which callers choose what is cached. Its hosts serve other models than Claude too.
  if (cacheMarks && dialect === 'anthropic-messages') rules = { ...rules, cachesOnlyMarked: true }
  // A reasoning effort is a 400 for models that do not reason.
  const cannotReason = tags.length > 0 && !tags.includes('reasoning')
  return Object.freeze(rules.efforts === undefined && cannotReason ? { ...rules, efforts: [] } : rules)
}
