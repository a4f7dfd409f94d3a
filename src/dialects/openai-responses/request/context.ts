// Shared by the request renderers: the rendering's state, what follows from a target's rules, and the cache marks,
// which are chosen over the whole prompt.

import { type CacheMark, type Conversation, placeOf, type RawJson, type Turn } from '../../canonical/conversation.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { warnMark } from '../../request/cache-marks.ts'
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

interface MaybeMarked {
  readonly cacheMark?: CacheMark
}

/** Marks per request; the last ones cover the most. */
const marksMax = 4

const breakpoints = { short: '{"mode":"explicit"}', long: '{"mode":"explicit","ttl":"30m"}' }

/** The blocks that are sent with a mark. */
export class CacheMarks {
  readonly #kept: ReadonlySet<object>

  constructor(
    /**
     * Marks can be sent. Then all text is sent as parts, because only parts carry marks, and marks move between turns.
     */
    readonly inUse: boolean,
    marked: readonly MaybeMarked[],
  ) {
    this.#kept = new Set(inUse ? marked.slice(-marksMax) : [])
  }

  keeps(block: MaybeMarked): boolean {
    return this.#kept.has(block)
  }

  /** The member that marks a part which ends these blocks; its value is undefined if none is marked. */
  memberOf(...blocks: readonly MaybeMarked[]): readonly [string, RawJson | undefined] {
    const mark = blocks.find((block) => this.keeps(block))?.cacheMark
    return ['prompt_cache_breakpoint', mark && breakpoints[mark.life]]
  }
}

/** Collects all marks in prompt order: tools, system, turns. Warns about those that the target cannot place. */
export function chooseMarks(conversation: Conversation, rules: TargetRules, warnings: WarningList): CacheMarks {
  const found: { block: MaybeMarked; mark: CacheMark; placeable: boolean; place: string }[] = []
  const see = (block: MaybeMarked, placeable: boolean, place: string) => {
    if (block.cacheMark) found.push({ block, mark: block.cacheMark, placeable, place })
  }
  for (const tool of conversation.tools) see(tool, false, tool.place ?? '/tools')
  for (const block of conversation.system) see(block, block.text !== '', conversation.places?.system ?? '/system')
  for (const turn of conversation.turns) {
    const place = turn.place ?? '/messages'
    for (const block of turn.blocks) {
      if (block.kind === 'thinking' || block.kind === 'sealed-thinking' || block.kind === 'refusal') continue
      // Only input parts carry marks: not what the model wrote and called, nor system text inlined into a tag.
      const isInput = turn.role === 'user' || (turn.role === 'system' && rules.midSystem !== false)
      if (block.kind === 'tool-result') for (const inner of block.content) see(inner, isMarkable(inner), place)
      see(block, isInput && isMarkable(block), place)
    }
  }
  const placeable = found.filter((each) => each.placeable).map(({ block }) => block)
  const marks = new CacheMarks(rules.cacheStyle === 'breakpoint', placeable)
  for (const { block, mark, place } of found) if (!marks.keeps(block)) warnMark(mark, place, warnings)
  // Other hosts cache implicitly.
  if (conversation.automaticCache && rules.cacheStyle === undefined) {
    warnMark(conversation.automaticCache, placeOf(conversation, 'automaticCache'), warnings)
  }
  return marks
}

function isMarkable(block: Turn['blocks'][number]): boolean {
  if (block.kind === 'tool-result') return block.content.some(isMarkable)
  return block.kind !== 'text' || block.text !== ''
}
