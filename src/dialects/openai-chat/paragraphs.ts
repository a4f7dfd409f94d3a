// Chat Completions has one text where canonical replies have blocks. Blocks that touch are one text that was split;
// blocks with something between them are paragraphs.

export class Paragraphs {
  #hasText = false
  #isBroken = false

  /** Something else stands between the text so far and what follows. */
  break(): void {
    this.#isBroken = true
  }

  /** What goes in front of the next text; called only if that text is not empty. */
  separator(): string {
    const separator = this.#hasText && this.#isBroken ? '\n\n' : ''
    this.#hasText = true
    this.#isBroken = false
    return separator
  }
}
