// Text cut between the two halves of a character, put together again. Providers cut emoji so; half of one is not
// Unicode, and strict readers refuse a record that holds it.

/** One text in pieces. */
export class WholeCharacters {
  /** The first half of a character whose second half has not come. */
  #half = ''

  /** What can be written of the text so far, and has not been. */
  take(piece: string): string {
    if (piece === '') return ''
    const text = this.#half + piece
    const endsInside = isFirstHalf(text.charCodeAt(text.length - 1))
    this.#half = endsInside ? text.slice(-1) : ''
    return (endsInside ? text.slice(0, -1) : text).toWellFormed()
  }

  /** The text has ended: what stands for a half that never became whole. */
  rest(): string {
    const text = this.#half.toWellFormed()
    this.#half = ''
    return text
  }
}

function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
