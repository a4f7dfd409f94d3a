// What OpenAI's models take on Responses: the same facts as on Chat Completions, but for those that are about fields of
// that dialect alone. Kept as one table, so that a new model is written down once.

import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import { openaiModels } from './openai-models.ts'
import type { RuleRow } from './rule-table.ts'

/**
 * Tools and reasoning go together there, one call at a time can be asked of every model, a system message may always
 * stand inside, as many tools are taken of everybody, and stops, penalties and biases do not exist.
 */
const elsewhere = [
  'outputCapName',
  'stopMax',
  'penalties',
  'logitBias',
  'toolsWithReasoning',
  'parallelFlag',
  'midSystem',
  'toolsMax',
] as const satisfies readonly (keyof TargetRules)[]

export const responsesModels: readonly RuleRow[] = openaiModels.flatMap((row): RuleRow[] => {
  const rules: TargetRules = Object.fromEntries(
    Object.entries(row.rules).filter(([name]) => !elsewhere.some((each) => each === name)),
  )
  return Object.keys(rules).length === 0 ? [] : [{ ...row, dialect: 'openai-responses', rules }]
})
