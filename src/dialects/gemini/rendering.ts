// What the parts of the request renderer share, and what follows from the facts of a target. No model is known by name.

import type { CacheMark, Conversation } from '../canonical/conversation.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { warnMark } from '../request/cache-marks.ts'
import type { SchemaBudget } from '../request/schema.ts'
import type { WarningList } from '../request/warnings.ts'
import type { FunctionNames } from './function-names.ts'

export interface Rendering {
  readonly rules: TargetRules
  readonly warnings: WarningList
  readonly names: FunctionNames
  readonly schemas: SchemaBudget
}

/**
 * Whether the target is told how hard to think by a word, which came with Gemini 3; models before it have a budget
 * (`thinking` includes enabled) or do not think (`efforts` is empty). With the words came three more things that no
 * rule speaks of: calls in the history must be signed, a JSON form and functions go together, and media may stand in
 * function responses, unless a rule says otherwise.
 */
export function thinksByLevel({ efforts, thinking }: TargetRules): boolean {
  return !thinking?.includes('enabled') && (efforts === undefined || efforts.length > 0)
}

export function takesMediaInResults(rules: TargetRules): boolean {
  return rules.mediaInToolResults ?? thinksByLevel(rules)
}

/** Some hosts of the dialect refuse ids and go by the order of calls: no characters are left for one. */
export function takesIds({ toolIdMax }: TargetRules): boolean {
  return toolIdMax !== 0
}

/** The provider caches by itself and takes no marks. */
export function warnMarks({ tools, system, turns, places }: Conversation, warnings: WarningList): void {
  const warn = ({ cacheMark }: { readonly cacheMark?: CacheMark }, place: string) => {
    if (cacheMark) warnMark(cacheMark, place, warnings)
  }
  for (const tool of tools) warn(tool, tool.place ?? '/tools')
  for (const block of system) warn(block, places?.system ?? '/system')
  for (const { blocks, place = '/messages' } of turns) {
    for (const block of blocks) {
      if ('cacheMark' in block) warn(block, place)
      if (block.kind === 'tool-result') for (const inner of block.content) warn(inner, place)
    }
  }
}
