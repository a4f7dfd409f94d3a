// axe-core over what a page shows now.

import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'

const source = Bun.file(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')))

/** The rules that depend on colours, which is all that differs in dark mode. */
const colourRules = ['color-contrast', 'link-in-text-block']

export interface AxeScope {
  /** Only these; absent = all that find serious or critical issues. */
  readonly rules?: readonly string[]
  /** Selector of the checked part: a sheet over a page that was checked before. */
  readonly within?: string
  /** Selectors of parts that were checked before. */
  readonly without?: readonly string[]
}

/** Further rows are made of the same parts as the first ones, and take most of the time. */
const furtherRows =
  'tbody > tr:nth-child(n + 6), [role=option]:nth-child(n + 6), li:nth-child(n + 6), .prose > :nth-child(n + 100)'

/** The serious and critical issues; throws where there was no text to check. */
export async function seriousFaults(
  page: Page,
  { rules, within = 'html', without = [] }: AxeScope = {},
): Promise<readonly string[]> {
  // A document keeps it; another address has another document.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(await source.text())
  const context = JSON.stringify({ include: [within], exclude: [furtherRows, ...without] })
  const found = await page.evaluate(
    `(async () => {
      const isSerious = ({ impact }) => impact !== 'minor' && impact !== 'moderate'
      const lesser = axe._audit.rules.filter((rule) => !isSerious(rule)).map(({ id }) => [id, { enabled: false }])
      const scope = ${rules ? `{ runOnly: ${JSON.stringify(rules)} }` : '{ rules: Object.fromEntries(lesser) }'}
      const { violations, passes } = await axe.run(${context}, { resultTypes: ['violations'], ...scope })
      if (![...violations, ...passes].some(({ id }) => id === 'color-contrast')) return undefined
      return violations.filter(isSerious).map(({ id, nodes }) => id + ': ' + nodes[0].html)
    })()`,
  )
  if (found === undefined) throw new Error('axe found no text on the page')
  return found as readonly string[]
}

/**
 * Removes what axe does not check anyway: leaving rows out saves their rules, and removing them also the reading of their
 * styles and places, half of the time on a long page. Only for a page that is left afterwards, because it may draw them again.
 */
export async function removeFurtherRows(page: Page): Promise<void> {
  await page.locator(furtherRows).evaluateAll((rows) => {
    for (const row of rows) row.remove()
  })
}

/** All rules in light mode, and in dark mode those that depend on colours. */
export async function seriousFaultsInBoth(page: Page, scope: AxeScope = {}): Promise<readonly string[]> {
  const faults: string[] = []
  for (const [colorScheme, only] of [['light', {}] as const, ['dark', { rules: colourRules }] as const]) {
    await page.emulateMedia({ colorScheme })
    faults.push(...(await seriousFaults(page, { ...scope, ...only })).map((fault) => `${colorScheme}: ${fault}`))
  }
  return faults
}
