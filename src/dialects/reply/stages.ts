// Stages between the provider's parser and the caller's renderer. A stage changes some of a reply's events and keeps
// state for one stream. Its input and its output are well-formed replies.

import type { Usage } from '../../kernel/usage.ts'
import { parseJson, recordOf, textOf } from '../canonical/json.ts'
import type { ReplyBlock, ReplyEvent, Stop } from '../canonical/reply.ts'
import type { ChargeQuoter, ReplyMapping } from '../canonical/translation.ts'

export interface ReplyStage {
  push(event: ReplyEvent): readonly ReplyEvent[]
}

// Maps a reply back to the caller's request with the stages that its ReplyMapping needs. Most requests need none, and
// their events pass unchanged.

export class ReplyMapper implements ReplyStage {
  readonly #stages: readonly ReplyStage[]
  readonly #calls: RestoreCalls | undefined
  readonly #stop: MatchStop | undefined

  constructor(mapping: ReplyMapping) {
    const { argumentNames, toolNames, customTools, jsonTool, stop } = mapping
    const isChanged = argumentNames?.size || toolNames.size > 0 || customTools.size > 0
    this.#calls = isChanged ? new RestoreCalls(mapping) : undefined
    this.#stop = stop.length > 0 ? new MatchStop(stop) : undefined
    // The order matters: stop sequences match the text that the caller receives.
    this.#stages = [
      this.#calls,
      jsonTool === undefined ? undefined : new UnwrapJsonTool(jsonTool),
      mapping.singleToolCall ? new SingleToolCall() : undefined,
      this.#stop,
    ].filter((stage) => stage !== undefined)
  }

  push(event: ReplyEvent): readonly ReplyEvent[] {
    let events: readonly ReplyEvent[] = [event]
    for (const stage of this.#stages) events = events.flatMap((each) => stage.push(each))
    return events
  }

  /** The reply ended at a stop sequence before the provider finished: cancel the upstream call. */
  get isStoppedEarly(): boolean {
    return this.#stop?.matched !== undefined
  }

  /** Bytes of arguments that were received and are not in the events. */
  get heldBytes(): number {
    return this.#calls?.heldBytes ?? 0
  }
}

// Restores the caller's tool names, argument names and custom tools. Arguments that may have to change are held until
// they are complete.

type Rewrite = (written: string) => string

export class RestoreCalls implements ReplyStage {
  heldBytes = 0
  #held = ''
  #rewrite: Rewrite | undefined

  constructor(private readonly mapping: Pick<ReplyMapping, 'argumentNames' | 'toolNames' | 'customTools'>) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type === 'block-start' && event.block.kind === 'tool-call') {
      const { argumentNames, toolNames, customTools } = this.mapping
      const { block } = event
      const name = toolNames.get(block.name) ?? block.name
      const isUnwrapped = !block.custom && customTools.has(name)
      const fields = argumentNames?.get(block.name)
      this.#rewrite = isUnwrapped ? customInput : fields && ((written) => renamedFields(written, fields))
      return [{ type: 'block-start', block: { ...block, name, custom: block.custom || isUnwrapped } }]
    }
    if (this.#rewrite === undefined) return [event]
    if (event.type === 'arguments-delta') {
      this.#held += event.text
      this.heldBytes += Buffer.byteLength(event.text)
      return []
    }
    if (event.type !== 'block-end') return [event]
    const text = this.#rewrite(this.#held)
    this.heldBytes -= Buffer.byteLength(text)
    this.#held = ''
    this.#rewrite = undefined
    return text === '' ? [event] : [{ type: 'arguments-delta', text }, event]
  }
}

/** Replaces the names at the root of an object, and leaves every other byte as written. */
function renamedFields(written: string, names: ReadonlyMap<string, string>): string {
  let depth = 0
  return written.replaceAll(
    /"((?:[^"\\]|\\[\s\S])*)"(\s*:)?|[[\]{}]/g,
    (token, name: string, colon: string | undefined) => {
      if (token === '{' || token === '[') depth++
      else if (token === '}' || token === ']') depth--
      // Sent names contain nothing that needs escaping.
      const own = depth === 1 && colon !== undefined ? names.get(name) : undefined
      return own === undefined ? token : JSON.stringify(own) + colon
    },
  )
}

/** The text in `{"input": "…"}`, also if the model broke off or wrote invalid escapes. Other arguments stay. */
function customInput(written: string): string {
  const { input } = recordOf(parseJson(written))
  if (typeof input === 'string') return input
  const [, inside] = /^\s*\{\s*"input"\s*:\s*"((?:[^"\\]|\\[\s\S])*)/.exec(written) ?? []
  if (inside === undefined) return written.trim() === '' ? '' : written
  return inside.replaceAll(/\\(?:u[0-9a-fA-F]{4}|[\s\S])/g, (short) => textOf(parseJson(`"${short}"`)) || short)
}

// Turns calls of the hidden tool that emulates a JSON output format into text. The caller's own tools are not affected.

export class UnwrapJsonTool implements ReplyStage {
  /** Text that is passed on only if no JSON follows, because it would make the JSON invalid. */
  #held: ReplyEvent[] = []
  /** Inside the hidden call, inside a held or omitted block, or in any other. */
  #block: 'json' | 'held' | 'dropped' | 'other' = 'other'
  #hasJson = false
  #hasArguments = false
  #hasOwnCalls = false

  /** `tool`: upstream name of the hidden tool. */
  constructor(private readonly tool: string) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type === 'block-start') return this.#start(event)
    if (event.type === 'keep-alive' || event.type === 'reply-failure') return [event]
    if (event.type === 'reply-end') return [...this.#held, this.#ended(event)]
    const block = this.#block
    const isEnd = event.type === 'block-end'
    if (isEnd) this.#block = 'other'
    if (block === 'dropped') return []
    if (block === 'held') {
      this.#held.push(event)
      return []
    }
    if (block !== 'json') return [event]
    if (isEnd) return this.#hasArguments ? [event] : [{ type: 'text-delta', text: '{}' }, event]
    if (event.type !== 'arguments-delta') return [event]
    this.#hasArguments ||= event.text.trim() !== ''
    return [{ type: 'text-delta', text: event.text }]
  }

  #start(event: ReplyEvent & { type: 'block-start' }): readonly ReplyEvent[] {
    const { block } = event
    const isHidden = block.kind === 'tool-call' && block.name === this.tool
    if (isHidden || block.kind === 'text') {
      this.#block = this.#hasJson ? 'dropped' : isHidden ? 'json' : 'held'
      if (this.#block === 'held') this.#held.push(event)
      if (this.#block !== 'json') return []
      this.#hasJson = true
      this.#held = []
      return [{ type: 'block-start', block: { kind: 'text' } }]
    }
    this.#block = 'other'
    if (block.kind !== 'tool-call') return [event]
    // The caller's tools are called, so this is not the final answer and its text stays.
    this.#hasOwnCalls = true
    return [...this.#held.splice(0), event]
  }

  #ended(event: ReplyEvent & { type: 'reply-end' }): ReplyEvent {
    const { stop } = event
    if (!this.#hasJson || this.#hasOwnCalls || stop.unified !== 'tool-calls') return event
    return { ...event, stop: { ...stop, unified: 'end' } }
  }
}

// Keeps only the first tool call, for callers that asked for one at a time and providers that cannot guarantee it.

export class SingleToolCall implements ReplyStage {
  #hasCall = false
  #isDropping = false
  /** A call was omitted since the last block. */
  #isApart = false

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type === 'block-start') {
      const { block } = event
      this.#isDropping = block.kind === 'tool-call' && this.#hasCall
      if (block.kind === 'tool-call') this.#hasCall = true
      if (this.#isDropping) this.#isApart = true
      else if (this.#isApart) {
        this.#isApart = false
        if (block.kind === 'text') return [{ type: 'block-start', block: { ...block, apart: true } }]
      }
    }
    if (!this.#isDropping || event.type === 'keep-alive') return [event]
    // Ends always pass.
    if (event.type === 'reply-end' || event.type === 'reply-failure') return [event]
    if (event.type === 'block-end') this.#isDropping = false
    return []
  }
}

// Matches stop sequences that the target cannot match itself: the text is cut at the first match and the reply ends.
// The provider keeps generating until the call is cancelled.

export class MatchStop implements ReplyStage {
  /** The sequence that ended the reply. Once set, the upstream call should be cancelled. */
  matched: string | undefined
  readonly #sequences: readonly string[]
  #isText = false
  #hasCalls = false
  #held = ''

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences.filter((sequence) => sequence !== '')
  }

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (this.matched !== undefined) return []
    switch (event.type) {
      case 'block-start':
        this.#isText = event.block.kind === 'text'
        this.#hasCalls ||= event.block.kind === 'tool-call'
        return [event]
      case 'text-delta':
        return this.#isText ? this.#read(event.text) : [event]
      case 'block-end': {
        const rest = this.#held
        this.#held = ''
        this.#isText = false
        return [...textDelta(rest), event]
      }
      default:
        return [event]
    }
  }

  #read(text: string): readonly ReplyEvent[] {
    const known = this.#held + text
    const found = this.#firstMatch(known)
    if (!found) {
      const passed = known.length - startAtEnd(known, this.#sequences)
      this.#held = known.slice(passed)
      return textDelta(known.slice(0, passed))
    }
    this.matched = found.sequence
    this.#held = ''
    // The provider's usage would have come after the cut.
    const end = { type: 'reply-end', stop: this.#stop(found.sequence), usage: undefined } as const
    return [...textDelta(known.slice(0, found.at)), { type: 'block-end' }, end]
  }

  /** A reply with a tool call stops with `tool-calls`, because callers check for that reason to run the call. */
  #stop(sequence: string): Stop {
    const raw = 'stop_sequence'
    return this.#hasCalls ? { unified: 'tool-calls', raw } : { unified: 'stop-sequence', raw, sequence }
  }

  /** The match that is complete first, independent of chunk boundaries; of several that end together, the longest. */
  #firstMatch(text: string): { at: number; sequence: string } | undefined {
    let first: { at: number; end: number; sequence: string } | undefined
    for (const sequence of this.#sequences) {
      const at = text.indexOf(sequence)
      const end = at + sequence.length
      if (at < 0 || (first && (end > first.end || (end === first.end && at >= first.at)))) continue
      first = { at, end, sequence }
    }
    return first
  }
}

/** How many characters at the end could be the start of a sequence. */
function startAtEnd(text: string, sequences: readonly string[]): number {
  const lengths = sequences.map((sequence) => {
    let length = Math.min(sequence.length - 1, text.length)
    while (!sequence.startsWith(text.slice(text.length - length))) length--
    return length
  })
  return Math.max(0, ...lengths)
}

function textDelta(text: string): readonly ReplyEvent[] {
  return text === '' ? [] : [{ type: 'text-delta', text }]
}

// Counts the bytes of generated text and reads the provider's usage. The reply-end carries the reconciled usage.

export class UsageMeter {
  outputBytes = 0
  /** Reported with the start of the reply. */
  usageAtStart: Usage | undefined
  /** The usage of the whole reply, once known. */
  usage: Usage | undefined

  constructor(private readonly quoter: ChargeQuoter) {}

  measure(event: ReplyEvent): ReplyEvent {
    switch (event.type) {
      case 'reply-start':
        this.usageAtStart = event.usage ?? this.usageAtStart
        break
      case 'block-start':
        if (event.block.kind === 'tool-call') this.outputBytes += Buffer.byteLength(event.block.name)
        break
      case 'text-delta':
      case 'thinking-delta':
      case 'arguments-delta':
        this.outputBytes += Buffer.byteLength(event.text)
        break
      case 'reply-end':
        this.usage = this.quoter.quoteUsage(event.usage, this.usageAtStart, () => this.outputBytes)
        if (this.usage !== event.usage) return { ...event, usage: this.usage }
    }
    return event
  }
}

// Separates reasoning that a model writes as <think>…</think> at the start of its text. Tags later in the text are
// ordinary text. Only used for models known to do this.

const openTag = '<think>'
const closeTag = '</think>'

export class ThinkTags implements ReplyStage {
  /**
   * beginning: only whitespace and part of the tag so far · thinking: after the tag · after: after the closing tag,
   * before any text · text: no longer searching · other: not in a text block.
   */
  #state: 'other' | 'beginning' | 'thinking' | 'after' | 'text' = 'other'
  #held = ''
  /** The incoming text block. */
  #block: ReplyBlock = { kind: 'text' }
  /** A block was opened in place of the incoming one. */
  #isOpen = false

  /** `sign` creates the signature of a thinking block. */
  constructor(private readonly sign: () => string) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type === 'block-start' && event.block.kind === 'text') {
      this.#state = 'beginning'
      this.#block = event.block
      this.#held = ''
      this.#isOpen = false
      return []
    }
    if (this.#state === 'other') return [event]
    if (event.type === 'text-delta') {
      this.#held += event.text
      return this.#read(false)
    }
    if (event.type !== 'block-end') return [event]
    const events = this.#read(true)
    if (this.#isOpen) events.push(event)
    this.#state = 'other'
    return events
  }

  /** `isEnd`: no more text follows in this block. */
  #read(isEnd: boolean): ReplyEvent[] {
    const events: ReplyEvent[] = []
    if (this.#state === 'beginning') {
      const text = this.#held.trimStart()
      if (text.startsWith(openTag)) {
        this.#state = 'thinking'
        this.#held = text.slice(openTag.length)
      } else if (isEnd || !openTag.startsWith(text)) this.#state = 'text'
    }
    if (this.#state === 'thinking') this.#readThinking(events, isEnd)
    // The line breaks between reasoning and answer belong to the tags.
    if (this.#state === 'after') {
      this.#held = this.#held.trimStart()
      if (this.#held !== '') this.#state = 'text'
    }
    if (this.#state === 'text') {
      this.#pass(events, this.#block, { type: 'text-delta', text: this.#held })
      this.#held = ''
    }
    return events
  }

  #readThinking(events: ReplyEvent[], isEnd: boolean): void {
    const at = this.#held.indexOf(closeTag)
    const end = at >= 0 ? at : this.#held.length - (isEnd ? 0 : startAtEnd(this.#held, [closeTag]))
    const written = this.#held.slice(0, end)
    // Skips reasoning of only whitespace: some models write an empty pair of tags.
    const text = this.#isOpen ? written : written.trimStart()
    this.#pass(events, { kind: 'thinking' }, { type: 'thinking-delta', text })
    this.#held = this.#held.slice(at >= 0 ? end + closeTag.length : end)
    if (at < 0 && !isEnd) return
    if (this.#isOpen) events.push({ type: 'signature', signature: this.sign() }, { type: 'block-end' })
    this.#isOpen = false
    this.#state = 'after'
  }

  #pass(events: ReplyEvent[], block: ReplyBlock, delta: ReplyEvent & { readonly text: string }): void {
    if (delta.text === '') return
    if (!this.#isOpen) events.push({ type: 'block-start', block })
    this.#isOpen = true
    events.push(delta)
  }
}
