/** @jsxImportSource preact */
// Makes the server-rendered page interactive: the same components with the same data.

import { hydrate } from 'preact'
import type { Frame, Page } from '../../page-data.ts'
import { setFirstAnswers } from '../hooks.ts'
import { type PageComponents, PageView } from '../shell.tsx'

export function hydratePage(components: PageComponents): void {
  const data = document.getElementById('page-data')?.textContent
  const root = document.getElementById('root')
  if (!data || !root) return
  const { page, frame } = JSON.parse(data) as { page: Page; frame: Frame }
  if (page.kind === 'console') setFirstAnswers(page.data.answers)
  hydrate(<PageView page={page} frame={frame} components={components} />, root)
  // Later calls go to the gateway.
  setFirstAnswers({})
  // Tests wait for this.
  document.documentElement.dataset.alive = 'yes'
}
