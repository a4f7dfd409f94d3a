/** @jsxImportSource preact */
// The price of a model, exactly as it is billed, and a calculator that uses the billing code.

import type { ComponentChildren, TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { chargeLines, type Price, priceUsage, type ShownPrice, type ShownRow } from '../../../catalog/price.ts'
import { formatPico, formatPrice, type Nano } from '../../../kernel/money.ts'
import { buckets, factorNames, factors, tokenBuckets, unitBuckets } from '../../../kernel/usage.ts'
import type { CatalogEntry, DatedPrice } from '../../catalog/entry.ts'
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
      <dl class="price-card-foot">
        <FootLine label="Set by">{current?.source ?? entry.price_source ?? entry.source}</FootLine>
        {entry.price_version && <FootLine label="Version">{entry.price_version}</FootLine>}
        {current && <FootLine label="Since">{current.effective_from.slice(0, 10)}</FootLine>}
      </dl>
    </div>
  )
}

function FootLine({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function PriceRows({ price }: { readonly price: Exclude<ShownPrice, 'free'> }) {
  const tiers = Object.entries(price.over ?? {}).sort(([a], [b]) => Number(a) - Number(b))
  const rows = [price, ...tiers.map(([, row]) => row)]
  const shown = tokenBuckets.filter(({ bucket }) => rows.some((row) => row[bucket] !== undefined))
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
        {shown.map((info) => (
          <PriceRow key={info.bucket} label={info.label} amounts={rows.map((row) => amountOf(row, info))} />
        ))}
        {unitBuckets
          .filter(({ bucket }) => price[bucket] !== undefined)
          .map(({ bucket, label }) => (
            <PriceRow key={bucket} label={`${label}, per 1,000`} amounts={rows.map(() => price[bucket] ?? '')} />
          ))}
        {factorNames
          .filter((name) => price[name] !== undefined)
          .map((name) => (
            <tr key={name}>
              <th scope="row">{factors[name].label}</th>
              <td class="price" colSpan={1 + tiers.length}>
                × {price[name]}
              </td>
            </tr>
          ))}
      </tbody>
    </table>
  )
}

function PriceRow({ label, amounts }: { readonly label: string; readonly amounts: readonly string[] }) {
  return (
    <tr>
      <th scope="row">{label}</th>
      {amounts.map((amount, at) => (
        <td key={at} class="price">
          <Money amount={amount} />
        </td>
      ))}
    </tr>
  )
}

/** A part without its own price in a row costs as much as the whole. */
function amountOf(row: ShownRow, { bucket, partOf }: (typeof tokenBuckets)[number]): string {
  return row[bucket] ?? row[partOf ?? 'input']
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
              {buckets[kind].label}
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
      <p class="hint">Each request is rounded up once, to a billionth of a dollar.</p>
    </div>
  )
}
