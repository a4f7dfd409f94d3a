/** @jsxImportSource preact */
// One price list, for operators: what each model costs in it, beside the price of the catalog and the cost of its routes.
// A model has the catalog's price and the markup, or a price of its own that is set here.

import { parsePrice } from '../../../kernel/money.ts'
import { blendedPrice } from '../../catalog/entry.ts'
import { countOf, exactCount, tierTexts, usdText } from '../../catalog/format.ts'
import type { ConsoleData } from '../../page-data.ts'
import { type AnswerOf, callApi } from '../api.ts'
import { Button, Facts, Percent } from '../components.tsx'
import { Field } from '../form.tsx'
import { useAddressQuery, useApi } from '../hooks.ts'
import { amountColumn, type Column } from '../table.tsx'
import { DetailHead, emptyState, hasWords, LongTable, QueryView, RowMenu, Section } from './components.tsx'
import { ListDialog, markupText } from './margin-page.tsx'
import { useConsolePath } from './navigation.ts'
import { FormDialog, useOverlay } from './overlay.tsx'
import { belowCostRow, TierPriceDialog } from './tier-price.tsx'

type PriceList = AnswerOf<'getPriceList'>
type PricedModel = PriceList['models'][number]
type ModelPrice = PricedModel['price']

const kinds = { input: 'Input', output: 'Output', cache_read: 'Cached input' } as const
type Kind = keyof typeof kinds

const shownModels = [
  { value: '', label: 'All models' },
  { value: 'own', label: 'With a price of their own' },
  { value: 'loss', label: 'Below cost' },
]

export function PriceListView({ subject: name }: ConsoleData) {
  const to = useConsolePath()
  const list = useApi('getPriceList', { list: name }, { keepPrevious: true })
  const { open } = useOverlay()
  const change = (shown: PriceList) => open(<ListDialog list={shown} onDone={list.reload} />)
  return (
    <>
      <DetailHead
        trail={[['Prices & margin', to('margin')]]}
        title={name}
        action={list.value && <Button onClick={() => list.value && change(list.value)}>Change the markup</Button>}
      />
      <QueryView what="the price list" query={list}>
        {(shown) => (
          <>
            <Facts
              facts={[
                ['Markup on the catalog', markupText(shown.markup_percent)],
                ['Prices of its own', exactCount(Object.keys(shown.prices).length)],
                ['Paid by', countOf(shown.workspaces, 'workspace')],
              ]}
            />
            <ModelPrices list={shown} onDone={list.reload} />
          </>
        )}
      </QueryView>
    </>
  )
}

interface ModelPricesProps {
  readonly list: PriceList
  onDone(): void
}

function ModelPrices({ list, onDone }: ModelPricesProps) {
  const [query, change] = useAddressQuery(['q', 'show'])
  const { open, ask } = useOverlay()
  const found = list.models.filter((each) => {
    if (query.show === 'own' && !each.is_explicit) return false
    if (query.show === 'loss' && belowCost(each, each.price).length === 0) return false
    return hasWords(`${each.model} ${each.name}`, query.q)
  })
  const reset = ({ model }: PricedModel) =>
    ask({
      title: `Use the markup for ${model}?`,
      label: 'Use the markup',
      intro: 'Its own price in this list is removed. Running requests keep their price.',
      send: () => callApi('resetPrice', { model, query: { list: list.name } }),
      onDone,
    })
  const columns: readonly Column<PricedModel>[] = [
    ...modelColumns,
    {
      label: 'Actions',
      show: (model) => (
        <RowMenu
          name={model.model}
          actions={[
            {
              label: 'Set its price',
              name: `Set the price of ${model.model}`,
              run: () => open(<PriceDialog {...{ list: list.name, model, onDone }} />),
            },
            {
              label: 'Change a tier’s price',
              name: `Change a tier’s price of ${model.model}`,
              run: () => open(<TierPriceDialog {...{ list: list.name, model: model.model, onDone }} />),
            },
            ...(model.is_explicit
              ? [{ label: 'Use the markup', name: `Use the markup for ${model.model}`, run: () => reset(model) }]
              : []),
          ]}
        />
      ),
    },
  ]
  return (
    <Section title="Models" note="USD per million tokens">
      <div class="controls">
        <Field
          label="Find a model"
          value={query.q}
          attributes={{ type: 'search', placeholder: 'Name or id' }}
          onChange={(q) => change({ q }, 'typing')}
        />
        <Field label="Show" value={query.show} options={shownModels} onChange={(show) => change({ show })} />
      </div>
      <LongTable
        what="models"
        class="data-table summary-table price-table"
        caption="Prices of the models in this list, by id"
        columns={columns}
        rows={found}
        keyOf={({ model }) => model}
        empty={emptyState('No models', 'Search for something else, or show all models.')}
      />
    </Section>
  )
}

function rateOf(price: ModelPrice | null, kind: Kind): string | null {
  return price === null ? null : price === 'free' ? '0.00' : price[kind]
}

/** The most that a route with a known cost charges; null = none is known. */
function costOf({ routes }: PricedModel, kind: Kind): string | null {
  const costs = routes.flatMap(({ cost }) => rateOf(cost, kind) ?? [])
  return costs.toSorted((a, b) => Number(b) - Number(a))[0] ?? null
}

/** Of three input tokens to one output token; null = no cost is known. */
function marginOf(model: PricedModel, price: ModelPrice): number | null {
  const [input, output] = [costOf(model, 'input'), costOf(model, 'output')]
  if (input === null || output === null || price === 'free') return null
  const [paid, cost] = [price, { ...price, input, output }].map((each) => blendedPrice({ price: each, tags: [] }) ?? 0n)
  return paid === undefined || cost === undefined || paid === 0n ? null : Number(paid - cost) / Number(paid)
}

/** `Input at $1.00 is below the cost of $2.00.` for each kind that is sold at a loss. */
function belowCost(model: PricedModel, price: ModelPrice): readonly string[] {
  return (Object.keys(kinds) as Kind[]).flatMap((kind) => {
    const [rate, cost] = [rateOf(price, kind), costOf(model, kind)]
    if (rate === null || cost === null || (parsePrice(rate) ?? 0n) >= (parsePrice(cost) ?? 0n)) return []
    return `${kinds[kind]} at ${usdText(rate)} is below the cost of ${usdText(cost)}.`
  })
}

const exact = { isExact: true } as const

const modelColumns: readonly Column<PricedModel>[] = [
  {
    label: 'Model',
    show: ({ model }) => <span class="row-name">{model}</span>,
    note({ is_explicit, price }) {
      const texts = [is_explicit && 'a price of its own', tierTexts(price)].filter(Boolean)
      return texts.length > 0 && <span class="wrap">{texts.join('; ')}</span>
    },
  },
  amountColumn('Price in', ({ price }) => rateOf(price, 'input'), exact),
  amountColumn('Price out', ({ price }) => rateOf(price, 'output'), exact),
  {
    label: 'Margin (3:1)',
    isNumber: true,
    show: (model) => <Percent share={marginOf(model, model.price)} />,
    note: (model) => belowCost(model, model.price).length > 0 && <span class="status-error">below cost</span>,
  },
  amountColumn('Cost in', (model) => costOf(model, 'input'), exact),
  amountColumn('Cost out', (model) => costOf(model, 'output'), exact),
  amountColumn('Catalog in', ({ catalog_price: price }) => rateOf(price, 'input'), exact),
  amountColumn('Catalog out', ({ catalog_price: price }) => rateOf(price, 'output'), exact),
]

interface PriceDialogProps {
  readonly list: string
  readonly model: PricedModel
  onDone(): void
}

const rates = [
  { name: 'input', label: 'Input, USD per million tokens', kind: 'decimal', isRequired: true },
  { name: 'output', label: 'Output, USD per million tokens', kind: 'decimal', isRequired: true },
  {
    name: 'cache_read',
    label: 'Cached input, USD per million tokens',
    kind: 'decimal',
    hint: 'Empty = as much as other input.',
  },
  belowCostRow,
] as const

/** Prices of other kinds, such as audio, long requests and service tiers, stay as they are. */
function PriceDialog({ list, model, onDone }: PriceDialogProps) {
  const before = model.price === 'free' ? undefined : model.price
  return (
    <FormDialog
      title={`Price of ${model.model} in ${list}`}
      label="Set the price"
      intro="Applies from the next request on, and no longer follows the markup. Running requests keep their price."
      initial={{ input: before?.input ?? '', output: before?.output ?? '', cache_read: before?.cache_read ?? '' }}
      rows={rates}
      send={({ allow_below_cost, cache_read, ...price }) => {
        const { cache_read: _, ...others } = before ?? {}
        return callApi('putPrice', {
          model: model.model,
          query: { list, ...(allow_below_cost === 'true' && { allow_below_cost }) },
          body: { ...others, ...price, ...(cache_read !== undefined && { cache_read }) },
        })
      }}
      onDone={onDone}
    >
      {({ input = '', output = '', cache_read: cached, allow_below_cost }) => {
        const typed = before && { ...before, input, output, cache_read: cached || input }
        const isPrice = [input, output, cached || input].every((rate) => parsePrice(rate) !== undefined)
        if (!isPrice || !typed) return null
        const margin = marginOf(model, typed)
        const losses = belowCost(model, typed)
        return (
          <>
            <p class="hint">
              {margin === null ? (
                'The cost of its routes is not known.'
              ) : (
                <>
                  Cost {usdText(costOf(model, 'input') ?? '')} in, {usdText(costOf(model, 'output') ?? '')} out: a
                  margin of <Percent share={margin} /> on three input tokens to one output token.
                </>
              )}
            </p>
            {losses.length > 0 && (
              <p class="problem" role="alert">
                {losses.join(' ')}
                {allow_below_cost !== 'true' && ' It will be refused unless you allow prices below cost.'}
              </p>
            )}
          </>
        )
      }}
    </FormDialog>
  )
}
