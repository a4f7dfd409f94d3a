// docs/compatibility.md matches what the gateway does.

import { expect, test } from 'bun:test'
import { compatibilityPage, keptClients, pagePath } from './compatibility.ts'

test('docs/compatibility.md is what npm run compatibility writes, and nothing is lost in any cell', async () => {
  const page = await Bun.file(pagePath).text()
  const fresh = await compatibilityPage(page)
  const known = new Set(page.split('\n'))
  // Look at a changed cell before writing the page again.
  expect(fresh.split('\n').filter((line) => !known.has(line))).toEqual([])
  expect(fresh).toBe(page)
  expect(fresh).not.toMatch(/\blost\b/)
})

test('keeps the section about clients', () => {
  const section = '<!-- clients -->\n| client | works |\n<!-- /clients -->'
  expect(keptClients(`old\n${section}\nold`)).toBe(section)
})
