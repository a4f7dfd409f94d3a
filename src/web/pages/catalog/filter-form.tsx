/** @jsxImportSource preact */
// Search and filters of the model list. A plain form without scripts; with them every change applies at once.

import type { TargetedSubmitEvent } from 'preact'
import { type CatalogQuery, type Choices, sortNames } from '../../catalog/query.ts'
import { Field, type Option } from '../form.tsx'

export interface FilterFormProps {
  readonly query: CatalogQuery
  readonly choices: Choices
  change(part: Partial<CatalogQuery>): void
}

const inputSteps = ['0.10', '0.50', '1.00', '3.00', '10.00']
const contextSteps = ['32000', '128000', '200000', '1000000']

export function FilterForm({ query, choices, change }: FilterFormProps) {
  const inputs = withValue(inputSteps, query.max_input)
  const contexts = withValue(contextSteps, query.min_context)
  const sorts = Object.entries(sortNames).map(([value, label]) => ({ value, label }))
  const menus = [
    { name: 'creator', label: 'Creator', options: anyOf(choices.creators) },
    { name: 'provider', label: 'Provider', options: anyOf(choices.providers) },
    { name: 'max_input', label: 'Max price', options: anyOf(inputs, (value) => `$${value}`) },
    { name: 'min_context', label: 'Min context', options: anyOf(contexts, contextName) },
    { name: 'sort', label: 'Sort by', options: sorts },
  ] as const
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => event.preventDefault()
  return (
    <form class="filters controls" method="get" action="/" aria-label="Search and filter" onSubmit={submit}>
      {query.m.map((id) => (
        <input key={id} type="hidden" name="m" value={id} />
      ))}
      <Field
        label="Search"
        id="q"
        value={query.q}
        isWide
        attributes={{ type: 'search', name: 'q', 'data-search': true, placeholder: 'Name, id or creator' }}
        onChange={(q) => change({ q })}
      />
      {menus.map(({ name, label, options }) => (
        <Field
          key={name}
          label={label}
          value={query[name]}
          options={options}
          attributes={{ name }}
          onChange={(value) => change({ [name]: value })}
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

function Toggles({ query: { tag: chosen, routes, free }, tags, change }: TogglesProps) {
  const toggles = [
    ...tags.map((tag) => {
      const isOn = chosen.includes(tag)
      const next = isOn ? chosen.filter((each) => each !== tag) : [...chosen, tag]
      return { name: 'tag', value: tag, label: tag, isOn, next: { tag: next } }
    }),
    { name: 'routes', value: '2', label: 'several routes', isOn: routes !== '', next: { routes: routes ? '' : '2' } },
    { name: 'free', value: '1', label: 'free', isOn: free !== '', next: { free: free ? '' : '1' } },
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
