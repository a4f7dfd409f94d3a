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
    const end = at >= 0 ? at : this.#held.length - (isEnd ? 0 : tagPrefixAtEnd(this.#held))
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

/** How many characters at the end could be the start of the closing tag. */
function tagPrefixAtEnd(text: string): number {
  for (let length = Math.min(closeTag.length - 1, text.length); length > 0; length--) {
    if (closeTag.startsWith(text.slice(-length))) return length
  }
  return 0
}
