// Stages between the provider's parser and the caller's renderer. A stage changes some of a reply's events and keeps
// state for one stream. Its input and its output are well-formed replies.

import type { Usage } from '../../kernel/usage.ts'
import type { ReplyEvent, Stop } from '../canonical/reply.ts'
import type { ReplyMapping, UsageReconciler } from '../canonical/translation.ts'

export interface ReplyStage {
  push(event: ReplyEvent): readonly ReplyEvent[]
}

/** Passes an event through all stages in order. */
export function throughStages(stages: readonly ReplyStage[], event: ReplyEvent): readonly ReplyEvent[] {
  let events: readonly ReplyEvent[] = [event]
  for (const stage of stages) {
    const [only, ...more] = events
    if (only === undefined) return events
    events = more.length === 0 ? stage.push(only) : events.flatMap((each) => stage.push(each))
  }
  return events
}

// Maps a reply back to the caller's request with the stages that its ReplyMapping needs. Most requests need none, and
// their events pass unchanged.

export class ReplyMapper implements ReplyStage {
  readonly #stages: ReplyStage[] = []
  readonly #stop: MatchStop | undefined

  constructor(mapping: ReplyMapping) {
    // The order matters. Argument names and the hidden tool use upstream tool names, custom tools the caller's. Stop
    // sequences match the text that the caller receives.
    if (mapping.argumentNames?.size) this.#stages.push(new RestoreArgumentNames(mapping.argumentNames))
    if (mapping.jsonTool !== undefined) this.#stages.push(new UnwrapJsonTool(mapping.jsonTool))
    if (mapping.toolNames.size > 0) this.#stages.push(new RestoreToolNames(mapping.toolNames))
    if (mapping.customTools.size > 0) this.#stages.push(new UnwrapCustomCalls(mapping.customTools))
    if (mapping.singleToolCall) this.#stages.push(new SingleToolCall())
    if (mapping.stop.length > 0) {
      this.#stop = new MatchStop(mapping.stop)
      this.#stages.push(this.#stop)
    }
  }

  push(event: ReplyEvent): readonly ReplyEvent[] {
    return throughStages(this.#stages, event)
  }

  /** The reply ended at a stop sequence before the provider finished: cancel the upstream call. */
  get isCut(): boolean {
    return this.#stop?.matched !== undefined
  }
}

// Restores the caller's tool names.

export class RestoreToolNames implements ReplyStage {
  constructor(private readonly names: ReadonlyMap<string, string>) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type !== 'block-start' || event.block.kind !== 'tool-call') return [event]
    const name = this.names.get(event.block.name)
    return [name === undefined ? event : { type: 'block-start', block: { ...event.block, name } }]
  }
}

// Restores the caller's argument names while the arguments stream. Only names at the root are checked.

export class RestoreArgumentNames implements ReplyStage {
  #call: FieldNames | undefined

  /** Upstream tool name → upstream argument name → the caller's. */
  constructor(private readonly tools: ReadonlyMap<string, ReadonlyMap<string, string>>) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type === 'block-start') {
      const names = event.block.kind === 'tool-call' ? this.tools.get(event.block.name) : undefined
      this.#call = names && new FieldNames(names)
      return [event]
    }
    if (this.#call === undefined) return [event]
    if (event.type === 'arguments-delta') return argumentsDelta(this.#call.push(event.text))
    if (event.type !== 'block-end') return [event]
    const rest = this.#call.end()
    this.#call = undefined
    return [...argumentsDelta(rest), event]
  }
}

function argumentsDelta(text: string): readonly ReplyEvent[] {
  return text === '' ? [] : [{ type: 'arguments-delta', text }]
}

/** Replaces the names of an object's members in text that arrives in pieces. */
class FieldNames {
  #depth = 0
  #escaped = false
  /** Inside a name at the root, inside any other string, or in neither. */
  #string: 'name' | 'other' | undefined
  #expectsName = false
  /** The start of a name, with its opening quote. */
  #name = ''

  constructor(private readonly names: ReadonlyMap<string, string>) {}

  push(text: string): string {
    let passed = ''
    for (const character of text) passed += this.#step(character)
    return passed
  }

  /** Returns the start of a name in which the arguments broke off. */
  end(): string {
    return this.#name
  }

  #step(character: string): string {
    if (this.#string === undefined) return this.#outside(character)
    const isEnd = character === '"' && !this.#escaped
    this.#escaped = character === '\\' && !this.#escaped
    const isName = this.#string === 'name'
    if (isEnd) this.#string = undefined
    if (!isName) return character
    this.#name += character
    return isEnd ? this.#takeName() : ''
  }

  #outside(character: string): string {
    if (character === '"') {
      this.#string = this.#depth === 1 && this.#expectsName ? 'name' : 'other'
      if (this.#string === 'other') return character
      this.#name = character
      return ''
    }
    if (character === '{' || character === '[') this.#depth += 1
    else if (character === '}' || character === ']') this.#depth -= 1
    if (character === '{' || character === ',') this.#expectsName = true
    else if (character === ':') this.#expectsName = false
    return character
  }

  #takeName(): string {
    const written = this.#name
    this.#name = ''
    // Sent names contain nothing that needs escaping.
    const own = this.names.get(written.slice(1, -1))
    return own === undefined ? written : JSON.stringify(own)
  }
}

// Turns calls of the hidden tool that emulates a JSON output format into text. The caller's own tools are not affected.

export class UnwrapJsonTool implements ReplyStage {
  /** Text that is passed on only if no JSON follows, because it would make the JSON invalid. */
  #held: ReplyEvent[] = []
  #isHolding = false
  /** Inside the hidden call, inside an omitted block, or in any other. */
  #block: 'json' | 'dropped' | 'other' = 'other'
  #hasJson = false
  #hasArguments = false
  #hasOwnCalls = false

  /** `tool`: upstream name of the hidden tool. */
  constructor(private readonly tool: string) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    switch (event.type) {
      case 'block-start':
        return this.#start(event)
      case 'arguments-delta':
        if (this.#block !== 'json') break
        this.#hasArguments ||= event.text.trim() !== ''
        return [{ type: 'text-delta', text: event.text }]
      case 'block-end':
        return this.#endBlock(event)
      case 'reply-end':
        return [...this.#release(), this.#ended(event)]
      case 'keep-alive':
      case 'reply-failure':
        return [event]
    }
    return this.#pass(event)
  }

  #start(event: ReplyEvent & { type: 'block-start' }): readonly ReplyEvent[] {
    const { block } = event
    if (block.kind === 'tool-call' && block.name === this.tool) {
      this.#block = this.#hasJson ? 'dropped' : 'json'
      if (this.#hasJson) return []
      this.#hasJson = true
      this.#held = []
      return [{ type: 'block-start', block: { kind: 'text' } }]
    }
    if (block.kind === 'text') {
      this.#block = this.#hasJson ? 'dropped' : 'other'
      this.#isHolding = !this.#hasJson
      return this.#pass(event)
    }
    this.#block = 'other'
    if (block.kind !== 'tool-call') return this.#pass(event)
    // The caller's tools are called, so this is not the final answer and its text stays.
    this.#hasOwnCalls = true
    return [...this.#release(), event]
  }

  #endBlock(event: ReplyEvent): readonly ReplyEvent[] {
    const wasJson = this.#block === 'json'
    const passed = this.#pass(event)
    this.#block = 'other'
    this.#isHolding = false
    return wasJson && !this.#hasArguments ? [{ type: 'text-delta', text: '{}' }, event] : passed
  }

  #pass(event: ReplyEvent): readonly ReplyEvent[] {
    if (this.#block === 'dropped') return []
    if (!this.#isHolding) return [event]
    this.#held.push(event)
    return []
  }

  #release(): readonly ReplyEvent[] {
    const held = this.#held
    this.#held = []
    this.#isHolding = false
    return held
  }

  #ended(event: ReplyEvent & { type: 'reply-end' }): ReplyEvent {
    const { stop } = event
    if (!this.#hasJson || this.#hasOwnCalls || stop.unified !== 'tool-calls') return event
    return { ...event, stop: { ...stop, unified: 'end' } }
  }
}

// Turns calls of functions that emulate custom tools back: `{"input": "…"}` becomes plain text, as it streams.

/** Matches everything before the first character of the input. */
const opening = /^\s*\{\s*"input"\s*:\s*"/
/**
 * After this many characters the arguments are only read at their end, because matching again with every piece would be
 * quadratic.
 */
const openingLengthMax = 4096

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

export class UnwrapCustomCalls implements ReplyStage {
  #input: InputReader | undefined

  constructor(private readonly tools: ReadonlySet<string>) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type === 'block-start') {
      const { block } = event
      if (block.kind !== 'tool-call' || block.custom || !this.tools.has(block.name)) return [event]
      this.#input = new InputReader()
      return [{ type: 'block-start', block: { ...block, custom: true } }]
    }
    if (this.#input === undefined) return [event]
    if (event.type === 'arguments-delta') return argumentsDelta(this.#input.push(event.text))
    if (event.type !== 'block-end') return [event]
    const rest = this.#input.end()
    this.#input = undefined
    return [...argumentsDelta(rest), event]
  }
}

/** Reads the string after `"input":` from arguments that arrive in pieces. */
class InputReader {
  /** Unread arguments; before the input starts, all of them. */
  #unread = ''
  #place: 'before' | 'inside' | 'behind' = 'before'
  /** Characters already searched without a match. */
  #lookedLength = 0

  push(text: string): string {
    if (this.#place === 'behind') return ''
    this.#unread += text
    if (this.#place === 'before') {
      if (this.#lookedLength > openingLengthMax) return ''
      this.#lookedLength = this.#unread.length
      const found = opening.exec(this.#unread)
      if (!found) return ''
      this.#place = 'inside'
      this.#unread = this.#unread.slice(found[0].length)
    }
    return this.#readInside()
  }

  /** Arguments of an unexpected shape are parsed as a whole, or passed on unchanged. */
  end(): string {
    if (this.#place !== 'before' || this.#unread.trim() === '') return ''
    try {
      const value: unknown = JSON.parse(this.#unread)
      const input = typeof value === 'object' && value !== null && 'input' in value ? value.input : undefined
      return typeof input === 'string' ? input : this.#unread
    } catch {
      return this.#unread
    }
  }

  #readInside(): string {
    let at = 0
    for (;;) {
      const character = this.#unread[at]
      if (character === undefined) break
      if (character === '"') {
        this.#place = 'behind'
        break
      }
      if (character !== '\\') at += 1
      else {
        const length = this.#unread[at + 1] === 'u' ? 6 : 2
        if (at + length > this.#unread.length) break
        at += length
      }
    }
    const text = unescaped(this.#unread.slice(0, at))
    this.#unread = this.#unread.slice(at)
    return text
  }
}

/** Decodes the inside of a string. Invalid escapes stay, because models write them. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  return text.replaceAll(/\\(?:u([0-9a-fA-F]{4})|([\s\S]))/g, (whole, hex: string | undefined, short: string) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
    return escapes[short] ?? (short === '"' || short === '\\' || short === '/' ? short : whole)
  })
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
  /** A match may start in this many characters before the end of the text so far. */
  readonly #holdMax: number
  #isText = false
  #hasCalls = false
  #held = ''

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences.filter((sequence) => sequence !== '')
    this.#holdMax = Math.max(0, ...this.#sequences.map(({ length }) => length - 1))
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
      const passed = known.length - this.#heldLength(known)
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

  /** How many characters at the end could be the start of a sequence. */
  #heldLength(text: string): number {
    for (let length = Math.min(this.#holdMax, text.length); length > 0; length--) {
      const end = text.slice(-length)
      if (this.#sequences.some((sequence) => sequence.startsWith(end))) return length
    }
    return 0
  }
}

function textDelta(text: string): readonly ReplyEvent[] {
  return text === '' ? [] : [{ type: 'text-delta', text }]
}

// Counts the bytes of generated text and reads the provider's usage. The reply-end carries the reconciled usage.

export class UsageMeter implements ReplyStage {
  outputBytes = 0
  /** What the provider reported before the end of the reply. */
  usageSoFar: Usage | undefined
  /** The usage of the whole reply, once known. */
  usage: Usage | undefined

  constructor(private readonly reconciler: UsageReconciler) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    switch (event.type) {
      case 'reply-start':
        this.usageSoFar = event.usage ?? this.usageSoFar
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
        this.usage = this.reconciler.finalUsage(event.usage, this.usageSoFar, () => this.outputBytes)
        if (this.usage !== event.usage) return [{ ...event, usage: this.usage }]
    }
    return [event]
  }
}
