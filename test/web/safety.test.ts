// Safety of the pages, whatever the catalog contains: no foreign text runs, nothing foreign loads, and a private catalog needs
// a session.

import { afterAll, describe, expect, test } from 'bun:test'
import type { CatalogEntry } from '../../src/web/catalog/entry.ts'
import { browserTest, openBrowser, openPage } from '../parts/browser.ts'
import { sandboxEntries, startWeb } from '../parts/web.ts'
import { hostileTexts } from './console-harness.ts'

const browser = await openBrowser()
const web = await startWeb()
afterAll(async () => {
  await browser?.close()
  await web.stop()
})

const corpus = [...hostileTexts, '\u2028window.ran=1\u2029']

function hostile(text: string, index: number): CatalogEntry {
  const [base] = sandboxEntries()
  if (!base) throw new Error('the sandbox has no models')
  const [route] = base.routes
  if (!route) throw new Error('the sandbox has no route')
  return {
    ...base,
    id: `x${index}/${text}`,
    name: text,
    owned_by: text,
    tags: [text],
    source: text,
    released: text,
    price_version: text,
    price_source: text,
    routes: [{ ...route, provider: text, upstream_model: text, health: text as 'parked', why: text }],
  }
}

describe('script-like text', () => {
  browserTest('does not run on any page', async () => {
    const entries = corpus.map(hostile)
    const other = await startWeb({ entries })
    const first = encodeURIComponent(entries[0]?.id ?? '')
    const paths = ['/', `/?q=${encodeURIComponent(corpus[1] ?? '')}`, `/compare?m=${first}`]
    for (const { id } of entries) paths.push(`/catalog/${id.split('/').map(encodeURIComponent).join('/')}`)
    paths.push(`/catalog/acme/${encodeURIComponent('<script>window.ran=1</script>')}`)
    const { page, go, reports, close } = await openPage(browser, other.url)
    for (const path of paths) {
      await go(other.url + path)
      const ran = await page.evaluate('window.ran')
      // The browser reports the 404 of an unknown model, and nothing else.
      const reported = reports.filter((report) => !report.includes('404'))
      expect({ path, ran, reported }).toEqual({ path, ran: undefined, reported: [] })
    }
    await close()
    await other.stop()
  })

  browserTest('is shown literally', async () => {
    const other = await startWeb({ entries: corpus.map(hostile) })
    const { page, close } = await openPage(browser, other.url)
    const names = await page.locator('.model-link').allTextContents()
    expect(names.sort()).toEqual([...corpus].sort())
    await close()
    await other.stop()
  })
})

describe('every page', () => {
  const paths = ['/', '/catalog/sandbox/echo', '/catalog/no/model', '/compare', '/console', '/catalog/entries']
  test('has the content security policy', async () => {
    for (const path of paths) {
      const { headers } = await fetch(web.url + path)
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
      )
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
    }
  })

  test('has no inline script or style', async () => {
    for (const path of paths) {
      const html = await (await fetch(web.url + path)).text()
      expect(html.match(/<script(?![^>]* src="\/assets\/)(?! type="application\/json")[^>]*>/)).toBeNull()
      expect(html.match(/<style|\sstyle="|\son[a-z]+="/)).toBeNull()
    }
  })
})

describe('assets', () => {
  test('have hashed names, are compressed, and are cached forever', async () => {
    const html = await (await fetch(web.url)).text()
    const paths = [...new Set(html.match(/\/assets\/[^"]+/g))]
    expect(paths).toHaveLength(5)
    for (const path of paths) {
      const response = await fetch(web.url + path, { headers: { 'accept-encoding': 'gzip' }, decompress: false })
      expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(response.headers.get('content-encoding')).toBe('gzip')
    }
  })

  test('are small: at most 40 KB of script for the catalog', async () => {
    const html = await (await fetch(web.url)).text()
    const script = /\/assets\/catalog-[^"]+\.js/.exec(html)?.[0] ?? ''
    const response = await fetch(web.url + script, { headers: { 'accept-encoding': 'gzip' }, decompress: false })
    const { byteLength } = await response.arrayBuffer()
    expect(byteLength).toBeGreaterThan(1000)
    expect(byteLength).toBeLessThanOrEqual(40 * 1024)
  })

  test('never serve other files', async () => {
    for (const path of [
      '../package.json',
      '%2e%2e/package.json',
      '..%2f..%2fpackage.json',
      'x%00.js',
      'assets.ts',
      '',
    ]) {
      expect((await fetch(`${web.url}/assets/${path}`)).status).toBe(404)
    }
  })
})

test('a private catalog redirects visitors to sign in, its data included', async () => {
  const other = await startWeb()
  other.isPublic = false
  for (const path of ['/', '/compare', '/catalog/sandbox/echo', '/catalog/entries', '/catalog/events']) {
    const { status, headers } = await fetch(other.url + path, { redirect: 'manual' })
    expect({ path, status, to: headers.get('location') }).toEqual({ path, status: 303, to: '/console' })
  }
  await other.stop()
})
