/** @jsxImportSource preact */
// Up to four models side by side: the same lines for each, so that only the numbers differ.

import type { ComponentChildren } from 'preact'
import { priceUsage } from '../../../catalog/price.ts'
import { type CatalogEntry, isRehearsal, modelPath } from '../../catalog/entry.ts'
import { exactCount, usd } from '../../catalog/figures.ts'
import { emptyQuery, renderQuery } from '../../catalog/query.ts'
import { priceOf, type Sample, usageOf } from '../../catalog/shown-price.ts'
import { busiest, modelStanding } from '../../catalog/standing.ts'
import type { CompareData } from '../../page-data.ts'
import { useLiveEntries } from '../browser/live-entries.ts'
import { Lamp } from '../shell/lamp.tsx'
import { Badges, Tags } from './badges.tsx'
import { LiveLamp } from './live-lamp.tsx'
import { Measured } from './measured.tsx'
import { ModelMoney, Money } from './money.tsx'

interface Line {
  readonly label: string
  show(entry: CatalogEntry, sample: Sample): ComponentChildren
}

const lines: readonly Line[] = [
  { label: 'State', show: (entry) => <Lamp {...modelStanding(entry)} /> },
  { label: 'Input', show: (entry) => <ModelMoney entry={entry} kind="input" /> },
  { label: 'Cached input', show: (entry) => <ModelMoney entry={entry} kind="cache_read" /> },
  { label: 'Cache write', show: (entry) => <ModelMoney entry={entry} kind="cache_write" /> },
  { label: 'Output', show: (entry) => <ModelMoney entry={entry} kind="output" /> },
  { label: 'Web searches, per thousand', show: searchPrice },
  { label: 'Kept in the US, all tokens', show: usOnlyFactor },
  { label: 'One call like the example', show: exampleCost },
  { label: 'Context', show: ({ context_tokens }) => count(context_tokens) },
  { label: 'Max output', show: ({ max_output_tokens }) => count(max_output_tokens) },
  { label: 'Can', show: ({ tags }) => <Tags tags={tags} /> },
  { label: 'Routes', show: ({ routes }) => routes.map(({ provider }) => provider).join(', ') },
  { label: 'First token', show: (entry) => <MeasuredOf entry={entry} kind="first_event_ms" unit="time" /> },
  { label: 'Tokens/s', show: (entry) => <MeasuredOf entry={entry} kind="tokens_per_second" unit="tokens" /> },
  { label: 'Released', show: ({ released }) => released ?? 'not known' },
]

export function ComparePage({ entries: initial, state, sample }: CompareData) {
  const keep = (all: readonly CatalogEntry[]) => initial.flatMap(({ id }) => all.find((entry) => entry.id === id) ?? [])
  const { entries, live } = useLiveEntries(initial, state, keep)
  if (entries.length === 0) {
    return (
      <section class="notice">
        <h1>Compare</h1>
        <p>
          Nothing is chosen. Tick up to four models in the <a href="/">catalog</a>, or press x on them.
        </p>
      </section>
    )
  }
  return (
    <>
      <div class="board-head">
        <h1>Compare</h1>
        <p class="lede">
          The example: {exactCount(sample.inputTokens)} tokens in, {sample.cachedPercent} % of them cached,{' '}
          {exactCount(sample.outputTokens)} out. <a href={choosingPath(entries)}>Choose others</a>
        </p>
        <LiveLamp state={live} />
      </div>
      <table class="comparison">
        <caption class="visually-hidden">Models side by side</caption>
        <thead>
          <tr>
            <td />
            {entries.map((entry) => (
              <th key={entry.id} scope="col">
                <a href={modelPath(entry.id)}>{entry.name}</a>
                <code>{entry.id}</code>
                <Badges entry={entry} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map(({ label, show }) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {entries.map((entry) => (
                <td key={entry.id} data-label={entry.id}>
                  {show(entry, sample)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}

interface MeasuredOfProps {
  readonly entry: CatalogEntry
  readonly kind: 'first_event_ms' | 'tokens_per_second'
  readonly unit: 'time' | 'tokens'
}

function MeasuredOf({ entry, kind, unit }: MeasuredOfProps) {
  return <Measured figures={busiest(entry.routes, kind)} unit={unit} isRehearsed={isRehearsal(entry)} />
}

/** The list with these ticked. */
function choosingPath(entries: readonly CatalogEntry[]): string {
  return `/?${renderQuery({ ...emptyQuery, compared: entries.map(({ id }) => id) })}`
}

/** A model that cannot search and one whose searches cost nothing are told alike: nothing is charged for any. */
function searchPrice({ price }: CatalogEntry): ComponentChildren {
  if (price === null) return <Money amount="–" />
  return price === 'free' || price.web_search === undefined ? 'not charged' : <Money amount={price.web_search} />
}

/** A model that cannot be kept there and one for which it costs no more are told alike. */
function usOnlyFactor({ price }: CatalogEntry): string {
  if (price === null) return '–'
  return price === 'free' || price.us_only === undefined ? 'no other price' : `× ${price.us_only}`
}

function exampleCost(entry: CatalogEntry, sample: Sample): string {
  const price = priceOf(entry)
  return price ? usd(priceUsage(price, usageOf(sample))) : 'no price'
}

function count(tokens: number | null): string {
  return tokens === null ? 'not known' : exactCount(tokens)
}
