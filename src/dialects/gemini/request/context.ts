// Shared by the request renderers: the rendering's state, and what follows from a target's rules.

import type { TargetRules } from '../../canonical/target-rules.ts'
import type { SchemaBudget } from '../../request/schema.ts'
import type { ToolNames } from '../../request/tools.ts'
import type { WarningList } from '../../request/warnings.ts'

export interface Rendering {
  readonly rules: TargetRules
  readonly warnings: WarningList
  readonly names: ToolNames
  readonly schemas: SchemaBudget
}

/**
 * Whether the target takes a thinking level, introduced with Gemini 3. Older models take a budget (`thinking` includes
 * enabled) or do not think (`efforts` is empty). Gemini 3 brought three more changes that have no rules of their own:
 * calls in the history must be signed, JSON output and functions can be combined, and media are accepted in function
 * responses, unless a rule says otherwise.
 */
export function thinksByLevel({ efforts, thinking }: TargetRules): boolean {
  return !thinking?.includes('enabled') && (efforts === undefined || efforts.length > 0)
}

export function takesMediaInResults(rules: TargetRules): boolean {
  return rules.mediaInToolResults ?? thinksByLevel(rules)
}

/** Some hosts refuse ids and match by call order; their rule is a maximum length of 0. */
export function takesIds({ toolIdMax }: TargetRules): boolean {
  return toolIdMax !== 0
}
