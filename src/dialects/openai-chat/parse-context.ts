// What the parts of the request parser share: where losses are noted, raw text by place, and reading cache marks.

import { JsonNode } from '../../wire/json-node.ts'
import type { CacheMark, RawJson, UnsupportedField } from '../canonical/conversation.ts'
import type { Envelope } from '../canonical/translation.ts'
import { readCacheControl, spreadMark } from '../request/cache-marks.ts'
import { type RequestFields, refuseAt } from '../request/fields.ts'
import { paramOf, WarningList } from '../request/warnings.ts'

export interface ParseContext {
  readonly warnings: WarningList
  readonly unsupported: UnsupportedField[]
  /** The value at a pointer as its author wrote it. */
  rawText(pointer: string): RawJson
}

export function createParseContext({ body, members }: Envelope): ParseContext {
  // Nodes remember where their children lie: each container is scanned once, however many texts are taken from it.
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

/** OpenAI's own mark, or the `cache_control` that other gateways made known. */
export function readMark(fields: RequestFields, { warnings }: ParseContext): CacheMark | undefined {
  const breakpoint = fields.optionalObject('prompt_cache_breakpoint')
  if (breakpoint) {
    const ttl = breakpoint.optionalText('ttl')
    // Nobody else keeps a prompt for half a day.
    if (ttl === '12h') warnings.add('cache_life_shortened', breakpoint.pointer('ttl'))
    return { life: ttl === undefined ? 'short' : 'long', place: breakpoint.at }
  }
  return readCacheControl(fields)
}
