/** @jsxImportSource preact */
// Sets or removes the price of a model in one service tier; its other prices stay.

import { tierNames, tiers } from '../../../kernel/usage.ts'
import { ApiError, callApi } from '../api.ts'
import { FormDialog } from './overlay.tsx'

export interface TierPriceDialogProps {
  readonly model: string
  /** undefined = the catalog. */
  readonly list?: string
  onDone(): void
}

export const belowCostRow = {
  name: 'allow_below_cost',
  label: 'Prices below cost',
  options: [
    { value: '', label: 'Refuse' },
    { value: 'true', label: 'Allow' },
  ],
} as const

const isSet = ({ change }: Readonly<Record<string, string>>) => change !== 'remove'

const rows = [
  {
    name: 'tier',
    label: 'Service tier',
    options: tierNames.map((value) => ({ value, label: tiers[value].label })),
    isRequired: true,
    hint: 'Requests for a tier without a price are refused.',
  },
  {
    name: 'change',
    label: 'Change',
    options: [
      { value: '', label: 'Set its price' },
      { value: 'remove', label: 'Remove its price' },
    ],
  },
  {
    name: 'input',
    label: 'Input in this tier, USD per million tokens',
    kind: 'decimal',
    isRequired: true,
    isShown: isSet,
  },
  {
    name: 'output',
    label: 'Output in this tier, USD per million tokens',
    kind: 'decimal',
    isRequired: true,
    isShown: isSet,
  },
  {
    name: 'cache_read',
    label: 'Cached input in this tier, USD per million tokens',
    kind: 'decimal',
    hint: 'Empty = as much as other input.',
    isShown: isSet,
  },
  belowCostRow,
] as const

export function TierPriceDialog({ model, list, onDone }: TierPriceDialogProps) {
  return (
    <FormDialog
      title={list === undefined ? `Price of ${model} in a tier` : `Price of ${model} in a tier of ${list}`}
      label="Change the tier’s price"
      intro="Applies from the next request on. Running requests keep their price."
      initial={{ tier: 'flex' }}
      rows={rows}
      send={async ({ tier, change, input, output, cache_read, allow_below_cost }) => {
        const query = list === undefined ? {} : { list }
        const { price } = await callApi('getPrice', { model, query })
        if (price === null || price === 'free') throw new ApiError(0, `${model} has no standard price. Set that first.`)
        const { [tier]: _, ...others } = price.tiers ?? {}
        const rates = { input, output, ...(cache_read !== undefined && { cache_read }) }
        return callApi('putPrice', {
          model,
          query: { ...query, ...(allow_below_cost === 'true' && { allow_below_cost }) },
          body: { ...price, tiers: change === 'remove' ? others : { ...others, [tier]: rates } },
        })
      }}
      onDone={onDone}
    />
  )
}
