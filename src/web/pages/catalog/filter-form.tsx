/** @jsxImportSource preact */
// Search and filters of the model list. A plain form without scripts; with them every change applies at once.

import type { TargetedSubmitEvent } from 'preact'
import type { CatalogQuery, Choices, SortKind } from '../../catalog/query.ts'
import { Field, type Option } from '../form.tsx'

export interface FilterFormProps {
  readonly query: CatalogQuery
  readonly choices: Choices
  change(part: Partial<CatalogQuery>): void
}

const sortNames: Readonly<Record<SortKind, string>> = {
  name: 'creator and name',
  price: 'input price',
  output: 'output price',
  context: 'context',
  newest: 'newest',
  'first-token': 'latency',
  speed: 'throughput',
}

const inputSteps = ['0.10', '0.50', '1.00', '3.00', '10.00']
const contextSteps = ['32000', '128000', '200000', '1000000']

interface Menu {
  /** In the address. */
  readonly name: string
  readonly label: string
  readonly value: string
  readonly options: readonly Option[]
  pick(value: string): Partial<CatalogQuery>
}

export function FilterForm({ query, choices, change }: FilterFormProps) {
  const { creator, provider, inputMax, sort } = query
  const contextMin = query.contextMin === 0 ? '' : String(query.contextMin)
  const menus: readonly Menu[] = [
    {
      name: 'creator',
      label: 'Creator',
      value: creator,
      options: anyOf(choices.creators),
      pick: (value) => ({ creator: value }),
    },
    {
      name: 'provider',
      label: 'Provider',
      value: provider,
      options: anyOf(choices.providers),
      pick: (value) => ({ provider: value }),
    },
    {
      name: 'max_input',
      label: 'Max price',
      value: inputMax,
      options: anyOf(withValue(inputSteps, inputMax), (value) => `$${value}`),
      pick: (value) => ({ inputMax: value }),
    },
    {
      name: 'min_context',
      label: 'Min context',
      value: contextMin,
      options: anyOf(withValue(contextSteps, contextMin), contextName),
      pick: (value) => ({ contextMin: Number(value) }),
    },
    {
      name: 'sort',
      label: 'Sort by',
      value: sort,
      options: Object.entries(sortNames).map(([value, label]) => ({ value, label })),
      pick: (value) => ({ sort: value as SortKind }),
    },
  ]
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => event.preventDefault()
  return (
    <form class="filters controls" method="get" action="/" aria-label="Search and filter" onSubmit={submit}>
      {query.compared.map((id) => (
        <input key={id} type="hidden" name="m" value={id} />
      ))}
      <Field
        label="Search"
        id="q"
        value={query.text}
        isWide
        attributes={{ type: 'search', name: 'q', 'data-search': true, placeholder: 'Press / to search' }}
        onChange={(text) => change({ text })}
      />
      {menus.map(({ name, label, value, options, pick }) => (
        <Field
          key={name}
          label={label}
          value={value}
          options={options}
          attributes={{ name }}
          onChange={(next) => change(pick(next))}
        />
      ))}
      <Toggles query={query} tags={choices.tags} change={change} />
      <button class="button without-script" type="submit">
        Apply
      </button>
    </form>
  )
}

interface TogglesProps extends Pick<FilterFormProps, 'query' | 'change'> {
  readonly tags: readonly string[]
}

function Toggles({ query: { tags: chosen, severalRoutes, free }, tags, change }: TogglesProps) {
  const toggles = [
    ...tags.map((tag) => {
      const isOn = chosen.includes(tag)
      const next = isOn ? chosen.filter((each) => each !== tag) : [...chosen, tag]
      return { name: 'tag', value: tag, label: tag, isOn, next: { tags: next } }
    }),
    {
      name: 'routes',
      value: '2',
      label: 'several routes',
      isOn: severalRoutes,
      next: { severalRoutes: !severalRoutes },
    },
    { name: 'free', value: '1', label: 'free', isOn: free, next: { free: !free } },
  ]
  return (
    <fieldset class="toggles row">
      <legend>Only with</legend>
      {toggles.map(({ name, value, label, isOn, next }) => (
        <label key={`${name} ${value}`}>
          <input type="checkbox" name={name} value={value} checked={isOn} onChange={() => change(next)} />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  )
}

function anyOf(values: readonly string[], nameOf = (value: string) => value): readonly Option[] {
  return [{ value: '', label: 'any' }, ...values.map((value) => ({ value, label: nameOf(value) }))]
}

/** Adds a value from the address that is not among the steps. */
function withValue(steps: readonly string[], value: string): readonly string[] {
  return value === '' || steps.includes(value) ? steps : [...steps, value].sort((a, b) => Number(a) - Number(b))
}

function contextName(text: string): string {
  const tokens = Number(text)
  return tokens >= 1_000_000 ? `${tokens / 1_000_000}M` : `${tokens / 1000}K`
}
