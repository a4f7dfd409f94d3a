// Stop sequences that the target cannot match itself: the text is cut at the first one, and the reply ends there. The
// provider goes on generating until the caller of this stage cancels it.

import type { ReplyEvent, Stop } from '../canonical/reply-event.ts'
import type { ReplyStage } from './reply-stage.ts'

export class MatchStop implements ReplyStage {
  /** The sequence that ended the reply; once it is set, the upstream call is to be cancelled. */
  matched: string | undefined
  readonly #sequences: readonly string[]
  /** A match may begin in this many characters before the end of what has come. */
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
        return [...delta(rest), event]
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
      return delta(known.slice(0, passed))
    }
    this.matched = found.sequence
    this.#held = ''
    // What the provider would have reported is lost with the rest of its reply.
    const end = { type: 'reply-end', stop: this.#stop(found.sequence), usage: undefined } as const
    return [...delta(known.slice(0, found.at)), { type: 'block-end' }, end]
  }

  /** A call waits for its result, whatever was said behind it: callers look for that word to run it. */
  #stop(sequence: string): Stop {
    const raw = 'stop_sequence'
    return this.#hasCalls ? { unified: 'tool-calls', raw } : { unified: 'stop-sequence', raw, sequence }
  }

  /** The one that is complete first, however the text is cut; of several that end together the longest. */
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

  /** How much of the end could be the beginning of a sequence. */
  #heldLength(text: string): number {
    for (let length = Math.min(this.#holdMax, text.length); length > 0; length--) {
      const end = text.slice(-length)
      if (this.#sequences.some((sequence) => sequence.startsWith(end))) return length
    }
    return 0
  }
}

function delta(text: string): readonly ReplyEvent[] {
  return text === '' ? [] : [{ type: 'text-delta', text }]
}
