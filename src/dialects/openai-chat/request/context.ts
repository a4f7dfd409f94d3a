// Shared by the request parsers and renderers: warnings, raw text by pointer, and cache marks.

import { JsonNode } from '../../../wire/json-node.ts'
import type { CacheMark, RawJson, UnsupportedField } from '../../canonical/conversation.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import type { Envelope } from '../../canonical/translation.ts'
import {
  type CacheMarks,
  type FoundMark,
  type MarkRules,
  readCacheControl,
  spreadMark,
} from '../../request/cache-marks.ts'
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

export interface Rendering {
  readonly rules: TargetRules
  readonly issuer: string
  readonly warnings: WarningList
  readonly names: ToolNames
  readonly schemas: SchemaBudget
  readonly marks: CacheMarks
}

/** The marks that the target can place. */
export function markRules(rules: TargetRules): MarkRules {
  const style = rules.cacheStyle === 'implicit' ? undefined : rules.cacheStyle
  return {
    style,
    // Hosts of the other two styles cache implicitly.
    isImplicit: rules.cacheStyle === 'breakpoint' || rules.cacheStyle === 'implicit',
    canCarry({ within, block }) {
      if (within === 'tools') return style === 'cache-control'
      return within !== 'tool-result' && block.kind !== 'tool-call' && !isEmpty(block)
    },
  }
}

function isEmpty(block: FoundMark['block']): boolean {
  if (block.kind === 'tool-result') return block.content.length === 0 && !block.isError
  return block.kind === 'text' && block.text === ''
}
