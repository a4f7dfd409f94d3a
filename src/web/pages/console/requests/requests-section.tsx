/** @jsxImportSource preact */
// The list of requests, or one of them where the address names it.

import type { ConsoleData } from '../../../page-data.ts'
import { RequestPage } from './request-page.tsx'
import { RequestsPage } from './requests-page.tsx'

export function RequestsSection(data: ConsoleData) {
  return data.subject === '' ? <RequestsPage {...data} /> : <RequestPage {...data} />
}
