/** @jsxImportSource preact */
// What a call would cost, by the code that bills: the same lines, the same one rounding. Without scripts the form asks
// the server, which answers with the same receipt.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { type ChargeLine, chargeLines } from '../../../catalog/charge-lines.ts'
import { type Price, priceUsage } from '../../../catalog/price.ts'
import { formatPico, formatPrice, type Nano } from '../../../kernel/money.ts'
import type { CatalogEntry } from '../../catalog/entry.ts'
import { countOf, exactCount, usd } from '../../catalog/figures.ts'
import {
  parseSample,
  priceOf,
  type Sample,
  type SampleField,
  sampleFields,
  usageOf,
  wrongSampleFields,
} from '../../catalog/shown-price.ts'

const kindNames: Readonly<Record<ChargeLine['kind'], string>> = {
  input: 'input',
  cache_read: 'cache read',
  cache_write: 'cache write',
  cache_write_1h: 'cache write, 1 h',
  output: 'output',
  audio_input: 'sound in',
  audio_cache_read: 'sound, cache read',
  audio_output: 'sound out',
  web_search: 'web search',
}

const labels: Readonly<Record<SampleField, string>> = {
  in: 'Input tokens',
  cached: 'Of it cached, %',
  out: 'Output tokens',
  calls: 'Calls',
}

function sampleValue({ inputTokens, cachedPercent, outputTokens, calls }: Sample, name: SampleField): number {
  return { in: inputTokens, cached: cachedPercent, out: outputTokens, calls }[name]
}

export interface CalculatorProps {
  readonly entry: CatalogEntry
  readonly sample: Sample
}

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
  return (
    <form class="calculator" method="get" onSubmit={submit} onInput={({ currentTarget }) => read(currentTarget)}>
      <fieldset>
        <legend>What would it cost?</legend>
        <div class="calculator-fields">
          {sampleFields.map(({ name, max }) => (
            <label key={name}>
              <span>{labels[name]}</span>
              <input
                type="number"
                name={name}
                min={0}
                max={max}
                required
                inputMode="numeric"
                aria-invalid={wrong.includes(name)}
                defaultValue={String(sampleValue(initial, name))}
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
      {!price && <p class="empty">Nothing can be reckoned without a price.</p>}
      {price && wrong.length === 0 && <Receipt price={price} sample={sample} />}
    </form>
  )
}

function rangeText(name: SampleField): string {
  const max = sampleFields.find((field) => field.name === name)?.max ?? 0
  return `“${labels[name]}” takes a whole number from 0 to ${exactCount(max)}.`
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
              {kindNames[kind]}
              <small>
                {exactCount(tokens)} × ${formatPrice(each)} / M
              </small>
            </dt>
            <dd>${formatPico(pico)}</dd>
          </div>
        ))}
        <div class="sum">
          <dt>one call</dt>
          <dd>{usd(charge)}</dd>
        </div>
        <div class="sum total">
          <dt>{countOf(sample.calls, 'call')}</dt>
          <dd>
            <output>{usd((charge * BigInt(sample.calls)) as Nano)}</output>
          </dd>
        </div>
      </dl>
      <p class="hint">Each call is rounded up once, to a billionth of a dollar.</p>
    </div>
  )
}
