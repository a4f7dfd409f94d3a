// Prompt cache marks: reading them, choosing which of them a target gets, and warnings for those it cannot honour.
// A target accepts a few marks; the last ones cover the most of the prompt, so those are kept.

import {
  type CacheMark,
  type ContentBlock,
  type Conversation,
  type PromptCacheOptions,
  pointerTo,
  type RawJson,
  type Tool,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
} from '../canonical/conversation.ts'
import type { Members } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { ParseContext, RequestFields, WarningList } from './fields.ts'

/** Marks per request, for all providers that accept any. */
const marksMax = 4

const breakpoints = { short: '{"mode":"explicit"}', long: '{"mode":"explicit","ttl":"30m"}' }
const cacheControls = { short: '{"type":"ephemeral"}', long: '{"type":"ephemeral","ttl":"1h"}' }

/** Spread into a block. */
export function markOf(fields: RequestFields): { readonly cacheMark?: CacheMark } {
  const control = fields.optionalObject('cache_control')
  if (!control) return {}
  const isHour = control.optionalText('ttl') === '1h'
  return { cacheMark: { life: isHour ? 'long' : 'short', ...(isHour && { isHour }), pointer: control.at } }
}

/** The same for OpenAI's breakpoint, or `cache_control`, which other gateways introduced. */
export function breakpointOf(fields: RequestFields, { warnings }: ParseContext): { readonly cacheMark?: CacheMark } {
  const breakpoint = fields.optionalObject('prompt_cache_breakpoint')
  if (!breakpoint) return markOf(fields)
  const ttl = breakpoint.optionalText('ttl')
  // No other provider caches for 12 hours.
  if (ttl === '12h') warnings.add('cache_life_shortened', breakpoint.pointer('ttl'))
  return { cacheMark: { life: ttl === undefined ? 'short' : 'long', pointer: breakpoint.at } }
}

export function readCacheOptions(body: RequestFields, context: ParseContext): PromptCacheOptions | undefined {
  const options = body.optionalObject('prompt_cache_options')
  if (!options) return undefined
  return {
    written: context.rawText(options.at),
    onlyMarked: options.optionalText('mode') === 'explicit',
    // Half an hour is the only value; no mark lasts exactly that long.
    life: options.optionalText('ttl') === undefined ? undefined : 'long',
  }
}

export function writeCacheControl(mark: CacheMark | undefined): RawJson | undefined {
  return mark && cacheControls[mark.life]
}

/** Warns about a mark that the target cannot honour. Each one is named, even if a caller marks dozens of blocks. */
function warnMark({ pointer }: CacheMark, usualPointer: string, warnings: WarningList): void {
  warnings.add('cache_mark_dropped', pointer ?? usualPointer)
}

/** For a target with implicit caching only. The other options are its default behaviour. */
export function warnCacheOptions({ promptCacheOptions }: Conversation, warnings: WarningList): void {
  if (promptCacheOptions?.onlyMarked) warnings.add('prompt_cache_options_dropped', '/prompt_cache_options')
}

interface MaybeMarked {
  readonly cacheMark?: CacheMark | undefined
}

/** A marked tool or block, and the part of the prompt it is in. */
export type FoundMark = { readonly mark: CacheMark; readonly pointer: string } & (
  | { readonly within: 'tools'; readonly block: Tool }
  | { readonly within: 'instructions' | 'tool-result'; readonly block: ContentBlock }
  | { readonly within: Turn['role']; readonly block: ContentBlock | ToolCallBlock | ToolResultBlock }
)

/** In prompt order: tools, system, turns. */
function findMarks({ tools, system, turns, pointers }: Conversation): FoundMark[] {
  const found: FoundMark[] = []
  for (const block of tools) {
    if (block.cacheMark)
      found.push({ within: 'tools', block, mark: block.cacheMark, pointer: block.pointer ?? '/tools' })
  }
  for (const block of system) {
    if (!block.cacheMark) continue
    found.push({ within: 'instructions', block, mark: block.cacheMark, pointer: pointers?.system ?? '/system' })
  }
  for (const { role, blocks, pointer = '/messages' } of turns) {
    for (const block of blocks) {
      if (block.kind === 'thinking' || block.kind === 'sealed-thinking' || block.kind === 'refusal') continue
      for (const inner of block.kind === 'tool-result' ? block.content : []) {
        if (inner.cacheMark) found.push({ within: 'tool-result', block: inner, mark: inner.cacheMark, pointer })
      }
      if (block.cacheMark) found.push({ within: role, block, mark: block.cacheMark, pointer })
    }
  }
  return found
}

export interface MarkRules {
  /** Marks can be sent. */
  readonly isAccepted: boolean
  /** Whether a tool or block can carry its mark in this dialect. */
  canCarry(found: FoundMark): boolean
  /** The target caches without being asked, so a request to cache everything needs no warning. */
  readonly isImplicit: boolean
}

/** Warns about every mark that is not kept. */
export function chooseMarks(conversation: Conversation, rules: MarkRules, warnings: WarningList): CacheMarks {
  const found = findMarks(conversation)
  const marks = new CacheMarks(
    rules.isAccepted,
    found.filter((each) => rules.canCarry(each)).map(({ block }) => block),
  )
  for (const { block, mark, pointer } of found) {
    if (marks.keeps(block)) warnShortened(mark, warnings)
    else warnMark(mark, pointer, warnings)
  }
  const { automaticCache: automatic } = conversation
  if (automatic && rules.isImplicit) warnShortened(automatic, warnings)
  else if (automatic) warnMark(automatic, pointerTo(conversation, 'automaticCache'), warnings)
  return marks
}

/** The longest breakpoint lasts for half an hour, and implicit caches promise no more. */
function warnShortened({ isHour, pointer }: CacheMark, warnings: WarningList): void {
  if (isHour && pointer !== undefined) warnings.add('cache_life_shortened', `${pointer}/ttl`)
}

/** The blocks and tools that are sent with a mark. */
export class CacheMarks {
  readonly #kept: ReadonlySet<MaybeMarked>

  constructor(
    /** Marks can be sent. Then all text is sent as parts, because only parts carry marks, and marks move between turns. */
    readonly inUse: boolean,
    marked: readonly MaybeMarked[],
  ) {
    this.#kept = new Set(inUse ? marked.slice(-marksMax) : [])
  }

  keeps(block: MaybeMarked): boolean {
    return this.#kept.has(block)
  }

  /** The member that marks a part which ends these blocks; its value is undefined if none of them is marked. */
  memberOf(...blocks: readonly MaybeMarked[]): Members {
    const mark = blocks.find((block) => this.keeps(block))?.cacheMark
    return { prompt_cache_breakpoint: mark && breakpoints[mark.life] }
  }
}

// Marks for callers that set none, because their dialect caches by itself. Agents send a growing conversation: its system
// text and tools stay, each turn appends. A mark at the end of each of the last two user turns is read where the previous
// turn wrote it, and writes what is new; providers look back from a mark by some 20 blocks only, so one would not do.

/**
 * The conversation with marks, if the target caches only what is marked and the caller left the choice to it. The first
 * turn of a conversation that may not continue gets one mark, behind system text and tools, and only if it has tools:
 * writing to a cache costs more than plain input.
 */
export function placeMarks(conversation: Conversation, rules: TargetRules, isNamedSession: boolean): Conversation {
  const { system, tools, turns, promptCacheOptions: options, automaticCache } = conversation
  if (!rules.cachesOnlyMarked || options?.onlyMarked || automaticCache || findMarks(conversation).length > 0) {
    return conversation
  }
  const isGrowing = isNamedSession || options !== undefined || turns.some(({ role }) => role === 'assistant')
  if (!isGrowing && tools.length === 0) return conversation
  const cacheMark: CacheMark = { life: options?.life ?? 'short' }
  const lastText = system.findLastIndex(({ text }) => text.trim() !== '')
  const lastTool = lastText === -1 ? tools.length - 1 : -1
  const marked = new Set(isGrowing ? lastUserTurns(turns) : [])
  return {
    ...conversation,
    system: system.map((block, i) => (i === lastText ? { ...block, cacheMark } : block)),
    tools: tools.map((tool, i) => (i === lastTool ? { ...tool, cacheMark } : tool)),
    turns: turns.map((turn, i) => (marked.has(i) && turn.role === 'user' ? markEnd(turn, cacheMark) : turn)),
  }
}

/** The index of the last user turn, and of the last one before the model's latest answer. */
function lastUserTurns(turns: readonly Turn[]): number[] {
  const last = turns.findLastIndex(({ role }) => role === 'user')
  const answer = turns.slice(0, Math.max(last, 0)).findLastIndex(({ role }) => role === 'assistant')
  return [last, turns.slice(0, Math.max(answer, 0)).findLastIndex(({ role }) => role === 'user')]
}

function markEnd(turn: Turn & { role: 'user' }, cacheMark: CacheMark): Turn {
  return {
    ...turn,
    blocks: turn.blocks.map((block, i) => (i === turn.blocks.length - 1 ? { ...block, cacheMark } : block)),
  }
}

/** A rendered tool or block whose mark can still be removed. */
export interface Marked {
  mark: CacheMark | undefined
}

/**
 * Keeps the last marks of rendered blocks, as many as the provider accepts. `marked` is in prompt order: tools, system,
 * messages. The automatic mark counts as one on the last block; returns it if it is still to be sent.
 */
export function limitMarks(
  marked: readonly Marked[],
  automatic: CacheMark | undefined,
  warnings: WarningList,
): CacheMark | undefined {
  const last: Marked = { mark: automatic }
  const marks = [...marked, last].filter(({ mark }) => mark !== undefined)
  for (const block of marks.slice(0, -marksMax)) {
    if (block.mark) warnMark(block.mark, '/messages', warnings)
    block.mark = undefined
  }
  const kept = marks.slice(-marksMax)
  // The provider refuses a short life before a long one.
  const firstShort = kept.findIndex(({ mark }) => mark?.life === 'short')
  if (firstShort !== -1 && kept.slice(firstShort).some(({ mark }) => mark?.life === 'long')) {
    for (const block of kept) block.mark = { life: 'short' }
    warnings.add('cache_life_shortened', '/messages')
  }
  // One block cannot have two lives; the longer one, which it already has, covers both.
  const end = marked.at(-1)?.mark
  return end && end.life !== last.mark?.life ? undefined : last.mark
}
