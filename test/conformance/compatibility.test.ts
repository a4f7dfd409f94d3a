// The text of docs/compatibility.md. Its tables are checked by the tests that find out what is in them.

import { expect, test } from 'bun:test'
import { keptClients, pageOf, pagePath, tableIn } from './compatibility.ts'

test('docs/compatibility.md has the text that npm run compatibility writes, around its tables', async () => {
  const page = await Bun.file(pagePath).text()
  const tables = {
    requests: tableIn(page, 'requests'),
    replies: tableIn(page, 'replies'),
    faults: tableIn(page, 'faults'),
  }
  for (const table of Object.values(tables)) expect(table).toStartWith('|  | ')
  expect(pageOf(tables, page)).toBe(page)
  expect(page).not.toMatch(/\blost\b/)
})

test('keeps the section about clients', () => {
  const section = '<!-- clients -->\n| client | works |\n<!-- /clients -->'
  expect(keptClients(`old\n${section}\nold`)).toBe(section)
})
