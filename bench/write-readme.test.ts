import { expect, test } from 'bun:test'
import { replaced } from './write-readme.ts'

const readme =
  'Before\n<!-- generated: a -->\nold $& text\n<!-- end -->\nBetween\n<!-- generated: b -->\nkept\n<!-- end -->\n'

test('writes one generated part again and leaves the rest alone', () => {
  const written = replaced(readme, 'a', 'new $1 text')
  expect(written).toBe(
    'Before\n<!-- generated: a -->\n\nnew $1 text\n\n<!-- end -->\nBetween\n<!-- generated: b -->\nkept\n<!-- end -->\n',
  )
})

test('comes out the same when written twice', () => {
  expect(replaced(replaced(readme, 'a', 'new'), 'a', 'new')).toBe(replaced(readme, 'a', 'new'))
})
