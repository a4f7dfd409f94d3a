/** @jsxImportSource preact */
// What a call would cost, by the code that bills: the same lines, the same one rounding. Without scripts the form asks
// the server, which answers with the same receipt.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { type ChargeLine, chargeLines } from '../../../catalog/charge-lines.ts'
import { type Price, priceUsage } from '../../../catalog/price.ts'
import { formatPico, formatPrice, type Nano } from '../../../kernel/money.ts'
import type { CatalogEntry } from '../../catalog/entry.ts'
import { exactCount, usd } from '../../catalog/figures.ts'
import { parseSample, priceOf, type Sample, usageOf } from '../../catalog/shown-price.ts'

const kindNames: Readonly<Record<ChargeLine['kind'], string>> = {
  input: 'input',
  cache_read: 'cache read',
  cache_write: 'cache write',
  cache_write_1h: 'cache write, 1 h',
  output: 'output',
}

const fields: readonly (readonly [name: string, label: string, of: (sample: Sample) => number])[] = [
  ['in', 'Input tokens', ({ inputTokens }) => inputTokens],
  ['cached', 'Of it cached, %', ({ cachedPercent }) => cachedPercent],
  ['out', 'Output tokens', ({ outputTokens }) => outputTokens],
  ['calls', 'Calls', ({ calls }) => calls],
]

export interface CalculatorProps {
  readonly entry: CatalogEntry
  readonly sample: Sample
}

export function Calculator({ entry, sample: initial }: CalculatorProps) {
  const [sample, setSample] = useState(initial)
  const price = priceOf(entry)
  const read = (form: HTMLFormElement) => {
    const params = new URLSearchParams()
    for (const [name] of fields) params.set(name, String(new FormData(form).get(name) ?? ''))
    setSample(parseSample(params))
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
          {fields.map(([name, label, of]) => (
            <label key={name}>
              <span>{label}</span>
              <input type="number" name={name} min="0" inputMode="numeric" defaultValue={String(of(initial))} />
            </label>
          ))}
        </div>
      </fieldset>
      <button type="submit" class="button quiet without-script">
        Calculate
      </button>
      {price ? (
        <Receipt price={price} sample={sample} />
      ) : (
        <p class="empty">Nothing can be reckoned without a price.</p>
      )}
    </form>
  )
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
          <dt>{exactCount(sample.calls)} calls</dt>
          <dd>
            <output>{usd((charge * BigInt(sample.calls)) as Nano)}</output>
          </dd>
        </div>
      </dl>
      <p class="hint">Each call is rounded up once, to a billionth of a dollar.</p>
    </div>
  )
}
