import { expect, test } from 'bun:test'
import { cleanText, renderFacts, renderTable } from './table.ts'

const plain = { color: false }

test('columns line up by what a terminal shows, numbers to the right, and no line ends in spaces', () => {
  const columns = [{ title: 'NAME' }, { title: 'COST', align: 'right' } as const, { title: 'NOTE' }]
  expect(
    renderTable(
      columns,
      [
        ['ci', '$0.50', ''],
        ['laptop', '$12.00', 'x'],
      ],
      plain,
    ),
  ).toBe(['NAME      COST  NOTE', 'ci       $0.50', 'laptop  $12.00  x', ''].join('\n'))
})

test('wide, joined and combining characters do not move the next column', () => {
  const rows = [
    ['日本', '1'],
    ['👩‍👩‍👧', '2'],
    ['e\u0301a', '3'],
    ['abcd', '4'],
  ]
  // 日本 takes four cells, the family two, é one.
  expect(renderTable([{ title: 'N' }, { title: 'X' }], rows, plain)).toBe(
    ['N     X', '日本  1', '👩‍👩‍👧    2', 'e\u0301a    3', 'abcd  4', ''].join('\n'),
  )
})

test('what comes from outside cannot colour the screen, move the cursor or turn the text round', () => {
  expect(cleanText('\u001b[31mred\r\n\u202eevil\u0007')).toBe('\ufffd[31mred\ufffd\ufffd\ufffdevil\ufffd')
  expect(renderTable([{ title: 'N' }], [['a\nb']], plain)).toBe('N\na\ufffdb\n')
})

test('only the head is coloured, and only where colour is allowed', () => {
  expect(renderTable([{ title: 'N' }], [['a']], { color: true })).toBe('\u001b[1mN\u001b[22m\na\n')
})

test('facts stand below each other, and unknown ones are left out', () => {
  expect(
    renderFacts([
      ['id', 'ws_1'],
      ['reason', undefined],
      ['balance', '$5.00'],
    ]),
  ).toBe('  id       ws_1\n  balance  $5.00\n')
})
