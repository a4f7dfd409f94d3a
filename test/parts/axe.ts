// axe-core over what a page shows just now.

import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'

interface Found {
  readonly violations: readonly {
    readonly id: string
    readonly impact: string
    readonly nodes: readonly { readonly html: string }[]
  }[]
  readonly passes: readonly { readonly id: string }[]
}

const source = Bun.file(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')))

/** What is serious or critical; throws where there was no text to judge. */
export async function seriousFaults(page: Page): Promise<readonly string[]> {
  // A document keeps it; another address has another document.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(await source.text())
  const { violations, passes } = (await page.evaluate("axe.run({ resultTypes: ['violations'] })")) as Found
  const contrast = 'color-contrast'
  if (![...violations, ...passes].some(({ id }) => id === contrast)) throw new Error('axe found no text on the page')
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}

/** The same by day and by night. */
export async function seriousFaultsInBoth(page: Page): Promise<readonly string[]> {
  const faults: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    faults.push(...(await seriousFaults(page)).map((fault) => `${colorScheme}: ${fault}`))
  }
  return faults
}
