// The parts of a host's reasoning that only it can read, gathered from the deltas, so that they can travel in a
// signature of ours and go back as they were.

import { textOf } from '../canonical/json.ts'

type Detail = Record<string, unknown>

export class ReasoningBlob {
  #details: Detail[] = []
  /** Something is gathered that only its host can read. */
  isOpaque = false

  push(details: readonly Detail[]): void {
    for (const detail of details) this.#merge(detail)
  }

  /** The entries gathered, as JSON; undefined if all of them can be read. Starts over. */
  take(): string | undefined {
    const blob = this.isOpaque ? JSON.stringify(this.#details) : undefined
    this.#details = []
    this.isOpaque = false
    return blob
  }

  /** Texts come in pieces, everything else whole. */
  #merge(detail: Detail): void {
    if (textOf(detail.signature) !== '' || textOf(detail.data) !== '') this.isOpaque = true
    const at = this.#details.findLastIndex(({ type, index }) => type === detail.type && index === detail.index)
    const before = this.#details[at]
    if (!before || textOf(detail.data) !== '') {
      this.#details.push({ ...detail })
      return
    }
    const merged: Detail = { ...before }
    for (const [name, value] of Object.entries(detail)) {
      if (value === null) continue
      const grows = (name === 'text' || name === 'summary') && typeof value === 'string'
      merged[name] = grows ? textOf(before[name]) + value : value
    }
    this.#details[at] = merged
  }
}
