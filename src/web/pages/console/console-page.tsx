/** @jsxImportSource preact */
// One page of the console in its frame. Which page it is stands in the address; what it shows it asks for itself.

import type { ConsoleData } from '../../page-data.ts'
import { sectionPages } from './section-pages.tsx'
import { ConsoleShell } from './shell.tsx'

export function ConsolePage(data: ConsoleData) {
  const Content = sectionPages[data.section]
  return (
    <ConsoleShell {...data}>
      {Content ? <Content {...data} /> : <p class="empty">This page is not part of this build.</p>}
    </ConsoleShell>
  )
}
