// axe-core over every page, by day and by night, wide and narrow.

import { afterAll, beforeAll, expect } from 'bun:test'
import type { Browser } from 'playwright-core'
import { seriousFaultsInBoth } from '../parts/axe.ts'
import { browserTest, openBrowser, openPage } from '../parts/browser.ts'
import { builtInEntries, startWeb, type WebHarness } from '../parts/web.ts'

let browser: Browser | undefined
let web: WebHarness

beforeAll(async () => {
  browser = await openBrowser()
  const some = builtInEntries().filter(({ id }) => /^(sandbox\/|anthropic\/claude-opus)/.test(id))
  web = await startWeb({
    entries: some.map((entry, index) =>
      index % 3 === 0
        ? { ...entry, price: null, callable: false }
        : {
            ...entry,
            routes: entry.routes.map((route) => ({ ...route, health: index % 3 === 1 ? 'ejected' : 'probing' })),
          },
    ),
  })
})
afterAll(async () => {
  await browser?.close()
  await web.stop()
})

const paths = [
  '/',
  '/catalog/sandbox/echo',
  '/compare?m=sandbox/echo&m=sandbox/cache',
  '/compare',
  '/console',
  '/catalog/no/model',
]

for (const width of [1280, 360]) {
  browserTest(`axe finds no serious issue on any page, in light and dark mode, at ${width} pixels`, async () => {
    const { page, go, close } = await openPage(browser, web.url, { viewport: { width, height: 800 } })
    for (const path of paths) {
      await go(web.url + path)
      await page.waitForSelector('main h1')
      expect({ path, serious: await seriousFaultsInBoth(page) }).toEqual({ path, serious: [] })
    }
    await close()
  })
}
