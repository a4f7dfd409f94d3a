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

  push(text: string): void {
    for (const character of text) {
      if (this.complete) return
      if (this.first === '' && character.trim() !== '') this.first = character
      this.#step(character)
    }
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
