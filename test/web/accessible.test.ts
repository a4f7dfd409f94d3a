// axe-core over the catalog's pages and the sign-in page, in light and dark mode, on desktop and mobile.

import { afterAll, expect } from 'bun:test'
import { seriousFaultsInBoth } from '../parts/axe.ts'
import { browserTest, openBrowser, openContext, watchPage } from '../parts/browser.ts'
import { builtInEntries, startWeb } from '../parts/web.ts'

const entries = builtInEntries()
  .filter(({ id }) => /^(sandbox\/|anthropic\/claude-opus)/.test(id))
  .map((entry, index) => {
    if (index % 3 === 0) return { ...entry, price: null, callable: false }
    const health = index % 3 === 1 ? 'ejected' : 'probing'
    return { ...entry, routes: entry.routes.map((route) => ({ ...route, health }) as const) }
  })
const browser = await openBrowser()
const web = await startWeb({ entries })
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

browserTest('axe finds no serious issue on any page, in light and dark mode, at 1280 and 360 pixels', async () => {
  const { page, go, close } = await watchPage(await openContext(browser))
  for (const path of paths) {
    await go(web.url + path)
    await page.waitForSelector('main h1')
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 800 })
      const place = { path, width }
      expect({ ...place, serious: await seriousFaultsInBoth(page) }).toEqual({ ...place, serious: [] })
    }
  }
  await close()
})
