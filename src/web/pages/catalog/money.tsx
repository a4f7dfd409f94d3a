/** @jsxImportSource preact */
// A price in a column: the points stand under each other, however many digits a price needs to be exact.

import type { CatalogEntry, TextKind } from '../../catalog/entry.ts'
import { useChanged } from '../browser/use-changed.ts'

/** Decimal USD per million tokens, or a word such as `free`. */
export function Money({ amount }: { readonly amount: string }) {
  const before = useChanged(amount)
  const point = amount.indexOf('.')
  const changed = before === undefined ? '' : ' changed'
  if (point < 0) return <span class={`money word${changed}`}>{amount}</span>
  return (
    <span class={`money${changed}`} title={before === undefined ? undefined : `was ${before}`}>
      <span class="whole">${amount.slice(0, point)}</span>
      <span class="fraction">{amount.slice(point)}</span>
    </span>
  )
}

export function ModelMoney({ entry, kind }: { readonly entry: CatalogEntry; readonly kind: TextKind }) {
  const { price } = entry
  return <Money amount={price === null ? '–' : price === 'free' ? 'free' : price[kind]} />
}
