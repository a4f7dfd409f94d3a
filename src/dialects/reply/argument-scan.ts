// Tells while a tool call's arguments stream whether the JSON value in them is complete, without parsing it.

export class ArgumentScan {
  /** The first character that is not blank; '' until there is one. */
  first = ''
  /** The object, list or string that the arguments begin with has ended. A number or a word never says so. */
  complete = false
  #depth = 0
  #inString = false
  #escaped = false

  /** Arguments have begun and more must come. */
  get isPartial(): boolean {
    return this.first !== '' && !this.complete
  }

  /** Answers with what of the text belongs to the value: models write on behind its end. */
  push(text: string): string {
    let length = 0
    for (const character of text) {
      if (this.complete) break
      length += character.length
      if (this.first === '' && character.trim() !== '') this.first = character
      if (this.first === '{' || this.first === '[' || this.first === '"') this.#step(character)
    }
    return text.slice(0, length)
  }

  #step(character: string): void {
    if (this.#escaped) this.#escaped = false
    else if (this.#inString) {
      if (character === '\\') this.#escaped = true
      else if (character === '"') {
        this.#inString = false
        this.complete = this.#depth === 0
      }
    } else if (character === '"') this.#inString = true
    else if (character === '{' || character === '[') this.#depth += 1
    else if ((character === '}' || character === ']') && this.#depth > 0) {
      this.#depth -= 1
      this.complete = this.#depth === 0
    }
  }
}
