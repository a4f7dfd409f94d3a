// What holds on every page: nothing moves while it loads, axe finds no serious issue in light and dark mode, it fits the
// window, it has a bounded number of elements, and no field is checked by a bubble of the browser.

import { afterAll, beforeAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { isoTime, systemClock } from '../../src/kernel/clock.ts'
import { batchesOn, chatLine, createOf } from '../batches/parts.ts'
import { removeFurtherRows, seriousFaults } from '../parts/axe.ts'
import {
  browserTest,
  layoutShift,
  openContext,
  sidewaysPixels,
  type WatchedPage,
  watchPage,
  widerThanFields,
} from '../parts/browser.ts'
import { allPages, type ListedThings } from './all-pages.ts'
import { type ConsoleHarness, type Made, startConsole } from './console-harness.ts'

let harness: ConsoleHarness
let things: ListedThings
/** One page for each user, because opening and signing in takes as long as a check. */
let operator: WatchedPage
/** Of someone with an account. */
let person: WatchedPage
let visitor: WatchedPage

beforeAll(async () => {
  harness = await startConsole({ env: batchesOn })
  const { manage, browser, firstWorkspaceId: workspaceId } = harness
  if (!browser) return
  const { id: newWorkspaceId } = await manage('POST /api/workspaces', { name: 'new' })
  const project = await manage(`POST /api/workspaces/${workspaceId}/projects`, { name: 'web' })
  const key = await manage(`POST /api/projects/${project.id}/keys`, { name: 'ci' })
  await manage('PUT /api/price-lists/retail', { markup_percent: '15' })
  await manage('PUT /api/managed-settings', { rules: [{ settings: { cleanupPeriodDays: 7 } }] })
  await manage(`PUT /api/keys/${key.id}/limits`, { requests_per_minute: 120, spend_per_day: '1.50' })
  const topUp = await manage(`POST /api/workspaces/${workspaceId}/topups`, { amount: '25.00', reference: 'invoice 7' })
  for (let calls = 0; calls < 4; calls++) await harness.call(key.secret, 'a client', 'sandbox/flaky')
  await harness.call(key.secret, 'a client', 'sandbox/down')
  const requestId = await harness.ask('sandbox/flaky', {}, 'a client', key.secret)
  const lines = ['sandbox/echo', 'sandbox/echo'].map((model, at) => chatLine(`line-${at}`, 'hi', { model }))
  const { id: batchId } = (await createOf({ url: harness.gateway.url, key: key.secret }, lines)).body
  const month = isoTime(systemClock.now()).slice(0, 7)
  const made = { projectId: project.id, keyId: key.id, requestId, batchId, topUpId: topUp.id }
  things = { workspaceId, newWorkspaceId, ...made, month }
  operator = await harness.signIn()
  visitor = await watchPage(await openContext(browser, { reducedMotion: 'reduce' }))
  const invitation = { email: 'ada@example.com', role: 'admin', workspace_id: workspaceId }
  const { url } = (await manage('POST /api/invitations', invitation)) as Made & { readonly url: string }
  person = await harness.accept(url, 'Ada', 'correct horse battery')
})
afterAll(() => harness.stop())

/** Of the frame, its menu and icons, and what a page has besides tables. */
const frameElementsMax = 600
/** A value with its note, link, status or bar. */
const elementsPerCell = 5
/** Of a table: the longest page of a list, and its head. */
const rowsMax = 51
/** The pages of the documentation are as long as their text; the API reference is the longest, with all operations. */
const docsElementsMax = 4_500
/** They are the same on all pages of a user, and axe checks them on the first one. */
const frames = ['.masthead', '.footer', '.topbar', '.console-menu']
const framesChecked = new Set<object>()
const names = allPages({
  ...{ workspaceId: '', projectId: '', keyId: '', requestId: '', batchId: '', topUpId: '', month: '' },
  newWorkspaceId: '',
}).map(({ name }) => name)

const sound = { isStill: true, isBounded: true, pixels: 0, tooWide: 0, bubbles: 0 } as const

async function shapeOf(page: Page, isDocs: boolean) {
  const shift = await layoutShift(page)
  const elements = await page.locator('*').count()
  const cells = await page.locator('th, td').count()
  const rows = await page
    .locator('table')
    .evaluateAll((tables) => tables.reduce((most, table) => Math.max(most, table.querySelectorAll('tr').length), 0))
  const elementsMax = isDocs ? docsElementsMax : frameElementsMax + elementsPerCell * cells
  const isBounded = (elements < elementsMax && (isDocs || rows <= rowsMax)) || { elements, elementsMax, rows }
  const bubbles = await page
    .locator('form:not([novalidate]) :is([required], [pattern], [type=email], [type=url], [type=number])')
    .count()
  const [pixels, tooWide] = [await sidewaysPixels(page), await widerThanFields(page)]
  return { isStill: shift < 0.05 || shift, isBounded, pixels, tooWide, bubbles }
}

browserTest.each(names)('%s: nothing moves while it loads, it fits, and axe finds nothing', async (name) => {
  const listed = allPages(things).find((each) => each.name === name)
  if (!listed) throw new Error(`there is no page ${name}`)
  const { path, ready, isPublic, needsAccount } = listed
  const { page, go } = isPublic ? visitor : needsAccount ? person : operator
  const checkedBefore = framesChecked.has(page) ? frames : []
  framesChecked.add(page)
  const load = async (width: number) => {
    await page.setViewportSize({ width, height: 844 })
    await go(harness.gateway.url + path)
    await page.waitForSelector(ready)
    await page.waitForSelector('.loading', { state: 'detached' })
    return await shapeOf(page, name.startsWith('docs'))
  }
  const phone = await load(390)
  const wide = await load(1280)
  // Axe checks the wide page in dark mode and the phone in light mode, in one document, because a new one has to compile axe.
  await removeFurtherRows(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  const dark = await seriousFaults(page, { without: checkedBefore })
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 390, height: 844 })
  const light = await seriousFaults(page, { without: checkedBefore })
  expect({ phone, wide, dark, light }).toEqual({ phone: sound, wide: sound, dark: [], light: [] })
})
