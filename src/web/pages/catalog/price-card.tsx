/** @jsxImportSource preact */
// The price of a model, exactly as it is billed, and a calculator that uses the billing code.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { chargeLines } from '../../../catalog/charge-lines.ts'
import { type Price, priceUsage } from '../../../catalog/price.ts'
import { formatPico, formatPrice, type Nano } from '../../../kernel/money.ts'
import { type CatalogEntry, type DatedPrice, priceKindNames, type ShownPrice } from '../../catalog/entry.ts'
import { countOf, exactCount, usd } from '../../catalog/format.ts'
import {
  parseSample,
  priceOf,
  type Sample,
  type SampleField,
  sampleFields,
  usageOf,
  wrongSampleFields,
} from '../../catalog/sample-cost.ts'
import { Facts } from '../components.tsx'
import { DataTable } from '../table.tsx'
import { Money } from './model-parts.tsx'

export interface PriceCardProps {
  readonly entry: CatalogEntry
  /** Who set the price, and when; undefined = unknown. */
  readonly current: DatedPrice | undefined
}

export function PriceCard({ entry, current }: PriceCardProps) {
  const { price } = entry
  return (
    <div class="price-card">
      <p class="price-card-head">
        <span>Price</span>
        <span>USD per 1M tokens</span>
      </p>
      {price === null && (
        <p class="price-card-note">No price. The model cannot be called until one is set in tollgate.yaml.</p>
      )}
      {price === 'free' && <p class="price-card-note">Free: no kind of token is charged.</p>}
      {price !== null && price !== 'free' && <PriceRows price={price} />}
      <Facts
        class="price-card-foot"
        facts={[
          ['Set by', current?.source ?? entry.price_source ?? entry.source],
          ...(entry.price_version === null ? [] : [['Version', entry.price_version] as const]),
          ...(current ? [['Since', current.effective_from.slice(0, 10)] as const] : []),
        ]}
      />
    </div>
  )
}

type Kind = keyof typeof priceKindNames

/** What applies where a row has no price of its own. */
const fallbacks: Partial<Record<Kind, Kind>> = {
  audio_input: 'input',
  audio_cache_read: 'cache_read',
  audio_output: 'output',
}

type AnyRow = Partial<Readonly<Record<Kind, string | undefined>>>

/** Prices by kind, with a column for every tier of long requests. */
function PriceRows({ price }: { readonly price: ShownPrice }) {
  const tiers = Object.entries(price.over ?? {}).sort(([a], [b]) => Number(a) - Number(b))
  // Searches cost the same in every tier.
  const rows: AnyRow[] = [price, ...tiers.map(([, row]) => ({ ...row, web_search: price.web_search }))]
  const kinds = Object.keys(priceKindNames) as Kind[]
  const shown = [...kinds.filter((kind) => rows.some((row) => row[kind] !== undefined)), 'us_only'] as const
  const labels = ['Price', ...tiers.map(([tokens]) => `over ${exactCount(Number(tokens))} in`)]
  const amountOf = (row: AnyRow, kind: Kind) => row[kind] ?? row[fallbacks[kind] ?? kind] ?? ''
  return (
    <DataTable
      class="rows"
      caption="Prices by kind of token"
      columns={[
        { label: 'Kind', show: (kind: (typeof shown)[number]) => kindLabel(kind) },
        ...rows.map((row, at) => ({
          label: labels[at] ?? '',
          isNumber: true,
          show: (kind: (typeof shown)[number]) =>
            kind === 'us_only' ? `× ${price.us_only}` : <Money amount={amountOf(row, kind)} />,
        })),
      ]}
      rows={price.us_only === undefined ? shown.slice(0, -1) : shown}
      keyOf={(kind) => kind}
    />
  )
}

function kindLabel(kind: Kind | 'us_only'): string {
  if (kind === 'us_only') return 'US-only processing, all tokens'
  return kind === 'web_search' ? `${priceKindNames[kind]}, per 1,000` : priceKindNames[kind]
}

const fieldLabels: Readonly<Record<SampleField, string>> = {
  in: 'Input tokens',
  cached: 'Cached, %',
  out: 'Output tokens',
  calls: 'Requests',
}

export interface CalculatorProps {
  readonly entry: CatalogEntry
  readonly sample: Sample
}

/** Without scripts the form asks the server, which computes the same. */
export function Calculator({ entry, sample: initial }: CalculatorProps) {
  const [sample, setSample] = useState(initial)
  const [wrong, setWrong] = useState<readonly SampleField[]>([])
  const price = priceOf(entry)
  const read = (form: HTMLFormElement) => {
    const params = new URLSearchParams()
    for (const { name } of sampleFields) params.set(name, String(new FormData(form).get(name) ?? ''))
    setSample(parseSample(params))
    setWrong(wrongSampleFields(params))
  }
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    read(event.currentTarget)
  }
  const { inputTokens, cachedPercent, outputTokens, calls } = initial
  const values: Readonly<Record<SampleField, number>> = {
    in: inputTokens,
    cached: cachedPercent,
    out: outputTokens,
    calls,
  }
  return (
    <form class="calculator" method="get" onSubmit={submit} onInput={({ currentTarget }) => read(currentTarget)}>
      <fieldset>
        <legend>Cost calculator</legend>
        <div class="calculator-fields">
          {sampleFields.map(({ name, max }) => (
            <label key={name}>
              <span>{fieldLabels[name]}</span>
              <input
                type="number"
                name={name}
                min={0}
                max={max}
                required
                inputMode="numeric"
                aria-invalid={wrong.includes(name)}
                defaultValue={String(values[name])}
              />
            </label>
          ))}
        </div>
      </fieldset>
      <button type="submit" class="button quiet without-script">
        Calculate
      </button>
      <p class="problem" role="alert">
        {wrong.map(rangeText).join(' ')}
      </p>
      {!price && <p class="empty">The cost cannot be calculated without a price.</p>}
      {price && wrong.length === 0 && <Receipt price={price} sample={sample} />}
    </form>
  )
}

function rangeText(name: SampleField): string {
  const max = sampleFields.find((field) => field.name === name)?.max ?? 0
  return `“${fieldLabels[name]}” must be a whole number from 0 to ${exactCount(max)}.`
}

function Receipt({ price, sample }: { readonly price: Price; readonly sample: Sample }) {
  const usage = usageOf(sample)
  const charge = priceUsage(price, usage)
  return (
    <div class="receipt">
      <dl>
        {chargeLines(price, usage).map(({ kind, tokens, price: each, pico }) => (
          <div key={kind}>
            <dt>
              {priceKindNames[kind]}
              <small>
                {exactCount(tokens)} × ${formatPrice(each)} / M
              </small>
            </dt>
            <dd>${formatPico(pico)}</dd>
          </div>
        ))}
        <div class="sum">
          <dt>per request</dt>
          <dd>{usd(charge)}</dd>
        </div>
        <div class="sum total">
          <dt>{countOf(sample.calls, 'request')}</dt>
          <dd>
            <output>{usd((charge * BigInt(sample.calls)) as Nano)}</output>
          </dd>
        </div>
      </dl>
      <p class="hint">Reasoning is billed as output. Each request is rounded up once, to a billionth of a dollar.</p>
    </div>
  )
}
