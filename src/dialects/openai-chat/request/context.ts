// Shared by the request parsers and renderers: warnings, raw text by pointer, and cache marks.

import { JsonNode } from '../../../wire/json-node.ts'
import {
  type CacheMark,
  type Conversation,
  placeOf,
  type RawJson,
  type Turn,
  type UnsupportedField,
} from '../../canonical/conversation.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import type { Envelope } from '../../canonical/translation.ts'
import { readCacheControl, spreadMark, warnMark } from '../../request/cache-marks.ts'
import { type RequestFields, refuseAt } from '../../request/fields.ts'
import type { SchemaBudget } from '../../request/schema.ts'
import type { ToolNames } from '../../request/tools.ts'
import { paramOf, WarningList } from '../../request/warnings.ts'

export interface ParseContext {
  readonly warnings: WarningList
  readonly unsupported: UnsupportedField[]
  /** The value at a pointer, as written. */
  rawText(pointer: string): RawJson
}

export function createParseContext({ body, members }: Envelope): ParseContext {
  // Nodes cache the positions of their children, so each container is scanned once.
  const nodes = new Map<string, JsonNode | undefined>([['', JsonNode.root(body, members)]])
  const nodeAt = (pointer: string): JsonNode | undefined => {
    if (nodes.has(pointer)) return nodes.get(pointer)
    const cut = pointer.lastIndexOf('/')
    const step = pointer.slice(cut + 1)
    const parent = nodeAt(pointer.slice(0, cut))
    const node = /^\d+$/.test(step) ? parent?.element(Number(step)) : parent?.member(step)
    nodes.set(pointer, node)
    return node
  }
  return {
    warnings: new WarningList(),
    unsupported: [],
    rawText: (pointer) =>
      nodeAt(pointer)?.text ??
      refuseAt(pointer, `\`${paramOf(pointer)}\` cannot be read: a name around it stands twice.`),
  }
}

/** Spread into a block: `cacheMark` if the caller marked it, otherwise nothing. */
export function markOf(fields: RequestFields, context: ParseContext): { readonly cacheMark?: CacheMark } {
  return spreadMark(readMark(fields, context))
}

/** OpenAI's breakpoint, or `cache_control`, which other gateways introduced. */
export function readMark(fields: RequestFields, { warnings }: ParseContext): CacheMark | undefined {
  const breakpoint = fields.optionalObject('prompt_cache_breakpoint')
  if (breakpoint) {
    const ttl = breakpoint.optionalText('ttl')
    // No other provider caches for 12 hours.
    if (ttl === '12h') warnings.add('cache_life_shortened', breakpoint.pointer('ttl'))
    return { life: ttl === undefined ? 'short' : 'long', place: breakpoint.at }
  }
  return readCacheControl(fields)
}

// State of a rendering, and the cache marks, which are chosen over the whole prompt.

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

/** Marks per request; the last ones cover the most. */
const marksMax = 4

const controls = { short: '{"type":"ephemeral"}', long: '{"type":"ephemeral","ttl":"1h"}' }
const breakpoints = { short: '{"mode":"explicit"}', long: '{"mode":"explicit","ttl":"30m"}' }

/** The blocks and tools that are sent with a mark. */
export class CacheMarks {
  readonly #kept: ReadonlySet<object>

  constructor(
    private readonly style: TargetRules['cacheStyle'],
    marked: readonly MaybeMarked[],
  ) {
    this.#kept = new Set(this.inUse ? marked.slice(-marksMax) : [])
  }

  /**
   * Marks can be sent. Then all text is sent as parts, because only parts carry marks, and marks move between turns.
   */
  get inUse(): boolean {
    return this.style === 'breakpoint' || this.style === 'cache-control'
  }

  keeps(block: MaybeMarked): boolean {
    return this.#kept.has(block)
  }

  /** The member that marks a part; its value is undefined for an unmarked block. */
  memberOf(block: MaybeMarked): readonly [string, RawJson | undefined] {
    const mark = this.keeps(block) ? block.cacheMark : undefined
    if (this.style === 'cache-control') return ['cache_control', mark && controls[mark.life]]
    return ['prompt_cache_breakpoint', mark && breakpoints[mark.life]]
  }
}

/** Collects all marks in prompt order: tools, system, turns. Warns about those that the target cannot place. */
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
  // Hosts of the other two styles cache implicitly.
  if (conversation.automaticCache && (style === undefined || style === 'cache-control')) {
    warnMark(conversation.automaticCache, placeOf(conversation, 'automaticCache'), warnings)
  }
  return marks
}

function isEmpty(block: Turn['blocks'][number]): boolean {
  if (block.kind === 'tool-result') return block.content.length === 0 && !block.isError
  return block.kind === 'text' && block.text === ''
}
