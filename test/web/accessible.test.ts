// axe-core over every page, by day and by night, wide and narrow.

import { afterAll, beforeAll, expect } from 'bun:test'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { browserTest, openBrowser, openPage } from '../parts/browser.ts'
import { builtInEntries, startWeb, type WebHarness } from '../parts/web.ts'

let browser: Browser | undefined
let web: WebHarness
let axe = ''

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
  axe = await Bun.file(fileURLToPath(import.meta.resolve('axe-core/axe.min.js'))).text()
})
afterAll(async () => {
  await browser?.close()
  await web.stop()
})

interface Found {
  readonly violations: readonly {
    readonly id: string
    readonly impact: string
    readonly nodes: readonly { readonly html: string }[]
  }[]
}

const paths = [
  '/',
  '/catalog/sandbox/echo',
  '/compare?m=sandbox/echo&m=sandbox/cache',
  '/compare',
  '/console',
  '/catalog/no/model',
]

for (const colorScheme of ['light', 'dark'] as const) {
  for (const width of [1280, 360]) {
    browserTest(`axe finds nothing serious on any page, ${colorScheme}, ${width} pixels`, async () => {
      const { page, go, close } = await openPage(browser, web.url, { colorScheme, viewport: { width, height: 800 } })
      for (const path of paths) {
        await go(web.url + path)
        await page.evaluate(axe)
        const { violations } = (await page.evaluate('axe.run()')) as Found
        const serious = violations
          .filter(({ impact }) => impact === 'serious' || impact === 'critical')
          .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
        expect({ path, serious }).toEqual({ path, serious: [] })
      }
      await close()
    })
  }
}
