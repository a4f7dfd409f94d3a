// Text from outside for a terminal: what would move the cursor, colour the screen or begin a line is written out, so that
// nobody can forge a line of the log or hide one.

/** Control characters, ends of lines, and what turns the direction of writing. */
const active = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** On one line, with `\\u001b` for the escape character and so on. */
export function printableLine(text: string): string {
  return text.replace(active, escaped)
}

/** Of several lines, such as where an error came from: the further ones are set in, as no line of the log is. */
export function printableLines(text: string): string {
  return text.split('\n').map(printableLine).join('\n    ')
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
