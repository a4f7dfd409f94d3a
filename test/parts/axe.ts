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

/** Those that depend on colors, which is all that differs in dark mode. */
const colourRules = ['color-contrast', 'link-in-text-block']

export interface AxeScope {
  /** Only these; absent = all. */
  readonly rules?: readonly string[]
  /** What is looked at, as a selector: a sheet over a page that was looked at before. */
  readonly within?: string
}

/** Further rows are made of the same parts as the first ones, and take most of the time. */
const furtherRows = 'tbody > tr:nth-child(n + 6), [role=option]:nth-child(n + 6), li:nth-child(n + 6)'

/** What is serious or critical; throws where there was no text to judge. */
export async function seriousFaults(page: Page, { rules, within = 'html' }: AxeScope = {}): Promise<readonly string[]> {
  // A document keeps it; another address has another document.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(await source.text())
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: rules }) }
  const context = { include: [within], exclude: [furtherRows] }
  const run = `axe.run(${JSON.stringify(context)}, ${JSON.stringify(options)})`
  const { violations, passes } = (await page.evaluate(run)) as Found
  const contrast = 'color-contrast'
  if (![...violations, ...passes].some(({ id }) => id === contrast)) throw new Error('axe found no text on the page')
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}

/** Everything in light mode, and in dark mode what the colors change. */
export async function seriousFaultsInBoth(page: Page, scope: AxeScope = {}): Promise<readonly string[]> {
  const faults: string[] = []
  for (const [colorScheme, only] of [['light', {}] as const, ['dark', { rules: colourRules }] as const]) {
    await page.emulateMedia({ colorScheme })
    faults.push(...(await seriousFaults(page, { ...scope, ...only })).map((fault) => `${colorScheme}: ${fault}`))
  }
  return faults
}
