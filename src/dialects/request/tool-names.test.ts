import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { ToolNames } from './tool-names.ts'

test('legal names stay, others become legal, no two become one, and all can be restored', () => {
  const name = fc.oneof(
    fc.string({ minLength: 1, maxLength: 100, unit: 'grapheme' }),
    fc.constantFrom('a.b', 'a b', 'a_b'),
  )
  fc.assert(
    fc.property(fc.uniqueArray(name, { minLength: 1, maxLength: 20 }), (names) => {
      const sent = new ToolNames(names, 64)
      const all = names.map((each) => sent.sent(each))
      expect(new Set(all).size).toBe(names.length)
      for (const [i, each] of names.entries()) {
        expect(all[i]).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
        expect(sent.undo.get(all[i] as string) ?? all[i]).toBe(each)
      }
    }),
  )
})

test('what a name becomes does not depend on the others', () => {
  expect(new ToolNames(['a.b', 'c d'], 64).sent('a.b')).toBe(new ToolNames(['x', 'a.b'], 64).sent('a.b'))
})

test('a name that a caller gave to another tool is not taken', () => {
  const taken = new ToolNames(['a.b'], 64).sent('a.b')
  expect(new ToolNames(['a.b', taken], 64).sent('a.b')).not.toBe(taken)
  expect(new ToolNames(['json'], 64).unused('json')).toBe('json_2')
})
