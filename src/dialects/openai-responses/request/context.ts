// Shared by the request renderers: the rendering's state, and what follows from a target's rules.

import type { TargetRules } from '../../canonical/target-rules.ts'
import type { CacheMarks, FoundMark, MarkRules } from '../../request/cache-marks.ts'
import type { SchemaBudget } from '../../request/schema.ts'
import type { ToolNames } from '../../request/tools.ts'
import type { WarningList } from '../../request/warnings.ts'

export interface Rendering {
  readonly rules: TargetRules
  readonly warnings: WarningList
  readonly names: ToolNames
  readonly schemas: SchemaBudget
  readonly marks: CacheMarks
  /** Ids of calls sent as custom tool calls, whose results have their own type. */
  readonly customCalls: ReadonlySet<string>
}

/** Whether the target reasons; one that does not refuses a request for encrypted reasoning. */
export function reasons({ efforts, thinksByDefault }: TargetRules): boolean {
  return thinksByDefault === true || efforts === undefined || efforts.length > 0
}

/** Custom tools are part of the dialect; rules exclude them for some hosts. */
export function takesCustom({ customTools }: TargetRules): boolean {
  return customTools !== false
}

/** The marks that the target can place. */
export function markRules(rules: TargetRules): MarkRules {
  return {
    style: rules.cacheStyle === 'breakpoint' ? 'breakpoint' : undefined,
    // Hosts with a style cache implicitly.
    isImplicit: rules.cacheStyle !== undefined,
    canCarry({ within, block }) {
      // Only input parts carry marks: not what the model wrote and called, nor system text inlined into a tag.
      if (within === 'tools' || within === 'assistant') return false
      return (within !== 'system' || rules.midSystem !== false) && isMarkable(block)
    },
  }
}

function isMarkable(block: FoundMark['block']): boolean {
  if (block.kind === 'tool-result') return block.content.some(isMarkable)
  return block.kind !== 'text' || block.text !== ''
}
