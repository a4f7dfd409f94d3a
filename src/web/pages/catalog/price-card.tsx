/** @jsxImportSource preact */
// The price of a model, exactly as it is billed, and a calculator that uses the billing code.

import { useState } from 'preact/hooks'
import { chargeLines, type Price, priceUsage, type ShownPrice } from '../../../catalog/price.ts'
import { formatPico, formatPrice, type Nano } from '../../../kernel/money.ts'
import {
  askedTierNames,
  buckets,
  factorNames,
  factors,
  type Tier,
  tiers,
  tokenBuckets,
  unitBuckets,
} from '../../../kernel/usage.ts'
import { blendedPrice, type CatalogEntry, type DatedPrice, isEmbedder } from '../../catalog/entry.ts'
import { countOf, exactCount, roundPrice, usd } from '../../catalog/format.ts'
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
import { Field } from '../form.tsx'
import { DataTable } from '../table.tsx'
import { priceColumn } from './model-parts.tsx'

export interface PriceCardProps {
  readonly entry: CatalogEntry
  /** Who set the price, and when; undefined = unknown. */
  readonly current: DatedPrice | undefined
}

export function PriceCard({ entry, current }: PriceCardProps) {
  const { price } = entry
  const blended = blendedPrice(entry)
  return (
    <div class="price-card">
      <p class="price-card-head between">
        <span>Price</span>
        <span>USD per 1M tokens</span>
      </p>
      {price === null && (
        <p class="price-card-note">No price. The model cannot be called until one is set in tollgate.yaml.</p>
      )}
      {price === 'free' && <p class="price-card-note">Free: no kind of token is charged.</p>}
      {price !== null && price !== 'free' && <PriceRows price={price} />}
      {price !== null &&
        price !== 'free' &&
        askedTierNames.map((name) => {
          const tier = price.tiers?.[name]
          return tier && <PriceRows key={name} price={tier} tier={name} />
        })}
      <Facts
        class="price-card-foot"
        facts={[
          ...(blended === undefined || price === 'free' || isEmbedder(entry)
            ? []
            : [['Blended (3:1)', `$${roundPrice(blended)}`] as const]),
          ['Set by', current?.source ?? entry.price_source ?? entry.source],
          ...(entry.price_version === null ? [] : [['Version', entry.price_version] as const]),
          ...(current ? [['Since', current.effective_from.slice(0, 10)] as const] : []),
        ]}
      />
    </div>
  )
}

interface PriceLine {
  readonly label: string
  /** One for each length of requests. */
  readonly amounts: readonly string[]
}

interface PriceRowsProps {
  readonly price: Exclude<ShownPrice, 'free'>
  /** Absent = the standard one. */
  readonly tier?: Tier
}

/** Prices by kind, with a column for every length of long requests. */
function PriceRows({ price, tier }: PriceRowsProps) {
  const long = Object.entries(price.over ?? {}).sort(([a], [b]) => Number(a) - Number(b))
  const rows = [price, ...long.map(([, row]) => row)]
  const same = (amount: string) => rows.map(() => amount)
  const lines: readonly PriceLine[] = [
    ...tokenBuckets
      .filter(({ bucket }) => rows.some((row) => row[bucket] !== undefined))
      // A part without its own price in a row costs as much as the whole.
      .map(({ bucket, partOf = 'input', label }) => ({
        label,
        amounts: rows.map((row) => row[bucket] ?? row[partOf]),
      })),
    ...unitBuckets.flatMap(({ bucket, quantity }) =>
      price[bucket] === undefined ? [] : { label: `Per ${quantity}`, amounts: same(price[bucket]) },
    ),
    ...factorNames.flatMap((name) =>
      price[name] === undefined ? [] : { label: factors[name].label, amounts: same(`× ${price[name]}`) },
    ),
  ]
  const heads = [tier ? tiers[tier].label : 'Price', ...long.map(([tokens]) => `over ${exactCount(Number(tokens))} in`)]
  return (
    <DataTable
      class="rows"
      caption={tier ? `Prices by kind of token, ${tiers[tier].label} tier` : 'Prices by kind of token'}
      columns={[
        { label: 'Kind', show: ({ label }: PriceLine) => label },
        ...heads.map((label, at) => priceColumn(label, ({ amounts }: PriceLine) => amounts[at] ?? '')),
      ]}
      rows={lines}
      keyOf={({ label }) => label}
    />
  )
}

/** Without scripts the form asks the server, which computes the same. */
export function Calculator({ entry, sample: initial }: { readonly entry: CatalogEntry; readonly sample: Sample }) {
  const [typed, setTyped] = useState(() => sampleFields.map(({ name }) => [name, String(initial[name])]))
  const params = new URLSearchParams(typed)
  const wrong = wrongSampleFields(params)
  const price = priceOf(entry)
  return (
    <form class="calculator card stack" method="get" noValidate onSubmit={(event) => event.preventDefault()}>
      <fieldset class="columns">
        <legend>Cost calculator</legend>
        {sampleFields.map((field, at) => (
          <Field
            key={field.name}
            label={field.label}
            value={params.get(field.name) ?? ''}
            isRequired
            attributes={{
              type: 'number',
              name: field.name,
              min: 0,
              max: field.max,
            }}
            error={wrong.includes(field) ? rangeText(field) : undefined}
            onChange={(text) => setTyped((before) => before.with(at, [field.name, text]))}
          />
        ))}
      </fieldset>
      <button type="submit" class="button quiet without-script">
        Calculate
      </button>
      {!price && <p class="empty">The cost cannot be calculated without a price.</p>}
      {price && wrong.length === 0 && <Receipt price={price} sample={parseSample(params)} />}
    </form>
  )
}

function rangeText({ max }: SampleField): string {
  return `Enter a whole number from 0 to ${exactCount(max)}.`
}

function Receipt({ price, sample }: { readonly price: Price; readonly sample: Sample }) {
  const usage = usageOf(sample)
  const charge = priceUsage(price, usage)
  return (
    <div class="receipt stack tight">
      <dl>
        {chargeLines(price, usage).map(({ bucket, units, rate, amount }) => (
          <div key={bucket}>
            <dt>
              {buckets[bucket].label}
              <small>
                {exactCount(units)} × ${formatPrice(rate)} / M
              </small>
            </dt>
            <dd>${formatPico(amount)}</dd>
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
