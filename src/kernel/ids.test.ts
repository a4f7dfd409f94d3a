import { expect, test } from 'bun:test'
import { createId, isId } from './ids.ts'

test('knows an id of its kind by its form', () => {
  for (let n = 0; n < 100; n++) expect(isId('key', createId('key'))).toBe(true)
  const id = createId('key')
  expect(isId('prj', id)).toBe(false)
  for (const text of ['', 'key_', 'key_1', id.slice(0, -1), `${id}0`, ` ${id}`, `${id}\n`, id.toLowerCase()]) {
    expect(isId('key', text)).toBe(false)
  }
  // Letters that Crockford's alphabet leaves out, a first character above seven, and what a database refuses.
  for (const letter of ['I', 'L', 'O', 'U', '\u0000', '\ud800', "'"]) {
    expect(isId('key', id.slice(0, -1) + letter)).toBe(false)
  }
  expect(isId('key', `key_8${id.slice(5)}`)).toBe(false)
})
