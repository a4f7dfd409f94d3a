// The catalog in a real browser: what a visitor sees, filters, copies and compares, with scripts and without.

import { afterAll, describe, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import type { CatalogEntry } from '../../src/web/catalog/entry.ts'
import { pageSize } from '../../src/web/catalog/query.ts'
import { seriousFaultsInBoth } from '../parts/axe.ts'
import {
  browserTest,
  layoutShift,
  openBrowser,
  openContext,
  openPage,
  sidewaysPixels,
  type WatchedPage,
  watchPage,
} from '../parts/browser.ts'
import { builtInEntries, startWeb } from '../parts/web.ts'

const browser = await openBrowser()
// A page of the default order shows them first, for visitors without the sandbox.
const used = ['openai/gpt-5.6', 'sandbox/echo', 'anthropic/claude-opus-5']
const web = await startWeb({ entries: builtInEntries(), used })
const permissions = ['clipboard-read', 'clipboard-write']
const visitor =
  browser && (await openContext(browser, { permissions, reducedMotion: 'reduce' }, `${web.url}/robots.txt`))

/** A page of the shared context. Tests without scripts, and of what a context keeps, use `openPage`. */
async function open(address: string): Promise<WatchedPage> {
  if (!visitor) throw new Error('a test without a browser was not skipped')
  const opened = await watchPage(visitor)
  await opened.go(address)
  return opened
}

async function rowIds(page: Page): Promise<readonly (string | null)[]> {
  const rows = await page.locator('[data-row]').all()
  return await Promise.all(rows.map((row) => row.getAttribute('data-row')))
}

afterAll(async () => {
  await browser?.close()
  await web.stop()
})

describe('the list', () => {
  browserTest('shows the most used models first, with id, price and status', async () => {
    const { page, go, reports, close } = await open(web.url)
    const row = page.locator('[data-row="sandbox/echo"]')
    expect(await page.locator('.result-count').textContent()).toBe(`${web.entries.length} models`)
    expect(await page.locator('[data-row]').count()).toBe(pageSize)
    const [first, second, third] = await rowIds(page)
    expect([first, second]).toEqual(['openai/gpt-5.6', 'anthropic/claude-opus-5'])
    expect(third).not.toStartWith('sandbox/')
    await go(`${web.url}/?creator=sandbox`)
    expect(await row.locator('.model-link').textContent()).toBe('Sandbox Echo')
    // docs/sandbox.md: $1.00 in, $2.00 out.
    expect(await row.locator('td[data-label="Input"]').textContent()).toBe('$1.00')
    expect(await row.locator('td[data-label="Output"]').textContent()).toBe('$2.00')
    // (3 × $1.00 + $2.00) / 4
    expect(await row.locator('td[data-label="Blended (3:1)"]').textContent()).toBe('$1.25')
    expect(await row.locator('.status').textContent()).toBe('simulated')
    const firstToken = row.locator('td[data-label="Latency (p50)"] span')
    expect([await firstToken.textContent(), await firstToken.getAttribute('title')]).toEqual(['–', 'not measured'])
    expect(await row.locator('.badge').allTextContents()).toEqual(['sandbox'])
    expect(reports).toEqual([])
    await close()
  })

  browserTest('filters while typing, and keeps the view in the address', async () => {
    const { page, reports, close } = await open(web.url)
    await page.fill('#q', 'sandbox ECHO')
    await page.waitForSelector('.result-count:has-text("1 of ")')
    expect(await page.locator('[data-row]').count()).toBe(1)
    expect(new URL(page.url()).search).toBe('?q=sandbox+ECHO')
    await page.fill('#q', '')
    await page.check('.facet label:has-text("Image input") input')
    await page.selectOption('select[name=sort]', 'price')
    await page.waitForURL(/\?modality=image&sort=price$/)
    const expected = web.entries.filter(({ tags }) => tags.includes('vision')).length
    const count = `${expected} of ${web.entries.length} models`
    await page.waitForSelector(`.result-count:text-is("${count}")`)
    await page.reload()
    await page.waitForSelector(`html[data-alive] .result-count:text-is("${count}")`)
    await page.click('.chip:has-text("Image input")')
    await page.waitForURL(/\?sort=price$/)
    expect(await page.locator('.chip').count()).toBe(0)
    expect(reports).toEqual([])
    await close()
  })

  browserTest('finds the cheapest model with tools and a context of 200,000 tokens', async () => {
    const { page, reports, close } = await open(web.url)
    await page.locator('.facet label', { hasText: 'Tools' }).locator('input').check()
    await page.locator('.facet label', { hasText: '200K or more' }).locator('input').check()
    await page.selectOption('select[name=sort]', { label: 'input price' })
    await page.waitForURL(/\?tag=tools&min_context=200000&sort=price$/)
    const fitting = web.entries.filter(
      ({ tags, context_tokens: size }) => tags.includes('tools') && (size ?? 0) >= 200_000,
    )
    await page.waitForSelector(`.result-count:text-is("${fitting.length} of ${web.entries.length} models")`)
    const priceOf = ({ price }: (typeof fitting)[number]) =>
      typeof price === 'object' && price ? Number(price.input) : 0
    const lowest = Math.min(...fitting.map(priceOf))
    const first = await page.locator('[data-row]').first().getAttribute('data-row')
    const cheapest = fitting.filter((entry) => priceOf(entry) === lowest).map(({ id }) => id)
    expect(cheapest).toContain(first ?? '')
    expect(reports).toEqual([])
    await close()
  })

  browserTest('searches, filters, sorts, turns pages and compares without scripts', async () => {
    const { page, close } = await openPage(browser, web.url, { javaScriptEnabled: false })
    expect(await page.locator('[data-row="openai/gpt-5.6"]').isVisible()).toBe(true)
    await page.click('.pager a:text-is("Next")')
    expect(new URL(page.url()).search).toBe('?page=2')
    expect(await page.locator('[data-row="openai/gpt-5.6"]').count()).toBe(0)
    await page.check('.facet label:has-text("JSON output") input')
    await page.click('.facets button:text-is("Apply filters")')
    await page.click('thead a:text-is("Context")')
    expect(new URL(page.url()).search).toBe('?tag=json&sort=context')
    expect(await page.locator('th[aria-sort=descending]').textContent()).toBe('Context')
    await page.fill('#q', 'sandbox/cache')
    await page.click('text=Apply')
    expect(await page.locator('[data-row]').count()).toBe(1)
    await page.check('input[name=m][value="sandbox/cache"]')
    await page.click('.compare-bar button[type=submit]')
    expect(new URL(page.url()).pathname).toBe('/compare')
    expect(await page.locator('.comparison thead th code').count()).toBe(1)
    await close()
  })

  browserTest('sorts by a column, and the other way round', async () => {
    const { page, reports, close } = await open(`${web.url}/?creator=sandbox`)
    await page.waitForSelector('.live .status-ok')
    await page.click('thead a:text-is("Input")')
    await page.waitForSelector('th[aria-sort=ascending]:has-text("Input")')
    const cheapest = await rowIds(page)
    await page.click('thead a:has-text("Input")')
    await page.waitForSelector('th[aria-sort=descending]:has-text("Input")')
    // docs/sandbox.md: only embeddings cost less than $1.00.
    expect([cheapest[0], (await rowIds(page)).at(-1)]).toEqual(['sandbox/embed', 'sandbox/embed'])
    expect(reports).toEqual([])
    await close()
  })

  browserTest('filters in a sheet on a phone, with scripts and without', async () => {
    for (const javaScriptEnabled of [true, false]) {
      const { page, close } = await openPage(browser, web.url, {
        viewport: { width: 390, height: 800 },
        javaScriptEnabled,
      })
      const option = page.locator('.facet label:has-text("Embeddings")')
      expect(await option.isVisible()).toBe(false)
      await page.click('.facets-open')
      await option.click()
      if (!javaScriptEnabled) await page.click('.facets button:text-is("Apply filters")')
      await page.waitForURL(/[?&]modality=embeddings\b/)
      const expected = web.entries.filter(({ tags }) => tags.includes('embeddings')).length
      await page.waitForSelector(`.result-count:has-text("${expected} of ")`)
      await close()
    }
  })

  browserTest('fits every width, also with long names', async () => {
    const { page, close } = await open(web.url)
    // Either side of each change of the layout.
    for (const width of [1440, 1400, 1280, 1250, 1240, 1024, 1000, 980, 810, 790, 390]) {
      await page.setViewportSize({ width, height: 800 })
      expect({ width, pixels: await sidewaysPixels(page) }).toEqual({ width, pixels: 0 })
    }
    await close()
  })

  browserTest('a page of a thousand models stays small', async () => {
    const more = Array.from({ length: 5 }, (_, at) =>
      web.entries.map((entry) => ({ ...entry, id: `${entry.id}-${at}`, name: `${entry.name} ${at}` })),
    )
    const entries = more.flat().slice(0, 1000)
    const shop = await startWeb({ entries })
    const { page, close } = await open(shop.url)
    await page.waitForSelector('.live .status-ok')
    const html = await (await fetch(shop.url)).text()
    const nodes = Number(await page.evaluate('document.querySelectorAll("*").length'))
    // 50 rows of at most 45 elements, and 500 for everything else.
    expect({ nodes, isSmall: nodes < 2750 }).toEqual({ nodes, isSmall: true })
    expect(html.length).toBeLessThan(250_000)
    await page.fill('#q', entries[999]?.id ?? '')
    await page.waitForSelector('.result-count:has-text("1 of 1000")')
    await close()
    await shop.stop()
  })

  browserTest('works with the keyboard alone', async () => {
    const { page, reports, close } = await open(web.url)
    const focused = () => page.evaluate('document.activeElement?.closest("[data-row]")?.dataset.row')
    await page.keyboard.press('/')
    await page.keyboard.type('sandbox/')
    await page.waitForSelector('.result-count:has-text("10 of ")')
    await page.keyboard.press('ArrowDown')
    expect(await focused()).toBe('sandbox/breaks-off')
    await page.keyboard.press('ArrowDown')
    expect(await focused()).toBe('sandbox/cache')
    await page.keyboard.press('c')
    await page.waitForSelector('[data-row="sandbox/cache"] .copy.copied')
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('sandbox/cache')
    await page.keyboard.press('x')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('x')
    expect(await page.locator('.compare-bar [role=status]').textContent()).toBe('2 of 4 selected')
    await page.keyboard.press('?')
    expect(await page.locator('dialog.help').isVisible()).toBe(true)
    await page.keyboard.press('Escape')
    expect(await focused()).toBe('sandbox/breaks-off')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/catalog\/sandbox\/breaks-off$/)
    expect(reports).toEqual([])
    await close()
  })

  browserTest('does not compare a fifth model', async () => {
    const { page, close } = await open(`${web.url}/?creator=sandbox`)
    for (const id of ['echo', 'cache', 'think', 'tools']) await page.check(`input[name=m][value="sandbox/${id}"]`)
    expect(await page.locator('input[name=m][value="sandbox/slow"]').isDisabled()).toBe(true)
    await page.click('.compare-bar button[type=submit]')
    await page.waitForURL(/\/compare\?/)
    expect(await page.locator('.comparison thead th code').allTextContents()).toHaveLength(4)
    await close()
  })

  browserTest('keeps the selection from the comparison back to the list, also behind a filter', async () => {
    const { page, reports, close } = await open(`${web.url}/compare?m=openai/gpt-5.6&m=anthropic/claude-opus-5`)
    await page.click('text=Change selection')
    await page.waitForSelector('html[data-alive] .compare-bar')
    expect(await page.locator('.compare-bar [role=status]').textContent()).toBe('2 of 4 selected')
    expect(await page.getByLabel('Compare anthropic/claude-opus-5', { exact: true }).isChecked()).toBe(true)
    await page.fill('#q', 'sandbox/cache')
    await page.getByLabel('Compare sandbox/cache').check()
    await page.click('.compare-bar button[type=submit]')
    await page.waitForURL(/\/compare\?/)
    const ids = await page.locator('.comparison thead th code').allTextContents()
    expect(ids.sort()).toEqual(['anthropic/claude-opus-5', 'openai/gpt-5.6', 'sandbox/cache'])
    expect(reports).toEqual([])
    await close()
  })
})

describe('an open page', () => {
  const row = { input: '7.25', output: '2.00', cache_read: '1.00', cache_write: '1.00', cache_write_1h: '1.00' }
  const failing = (entry: CatalogEntry): CatalogEntry => ({
    ...entry,
    price: row,
    routes: entry.routes.map((route) => ({
      ...route,
      state: 'cooldown',
      health: 'ejected',
      factor: 0,
      wait_ms: 30_000,
      why: 'timed out',
    })),
  })

  browserTest('shows a changed price and a failing route without a reload', async () => {
    const shop = await startWeb()
    const list = await open(shop.url)
    const model = await open(`${shop.url}/catalog/sandbox/echo`)
    await list.page.waitForSelector('.live .status-ok')
    await model.page.waitForSelector('.live .status-ok')
    shop.entries = shop.entries.map((entry) => (entry.id === 'sandbox/echo' ? failing(entry) : entry))
    const line = list.page.locator('[data-row="sandbox/echo"]')
    await line.locator('td[data-label="Input"]:has-text("$7.25")').waitFor()
    expect(await line.locator('.status').textContent()).toBe('cooldown 30 s')
    await model.page.locator('.price-card .rows td:has-text("$7.25")').waitFor()
    // 1,200 × $7.25/M + 1,800 × $1.00/M + 500 × $2.00/M = $0.0087 + $0.0018 + $0.001, a thousand times.
    expect(await model.page.locator('.receipt output').textContent()).toBe('$11.50')
    expect(await model.page.locator('td[data-label="Reason"]').textContent()).toContain('tried although failing')
    expect([...list.reports, ...model.reports]).toEqual([])
    await list.close()
    await model.close()
    await shop.stop()
  })
})

describe('the page of a model', () => {
  browserTest('shows prices with their source, the routes and code that can be copied', async () => {
    const { page, reports, close } = await open(`${web.url}/catalog/sandbox/echo`)
    expect(await page.locator('h1').textContent()).toBe('Sandbox Echo')
    expect(await page.locator('.price-card-foot').textContent()).toContain('sandbox/echo#1')
    expect(await page.locator('td[data-label="Order"]').allTextContents()).toEqual(['1'])
    await page.getByLabel('Language or client').selectOption('Python')
    await page.getByLabel('API', { exact: true }).selectOption('Messages')
    // The language stays.
    await page.waitForSelector('[data-client="Messages, Python"]:visible')
    await page.getByLabel('Language or client').selectOption('JavaScript')
    await page.click('.snippet:visible .code-block .copy')
    await page.waitForSelector('.copy.copied')
    const copied = String(await page.evaluate('navigator.clipboard.readText()'))
    expect(copied).toContain(`baseURL: "${web.url}"`)
    expect(copied).toContain('model: "sandbox/echo"')
    expect(reports).toEqual([])
    await close()
  })

  browserTest('shows how attempts at each route ended in the last 24 hours', async () => {
    const hours = Array.from({ length: 24 }, (_, at) => (at === 22 ? [3, 1] : at === 23 ? [6, 0] : null) as never)
    const days = [{ provider: 'sandbox', upstream_model: 'echo', hours }]
    const shop = await startWeb({ days })
    const { page, reports, close } = await open(`${shop.url}/catalog/sandbox/echo`)
    const cell = page.locator('td[data-label="Last 24 hours"]')
    // 9 of 10.
    expect(await cell.textContent()).toBe('90.0 % ok, 10 attempts')
    // Each bar of a kind is one closed line of its path.
    const bars = async (kind: string) =>
      ((await cell.locator(`path.${kind}`).getAttribute('d')) ?? '').split('z').length - 1
    expect([await bars('none'), await bars('ok'), await bars('failed')]).toEqual([22, 2, 1])
    expect(reports).toEqual([])
    await close()
    await shop.stop()
  })

  browserTest('leads to the playground and to a key; models for embeddings cannot be tried', async () => {
    const { page, go, close } = await open(`${web.url}/catalog/sandbox/echo`)
    const links = async () => {
      const buttons = await page.locator('.model-head a.button').all()
      return await Promise.all(buttons.map((button) => button.getAttribute('href')))
    }
    expect(await links()).toEqual(['/console/playground?model=sandbox%2Fecho', '/console/keys'])
    await go(`${web.url}/catalog/sandbox/embed`)
    expect(await links()).toEqual(['/console/keys'])
    expect(await page.getByLabel('Language or client').locator('option').allTextContents()).toEqual([
      ...['curl', 'JavaScript', 'Python'],
    ])
    await close()
  })

  browserTest('calculates the cost while typing, and on the server without scripts', async () => {
    const address = `${web.url}/catalog/sandbox/echo`
    const live = await open(address)
    await live.page.fill('input[name=in]', '1000000')
    await live.page.fill('input[name=cached]', '0')
    await live.page.fill('input[name=out]', '1000000')
    await live.page.fill('input[name=calls]', '1')
    // $1.00 + $2.00.
    expect(await live.page.locator('.receipt output').textContent()).toBe('$3.00')
    // An invalid number is reported, and no cost is shown.
    for (const [name, text, label] of [
      ['in', '', 'Input tokens'],
      ['cached', '150', 'Cached, %'],
      ['out', '-1', 'Output tokens'],
    ] as const) {
      await live.page.fill(`input[name=${name}]`, text)
      await live.page.waitForSelector(`.field:has(label:text-is("${label}")) [role=alert]:has-text("a whole number")`)
      expect(await live.page.locator('.receipt').count()).toBe(0)
      await live.page.fill(`input[name=${name}]`, '0')
    }
    await live.page.waitForSelector('.receipt output')
    await live.close()
    const plain = await openPage(browser, address, { javaScriptEnabled: false })
    await plain.page.fill('input[name=calls]', '2')
    await plain.page.click('text=Calculate')
    // 3,000 × $1.00/M + 500 × $2.00/M = $0.004, twice: cached input costs as much as other input here.
    expect(await plain.page.locator('.receipt output').textContent()).toBe('$0.008')
    // Without scripts nothing can be chosen, so all of the code is visible.
    const snippets = await plain.page.locator('.snippet').count()
    expect(snippets).toBeGreaterThan(1)
    expect(await plain.page.locator('.snippet:visible').count()).toBe(snippets)
    await plain.close()
  })

  browserTest('that does not exist suggests one that does', async () => {
    const { page, close } = await open(`${web.url}/catalog/sandbox/ecco`)
    expect(await page.locator('main').textContent()).toContain('sandbox/echo')
    await close()
  })
})

browserTest('on a phone nothing covers the code, and values line up with their models', async () => {
  const { page, go, close } = await open(`${web.url}/catalog/sandbox/echo`)
  await page.setViewportSize({ width: 360, height: 740 })
  const block = page.locator('.snippet:visible .code-block')
  const code = await block.locator('pre').boundingBox()
  const copy = await block.locator('.copy').boundingBox()
  expect((copy?.y ?? 0) >= (code?.y ?? 0) + (code?.height ?? 0)).toBe(true)
  await go(`${web.url}/compare?m=sandbox/echo&m=sandbox/cache`)
  const isLevel = "getComputedStyle(document.querySelector('.comparison td')).alignItems === 'baseline'"
  expect(await page.evaluate(isLevel)).toBe(true)
  await close()
})

browserTest('the chosen theme applies to the next page', async () => {
  const { page, close } = await openPage(browser, `${web.url}/catalog/sandbox/echo`, { colorScheme: 'light' })
  const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
  const day = await background()
  await page.click('button.theme')
  expect(await background()).toBe(day)
  await page.click('button.theme')
  const night = await background()
  expect(night).not.toBe(day)
  await page.goto(`${web.url}/compare`)
  expect(await page.locator('html').getAttribute('data-theme')).toBe('dark')
  expect(await background()).toBe(night)
  await close()
})

describe('every page', () => {
  const entries = builtInEntries()
    .filter(({ id }) => /^(sandbox\/|anthropic\/claude-opus)/.test(id))
    .map((entry, index) => {
      if (index % 3 === 0) return { ...entry, price: null, callable: false }
      const health = index % 3 === 1 ? 'ejected' : 'probing'
      return { ...entry, routes: entry.routes.map((route) => ({ ...route, health }) as const) }
    })
  const paths = [
    '/',
    '/?creator=anthropic',
    '/catalog/sandbox/echo',
    '/compare?m=sandbox/echo&m=sandbox/cache',
    '/compare',
    '/console',
    '/catalog/no/model',
  ]
  browserTest(
    'fits 1280 and 360 pixels, and axe finds no serious issue in any state of models and routes',
    async () => {
      const shop = await startWeb({ entries })
      const { page, go, close } = await open(shop.url)
      for (const path of paths) {
        await page.setViewportSize({ width: 1280, height: 800 })
        await page.emulateMedia({ colorScheme: 'light' })
        await go(shop.url + path)
        await page.waitForSelector('main h1')
        const shift = await layoutShift(page)
        // On a phone all-pages.test.ts runs axe.
        const serious = await seriousFaultsInBoth(page)
        const wide = await sidewaysPixels(page)
        await page.setViewportSize({ width: 360, height: 800 })
        const found = { path, isStill: shift < 0.05 || shift, pixels: [await sidewaysPixels(page), wide], serious }
        expect(found).toEqual({ path, isStill: true, pixels: [0, 0], serious: [] })
      }
      await close()
      await shop.stop()
    },
  )
})
