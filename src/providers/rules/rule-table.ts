// The shape of a row that says what a family of models takes, and the two ways of naming a family. Hosts have no place
// here: rules of a single host, for some or all of its models, are in that host's data file.

import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import type { DialectId } from '../../dialects/dialect.ts'

export interface ModelRules {
  /** Matched against the provider's name for the model. */
  readonly models: RegExp
  readonly rules: TargetRules
}

export interface RuleRow extends ModelRules {
  readonly dialect: DialectId
  /** Where it says so: a URL. */
  readonly source: string
  /** The day somebody last looked there, `YYYY-MM-DD`. */
  readonly checked: string
}

/**
 * A family's name may be followed by a date, a size or a variant, but not by more of its version: `gpt-5` is not
 * `gpt-5.1`, `claude-opus-5` not `claude-opus-5-5`, while `gpt-5-2025-08-07`, `gpt-5-mini` and `gpt-oss-20b` belong.
 */
const nameEnd = '(?![a-z0-9]|[.-]\\d{1,2}(?![a-z0-9]))'

/** A family wherever it is hosted: after a creator (`openai/gpt-5`, `anthropic.claude-…`), or tuned (`ft:gpt-4o`). */
export function family(names: string): RegExp {
  return new RegExp(`(?:^|[/.:])(?:${names})${nameEnd}`, 'i')
}

/**
 * A family under the bare name its creator's own API gives it. For what that API adds around the model: a reseller
 * who writes the creator in front serves the same model, but hardly every extra.
 */
export function bareFamily(names: string): RegExp {
  return new RegExp(`^(?:ft:)?(?:${names})${nameEnd}`)
}
