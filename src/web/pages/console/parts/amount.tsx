/** @jsxImportSource preact */
// An amount of money on a page: whole, in one line.

import { usdText } from './usd-text.ts'

/** null = nothing is known of it. */
export function Amount({ usd }: { readonly usd: string | null }) {
  if (usd === null) return <span class="muted">–</span>
  return <span class="amount">{usdText(usd)}</span>
}
