// How much of the schemas of one request is brought into another form. Each part of one costs microseconds, in which
// nobody else is served, and a body has room for thousands of them.

import type { RawJson } from '../canonical/conversation.ts'

/** Of one schema: far above what any provider compiles. */
export const schemaCharactersMax = 200_000
/** Of all: 250 tools of 4,000 characters each. */
const togetherMax = 1_000_000

export class SchemaBudget {
  #charactersLeft = togetherMax

  /** A text says why it is too much; nothing is taken then. */
  take({ length }: RawJson): string | undefined {
    if (length > schemaCharactersMax) return `it is longer than ${schemaCharactersMax} characters`
    if (length > this.#charactersLeft) return `the schemas of a request may have ${togetherMax} characters together`
    this.#charactersLeft -= length
    return undefined
  }
}
