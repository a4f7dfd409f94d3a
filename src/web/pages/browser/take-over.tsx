/** @jsxImportSource preact */
// Takes over the page that the server has sent: the same components with the same data, now alive.

import { hydrate } from 'preact'
import type { Frame, Page } from '../../page-data.ts'
import { type PageComponents, PageView } from '../shell/page-view.tsx'

export function takeOver(components: PageComponents): void {
  const data = document.getElementById('page-data')?.textContent
  const root = document.getElementById('root')
  if (!data || !root) return
  const { page, frame } = JSON.parse(data) as { page: Page; frame: Frame }
  hydrate(<PageView page={page} frame={frame} components={components} />, root)
  // For tests, and for whoever wants to know whether the page is alive.
  document.documentElement.dataset.alive = 'yes'
}
