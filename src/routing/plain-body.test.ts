import { expect, test } from 'bun:test'
import { plainBody, plainWords } from './plain-body.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

test.each([
  ['Your Credit', 'your credit'],
  ['Your Crédit €😀', 'YOUR CRéDIT €😀'],
  ['\\u0059our \\u0043r\\u00e9dit \\u20AC\\ud83d\\ude00', 'your crédit €😀'],
  ['a\\nb\\tc\\"d\\\\e\\/f', 'a\nb\tc"d\\e/f'],
  // Halves of pairs, and escapes that are none.
  ['a\\ud83db \\ude00 \\u12x', 'a�b � u12x'],
  ['cut off\\', 'cut off'],
])('%s is found as %s', (sent, words) => {
  expect(plainBody(bytes(sent)).toString()).toContain(plainWords(words))
})

test('every character is found, escaped or not', () => {
  for (let code = 0; code <= 0xffff; code++) {
    const sign = String.fromCharCode(code)
    if (sign === '"' || sign === '\\') continue
    const escaped = `<\\u${code.toString(16).padStart(4, '0')}>`
    // Half a pair is no character.
    const plain = plainWords(`<${sign}>`).toWellFormed()
    if (plainBody(bytes(escaped)).toString() !== plain) throw new Error(escaped)
    if (plainBody(bytes(`<${sign}>`)).toString() !== plain) throw new Error(`${escaped} unescaped`)
  }
})

test('what was not sent is not found', () => {
  expect(plainBody(bytes('{"content":"a\\\\u0062c"}')).toString()).not.toContain(plainWords('abc'))
})
