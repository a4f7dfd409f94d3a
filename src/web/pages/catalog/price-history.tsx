/** @jsxImportSource preact */
// Every price that a model had here: since when, who said so, and the name under which charges keep it.

import type { DatedPrice, TextKind } from '../../catalog/entry.ts'
import { exactCount } from '../../catalog/figures.ts'

export function PriceHistory({ history }: { readonly history: readonly DatedPrice[] }) {
  if (history.length === 0) return <p class="empty">It had no price yet.</p>
  return (
    <>
      <table class="lanes history">
        <caption class="visually-hidden">Prices in US dollars per million tokens, the newest first</caption>
        <thead>
          <tr>
            <th scope="col">Since</th>
            <th scope="col" class="figure">
              Input
            </th>
            <th scope="col" class="figure">
              Cached
            </th>
            <th scope="col" class="figure">
              Output
            </th>
            <th scope="col">Set by</th>
            <th scope="col">Version</th>
          </tr>
        </thead>
        <tbody>
          {history.map((dated, place) => (
            <Line key={dated.version} dated={dated} isLast={place === history.length - 1} />
          ))}
        </tbody>
      </table>
      <p class="hint">A price holds until the next one; requests that run keep the price they began with.</p>
    </>
  )
}

function Line({ dated, isLast }: { readonly dated: DatedPrice; readonly isLast: boolean }) {
  const { price, source, since, version } = dated
  const tiers = price === 'free' ? [] : Object.keys(price.over ?? {})
  return (
    <tr>
      <th scope="row">
        <time dateTime={since}>{momentText(since)}</time>
        {isLast && <small class="muted"> first seen</small>}
      </th>
      <Amount label="Input" price={price} kind="input" />
      <Amount label="Cached" price={price} kind="cache_read" />
      <Amount label="Output" price={price} kind="output" />
      <td data-label="Set by">
        {source}
        {tiers.length > 0 && (
          <small> other prices over {tiers.map((each) => exactCount(Number(each))).join(', ')}</small>
        )}
        {price !== 'free' && price.audio_input !== undefined && <small> sound at ${price.audio_input}</small>}
      </td>
      <td data-label="Version">
        <code>{version}</code>
      </td>
    </tr>
  )
}

interface AmountProps {
  readonly label: string
  readonly price: DatedPrice['price']
  readonly kind: TextKind
}

function Amount({ label, price, kind }: AmountProps) {
  return (
    <td class="figure" data-label={label}>
      {price === 'free' ? 'free' : `$${price[kind]}`}
    </td>
  )
}

/** In UTC, so that the server's page and the browser's are the same. */
function momentText(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`
}
