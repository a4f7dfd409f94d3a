// Chance for choices that only need to be fair, such as sharing traffic by weight. Never for secrets or ids.

/** A number in [0, 1). */
export function randomUnit(): number {
  return Math.random()
}
