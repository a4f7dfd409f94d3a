// Makes the pictures in docs/screenshots from real pages over a real gateway's catalog: `bun test/web/screenshots.ts`.
// Providers are only listed, with keys that are none; nobody is called.

import { join } from 'node:path'
import type { CatalogEntry } from '../../src/web/catalog/entry.ts'
import { openBrowser, openPage } from '../parts/browser.ts'
import { startGateway } from '../parts/gateway.ts'
import { startWeb } from '../parts/web.ts'

const folder = join(import.meta.dir, '../../docs/screenshots')

const pages = [
  { name: 'catalog', path: '/' },
  { name: 'model', path: '/catalog/anthropic/claude-sonnet-4.5' },
  { name: 'compare', path: '/compare?m=anthropic/claude-sonnet-4.5&m=openai/gpt-5.1&m=sandbox/echo' },
  { name: 'sign-in', path: '/console' },
] as const

const windows = [
  { name: 'wide', viewport: { width: 1280, height: 860 } },
  { name: 'phone', viewport: { width: 360, height: 760 } },
] as const

const gateway = await startGateway({ env: { ANTHROPIC_API_KEY: 'not-a-key', OPENAI_API_KEY: 'not-a-key' } })
const { data } = (await (await fetch(`${gateway.url}/api/catalog`)).json()) as { data: readonly CatalogEntry[] }
await gateway.stop()

const web = startWeb({ entries: data })
const browser = await openBrowser()
for (const { name, path } of pages) {
  for (const { name: size, viewport } of windows) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, close } = await openPage(browser, web.url + path, { viewport, colorScheme })
      if (path !== '/console') await page.waitForSelector('.live .lamp.go')
      await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`) })
      await close()
    }
  }
}
await browser?.close()
await web.stop()
