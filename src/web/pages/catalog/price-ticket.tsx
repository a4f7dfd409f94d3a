/** @jsxImportSource preact */
// The price as a ticket: every kind of token, its price, and where the price comes from. What is printed here is what
// a charge is computed with.

import type { ComponentChildren } from 'preact'
import type { CatalogEntry, DatedPrice, ShownPrice, ShownPriceRow, TextKind } from '../../catalog/entry.ts'
import { exactCount } from '../../catalog/figures.ts'
import { Money } from './money.tsx'

const kinds: readonly (readonly [keyof ShownPriceRow, string])[] = [
  ['input', 'Input'],
  ['cache_read', 'Input, read from a cache'],
  ['cache_write', 'Input, written to a cache'],
  ['cache_write_1h', 'Input, written for an hour'],
  ['output', 'Output, reasoning included'],
  ['audio_input', 'Sound in the input'],
  ['audio_cache_read', 'Sound read from a cache'],
  ['audio_output', 'Sound in the output'],
]

export interface PriceTicketProps {
  readonly entry: CatalogEntry
  /** Who set the price, and when; undefined = not known. */
  readonly inForce: DatedPrice | undefined
}

export function PriceTicket({ entry, inForce }: PriceTicketProps) {
  const { price } = entry
  const since = inForce?.since ?? entry.price_since
  return (
    <div class="ticket">
      <p class="ticket-head">
        <span>Tariff</span>
        <span>USD per 1M tokens</span>
      </p>
      {price === null && (
        <p class="ticket-word">No price. The model cannot be called until one is set in tollgate.yaml.</p>
      )}
      {price === 'free' && <p class="ticket-word">Free, on purpose: every kind of token costs nothing.</p>}
      {price !== null && price !== 'free' && <PriceRows price={price} />}
      <dl class="ticket-foot">
        <Line label="Price set">{inForce?.source ?? entry.price_source ?? entry.source}</Line>
        {entry.price_version && <Line label="Version">{entry.price_version}</Line>}
        {since && <Line label="Valid since">{since.slice(0, 10)}</Line>}
        {entry.price_origin && (
          <Line label="Read from">
            {entry.price_origin.source}, {entry.price_origin.checked}
          </Line>
        )}
      </dl>
    </div>
  )
}

function PriceRows({ price }: { readonly price: ShownPrice }) {
  const tiers = Object.entries(price.over ?? {}).sort(([a], [b]) => Number(a) - Number(b))
  const shown = kinds.filter(([kind]) => [price, ...tiers.map(([, row]) => row)].some((row) => row[kind] !== undefined))
  return (
    <table class="rows">
      <caption class="visually-hidden">Prices by kind of token</caption>
      <thead class={tiers.length === 0 ? 'visually-hidden' : undefined}>
        <tr>
          <th scope="col">Kind</th>
          <th scope="col" class="price">
            Price
          </th>
          {tiers.map(([tokens]) => (
            <th key={tokens} scope="col" class="price">
              over {exactCount(Number(tokens))} in
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {shown.map(([kind, label]) => (
          <tr key={kind}>
            <th scope="row">{label}</th>
            <td class="price">
              <Money amount={amountOf(price, kind)} />
            </td>
            {tiers.map(([tokens, row]) => (
              <td key={tokens} class="price">
                <Money amount={amountOf(row, kind)} />
              </td>
            ))}
          </tr>
        ))}
        {price.web_search !== undefined && (
          <tr>
            <th scope="row">Web searches, per thousand</th>
            <td class="price">
              <Money amount={price.web_search} />
            </td>
            {tiers.map(([tokens]) => (
              <td key={tokens} class="price">
                <Money amount={price.web_search ?? ''} />
              </td>
            ))}
          </tr>
        )}
        {price.us_only !== undefined && (
          <tr>
            <th scope="row">Kept in the US, all tokens</th>
            <td class="price" colSpan={1 + tiers.length}>
              × {price.us_only}
            </td>
          </tr>
        )}
      </tbody>
    </table>
  )
}

/** What holds for sound where the row has no price of its own for it. */
const textOf: Partial<Record<keyof ShownPriceRow, TextKind>> = {
  audio_input: 'input',
  audio_cache_read: 'cache_read',
  audio_output: 'output',
}

function amountOf(row: ShownPriceRow, kind: keyof ShownPriceRow): string {
  return row[kind] ?? row[textOf[kind] ?? 'input']
}

function Line({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  )
}
