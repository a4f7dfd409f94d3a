// Whether a regular expression takes time that grows with the square of its text. Texts are made to measure: what the
// expression itself speaks of, over and over, with something in front and something behind that spoils the match.

/** Strings that expressions often repeat, and strings that often stand between repetitions. */
const usual = [
  ...['a', '1', ' ', '\t', '\n', '-', '_', '.', '/', '"', ':', '\\', '{', '@', '<', '>', '=', ','],
  ...['a ', 'a-', 'ab-', '1,', '1.', '.a#', '.a?', ':a', 'a.', ';a', 'a=', 'k:', 'key ', 'A1-', '\\n', '. '],
]
const spoilers = ['\n', '!', '\0']

const shortLength = 2000
const longLength = 8000
/** Reading so much once takes a hundredth of this, a square of it several times as much. */
const slowMs = 4
/** A fourfold text takes four times as long, or sixteen times. */
const ratioMax = 9

/** A text that did it, cut short and quoted; undefined = none did. */
export function pump(pattern: string): string | undefined {
  if (!/[+*]|\{\d*,\d*\}/.test(pattern)) return undefined
  const [, source = '', flags = ''] = /^\/(.*)\/([a-z]*)$/s.exec(pattern) ?? []
  const expression = new RegExp(source, flags)
  const words = source.match(/[A-Za-z]{2,}/g) ?? []
  for (const part of new Set([...words, ...usual])) {
    for (const front of ['', ...words.slice(0, 2)]) {
      for (const behind of spoilers) {
        const textOf = (length: number) => front + part.repeat(Math.ceil(length / part.length)) + behind
        if (isQuadratic(expression, textOf)) return JSON.stringify(front + part.repeat(3) + behind)
      }
    }
  }
  return undefined
}

/** Looks twice, and takes the best of several, before it believes a slow one: the machine may have been busy. */
function isQuadratic(expression: RegExp, textOf: (length: number) => string): boolean {
  // Steps that grow faster yet show here, before they would take forever.
  if (bestMs(expression, textOf(shortLength), 1) > 20 && bestMs(expression, textOf(shortLength), 5) > 20) return true
  const long = textOf(longLength)
  if (bestMs(expression, long, 1) <= slowMs) return false
  const longMs = bestMs(expression, long, 5)
  return longMs > slowMs && longMs > ratioMax * bestMs(expression, textOf(shortLength), 5)
}

function bestMs(expression: RegExp, text: string, runs: number): number {
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < runs; run++) {
    const start = performance.now()
    // Looks for every match, as far as the flags ask for it.
    text.replace(expression, '')
    best = Math.min(best, performance.now() - start)
  }
  return best
}
