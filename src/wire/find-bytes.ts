// Where some bytes stand in others. Whether they do at all often decides whether a body is looked at any further.

/** Buffer's methods work on any Uint8Array, and a view to call them on costs more than the search in a small body. */
const { includes, indexOf } = Buffer.prototype

export function hasBytes(body: Uint8Array, word: Uint8Array): boolean {
  return includes.call(body, word)
}

/** The offset of the first at `from` or behind it; -1 where there is none. */
export function findBytes(body: Uint8Array, word: Uint8Array, from = 0): number {
  return indexOf.call(body, word, from)
}
