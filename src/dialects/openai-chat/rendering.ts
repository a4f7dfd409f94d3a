// What the parts of the request renderer share, and the cache marks, which are chosen over the whole prompt.

import { type CacheMark, type Conversation, placeOf, type RawJson, type Turn } from '../canonical/conversation.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { warnMark } from '../request/cache-marks.ts'
import type { SchemaBudget } from '../request/schema.ts'
import type { ToolNames } from '../request/tools.ts'
import type { WarningList } from '../request/warnings.ts'

export interface Rendering {
  readonly rules: TargetRules
  readonly issuer: string
  readonly warnings: WarningList
  readonly names: ToolNames
  readonly schemas: SchemaBudget
  readonly marks: CacheMarks
}

interface MaybeMarked {
  readonly cacheMark?: CacheMark
}

/** Hosts keep this many marks at most; the latest reach furthest. */
const marksMax = 4

const controls = { short: '{"type":"ephemeral"}', long: '{"type":"ephemeral","ttl":"1h"}' }
const breakpoints = { short: '{"mode":"explicit"}', long: '{"mode":"explicit","ttl":"30m"}' }

/** Which blocks and tools go out with a mark. */
export class CacheMarks {
  readonly #kept: ReadonlySet<object>

  constructor(
    private readonly style: TargetRules['cacheStyle'],
    marked: readonly MaybeMarked[],
  ) {
    this.#kept = new Set(this.inUse ? marked.slice(-marksMax) : [])
  }

  /** Marks can be sent; then text goes out as parts throughout, since only parts carry one and marks move. */
  get inUse(): boolean {
    return this.style === 'breakpoint' || this.style === 'cache-control'
  }

  keeps(block: MaybeMarked): boolean {
    return this.#kept.has(block)
  }

  /** The member that marks a part; its value is undefined for a block that goes out unmarked. */
  memberOf(block: MaybeMarked): readonly [string, RawJson | undefined] {
    const mark = this.keeps(block) ? block.cacheMark : undefined
    if (this.style === 'cache-control') return ['cache_control', mark && controls[mark.life]]
    return ['prompt_cache_breakpoint', mark && breakpoints[mark.life]]
  }
}

/** All marks in prompt order: tools, system, turns. Those the target has no place for are warned about. */
export function chooseMarks(conversation: Conversation, rules: TargetRules, warnings: WarningList): CacheMarks {
  const style = rules.cacheStyle
  const found: { block: MaybeMarked; mark: CacheMark; placeable: boolean; place: string }[] = []
  const see = (block: MaybeMarked, placeable: boolean, place: string) => {
    if (block.cacheMark) found.push({ block, mark: block.cacheMark, placeable, place })
  }
  for (const tool of conversation.tools) see(tool, style === 'cache-control', tool.place ?? '/tools')
  for (const block of conversation.system) see(block, block.text !== '', conversation.places?.system ?? '/system')
  for (const turn of conversation.turns) {
    const place = turn.place ?? '/messages'
    for (const block of turn.blocks) {
      if (block.kind === 'thinking' || block.kind === 'sealed-thinking' || block.kind === 'refusal') continue
      if (block.kind === 'tool-result') for (const inner of block.content) see(inner, false, place)
      see(block, block.kind !== 'tool-call' && !isEmpty(block), place)
    }
  }
  const marks = new CacheMarks(
    style,
    found.filter(({ placeable }) => placeable).map(({ block }) => block),
  )
  for (const { block, mark, place } of found) if (!marks.keeps(block)) warnMark(mark, place, warnings)
  // Hosts of the two other styles cache without being asked.
  if (conversation.automaticCache && (style === undefined || style === 'cache-control')) {
    warnMark(conversation.automaticCache, placeOf(conversation, 'automaticCache'), warnings)
  }
  return marks
}

function isEmpty(block: Turn['blocks'][number]): boolean {
  if (block.kind === 'tool-result') return block.content.length === 0 && !block.isError
  return block.kind === 'text' && block.text === ''
}
