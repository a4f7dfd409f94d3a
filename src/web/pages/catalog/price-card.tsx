/** @jsxImportSource preact */
// The price of a model, exactly as it is billed, and a calculator that uses the billing code.

import type { ComponentChildren, TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { type ChargeLine, chargeLines } from '../../../catalog/charge-lines.ts'
import { type Price, priceUsage } from '../../../catalog/price.ts'
import { formatPico, formatPrice, type Nano } from '../../../kernel/money.ts'
import type { CatalogEntry, DatedPrice, ShownPrice, ShownPriceRow, TextKind } from '../../catalog/entry.ts'
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

const rowKinds: readonly (readonly [keyof ShownPriceRow, string])[] = [
  ['input', 'Input'],
  ['cache_read', 'Cached input (read)'],
  ['cache_write', 'Cache write'],
  ['cache_write_1h', 'Cache write, 1 hour'],
  ['output', 'Output, including reasoning'],
  ['audio_input', 'Audio input'],
  ['audio_cache_read', 'Cached audio input'],
  ['audio_output', 'Audio output'],
]

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

function PriceRows({ price }: { readonly price: ShownPrice }) {
  const tiers = Object.entries(price.over ?? {}).sort(([a], [b]) => Number(a) - Number(b))
  const rows = [price, ...tiers.map(([, row]) => row)]
  const shown = rowKinds.filter(([kind]) => rows.some((row) => row[kind] !== undefined))
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
          <PriceRow key={kind} label={label} amounts={rows.map((row) => amountOf(row, kind))} />
        ))}
        {price.web_search !== undefined && (
          <PriceRow label="Web searches, per 1,000" amounts={rows.map(() => price.web_search ?? '')} />
        )}
        {price.us_only !== undefined && (
          <tr>
            <th scope="row">US-only processing, all tokens</th>
            <td class="price" colSpan={1 + tiers.length}>
              × {price.us_only}
            </td>
          </tr>
        )}
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

/** The price that applies to audio where a row has no audio price. */
const textKinds: Partial<Record<keyof ShownPriceRow, TextKind>> = {
  audio_input: 'input',
  audio_cache_read: 'cache_read',
  audio_output: 'output',
}

function amountOf(row: ShownPriceRow, kind: keyof ShownPriceRow): string {
  return row[kind] ?? row[textKinds[kind] ?? 'input']
}

const fieldLabels: Readonly<Record<SampleField, string>> = {
  in: 'Input tokens',
  cached: 'Cached, %',
  out: 'Output tokens',
  calls: 'Requests',
}

const lineNames: Readonly<Record<ChargeLine['kind'], string>> = {
  input: 'input',
  cache_read: 'cache read',
  cache_write: 'cache write',
  cache_write_1h: 'cache write, 1 h',
  output: 'output',
  audio_input: 'audio input',
  audio_cache_read: 'audio cache read',
  audio_output: 'audio output',
  web_search: 'web search',
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
              {lineNames[kind]}
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
