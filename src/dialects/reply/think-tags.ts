// Separates reasoning that a model writes as <think>…</think> at the start of its text. Tags later in the text are
// ordinary text. Only used for models known to do this.

import type { ReplyBlock, ReplyEvent } from '../canonical/reply.ts'
import type { ReplyStage } from './stages.ts'

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
      return this.#read()
    }
    return event.type === 'block-end' ? this.#end() : [event]
  }

  #read(): ReplyEvent[] {
    const events: ReplyEvent[] = []
    if (this.#state === 'beginning') this.#readBeginning()
    if (this.#state === 'thinking') this.#readThinking(events)
    // The line breaks between reasoning and answer belong to the tags.
    if (this.#state === 'after') {
      this.#held = this.#held.trimStart()
      if (this.#held !== '') this.#state = 'text'
    }
    if (this.#state === 'text') this.#passText(events)
    return events
  }

  #readBeginning(): void {
    const text = this.#held.trimStart()
    if (text.startsWith(openTag)) {
      this.#state = 'thinking'
      this.#held = text.slice(openTag.length)
    } else if (!openTag.startsWith(text)) this.#state = 'text'
  }

  #readThinking(events: ReplyEvent[]): void {
    const at = this.#held.indexOf(closeTag)
    const end = at < 0 ? this.#held.length - tagPrefixAtEnd(this.#held) : at
    this.#passThinking(events, this.#held.slice(0, end))
    this.#held = this.#held.slice(end)
    if (at < 0) return
    this.#held = this.#held.slice(closeTag.length)
    this.#closeThinking(events)
    this.#state = 'after'
  }

  /** Skips reasoning of only whitespace: some models write an empty pair of tags. */
  #passThinking(events: ReplyEvent[], written: string): void {
    const text = this.#isOpen ? written : written.trimStart()
    if (text === '') return
    if (!this.#isOpen) events.push({ type: 'block-start', block: { kind: 'thinking' } })
    this.#isOpen = true
    events.push({ type: 'thinking-delta', text })
  }

  #passText(events: ReplyEvent[]): void {
    if (this.#held === '') return
    if (!this.#isOpen) events.push({ type: 'block-start', block: this.#block })
    this.#isOpen = true
    events.push({ type: 'text-delta', text: this.#held })
    this.#held = ''
  }

  #closeThinking(events: ReplyEvent[]): void {
    if (this.#isOpen) events.push({ type: 'signature', signature: this.sign() }, { type: 'block-end' })
    this.#isOpen = false
  }

  #end(): ReplyEvent[] {
    const events: ReplyEvent[] = []
    if (this.#state === 'thinking') {
      this.#passThinking(events, this.#held)
      this.#closeThinking(events)
    } else {
      if (this.#state === 'beginning') this.#passText(events)
      if (this.#isOpen) events.push({ type: 'block-end' })
    }
    this.#state = 'other'
    return events
  }
}

/** How many characters at the end could be the start of the closing tag. */
function tagPrefixAtEnd(text: string): number {
  for (let length = Math.min(closeTag.length - 1, text.length); length > 0; length--) {
    if (closeTag.startsWith(text.slice(-length))) return length
  }
  return 0
}
