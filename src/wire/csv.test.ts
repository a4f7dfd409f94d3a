import { expect, test } from 'bun:test'
import { csvCell, csvLine } from './csv.ts'

test('writes a cell that begins like a formula as text, in every spelling', () => {
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1', '＋1', '－1', '＠1']) {
    expect([text, csvCell(text).replace(/^"/, '').startsWith("'")]).toEqual([text, true])
  }
  expect(csvCell('=HYPERLINK("http://x","y")')).toBe(`"'=HYPERLINK(""http://x"",""y"")"`)
})

test('numbers stay numbers, and nothing stays nothing', () => {
  expect(csvLine([-1, 0.5, '-0.25', true, null, '', 'a-b', 'a = b'])).toBe('-1,0.5,-0.25,true,,,a-b,a = b')
})

test('commas, quotes and line breaks stay inside their cell', () => {
  expect(csvLine(['a,b', 'say "x"', 'two\nlines'])).toBe('"a,b","say ""x""","two\nlines"')
})
