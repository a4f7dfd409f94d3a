// docs/compatibility.md says what is the case.

import { expect, test } from 'bun:test'
import { compatibilityPage, pagePath } from './compatibility.ts'

test('docs/compatibility.md is what npm run compatibility writes', async () => {
  const page = await Bun.file(pagePath).text()
  const fresh = await compatibilityPage(page)
  const known = new Set(page.split('\n'))
  // Whoever changed a cell should look at it before writing the page anew.
  expect(fresh.split('\n').filter((line) => !known.has(line))).toEqual([])
  expect(fresh).toBe(page)
})

test('the section about clients is kept, and nothing was lost on any way', async () => {
  const section = '<!-- clients -->\n| client | works |\n<!-- /clients -->'
  const page = await compatibilityPage(`old\n${section}\nold`)
  expect(page).toContain(section)
  expect(page).not.toMatch(/\blost\b/)
})
