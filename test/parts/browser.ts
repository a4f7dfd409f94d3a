// A real Chromium for the tests of the pages, which record what it reports: errors, blocked content, dialogs. Without an
// installed browser the tests are skipped by name.

import { test } from 'bun:test'
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

/** Headless first: it renders the same pages with two thirds of the work. */
const executablePath =
  '/usr/bin/chromium-headless-shell /usr/bin/chromium /usr/bin/chromium-browser /usr/bin/google-chrome'
    .split(' ')
    .find(existsSync)

/** Ends a wait that hangs. How long a browser takes on a busy machine says nothing about the pages. */
const lookMs = 180_000

const browserFlags = [
  // Its own sandbox needs privileges that containers do not have; what it opens here is ours.
  '--no-sandbox',
  '--disable-dev-shm-usage',
  // Fewer processes render the same pages with less work.
  '--process-per-site',
  '--renderer-process-limit=1',
  '--disable-gpu',
  '--in-process-gpu',
]

/** For tests that need a browser. */
export const browserTest = test.skipIf(executablePath === undefined)

export async function openBrowser(): Promise<Browser | undefined> {
  if (executablePath === undefined) return undefined
  return await chromium.launch({ executablePath, args: [...browserFlags] })
}

export interface WatchedPage {
  readonly page: Page
  /** Opens another address in the same page, which is quicker than a new page. */
  go(address: string): Promise<void>
  /** Errors, blocked content and dialogs, as the browser reported them. */
  readonly reports: readonly string[]
  close(): Promise<void>
}

export async function openPage(
  browser: Browser | undefined,
  address: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await openContext(browser, options)
  const { page, go, reports } = await watchPage(context, options.javaScriptEnabled !== false)
  await go(address)
  return { page, go, reports, close: () => context.close() }
}

/**
 * The state of one user: cookies and stored data, for any number of pages. A context for many pages of a site gets the
 * address of a small one: while that is open, each further page takes a fifth less, because Chromium keeps the process.
 */
export async function openContext(
  browser: Browser | undefined,
  options: BrowserContextOptions = {},
  keptOpen?: string,
): Promise<BrowserContext> {
  if (!browser) throw new Error('a test without a browser was not skipped')
  const context = await browser.newContext(options)
  context.setDefaultTimeout(lookMs)
  if (keptOpen !== undefined) await (await context.newPage()).goto(keptOpen)
  return context
}

/** A new, empty page in a context. */
export async function watchPage(context: BrowserContext, runsScripts = true): Promise<WatchedPage> {
  const page = await context.newPage()
  const reports: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') reports.push(message.text())
  })
  page.on('pageerror', (error) => reports.push(error.message))
  page.on('dialog', (dialog) => {
    reports.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  const go = async (next: string): Promise<void> => {
    await page.goto(next)
    if (!runsScripts) return
    await page.waitForSelector('html[data-alive]').catch((thrown: Error) => {
      throw new Error(`${thrown.message}\nThe browser reported: ${reports.join('\n') || 'nothing'}`)
    })
  }
  return { page, go, reports, close: () => page.close() }
}

/** How many pixels the page is wider than its window. */
export function sidewaysPixels(page: Page): Promise<unknown> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}

/** How many inputs are wider than their field, so that they cover the next one. */
export function widerThanFields(page: Page): Promise<unknown> {
  return page.evaluate(`[...document.querySelectorAll('.field')].flatMap((field) => {
    const right = Math.ceil(field.getBoundingClientRect().right)
    return [...field.querySelectorAll('input, select, textarea')].filter((each) => each.getBoundingClientRect().right > right)
  }).length`)
}

/** Chromium's sum of the layout shifts since the page was opened. */
export async function layoutShift(page: Page): Promise<number> {
  const sum = await page.evaluate(`(() => {
    const observer = new PerformanceObserver(() => {})
    observer.observe({ type: 'layout-shift', buffered: true })
    return observer.takeRecords().reduce((sum, { value }) => sum + value, 0)
  })()`)
  return Number(sum)
}
