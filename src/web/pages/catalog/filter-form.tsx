/** @jsxImportSource preact */
// Search and filters of the model list. A plain form without scripts; with them every change applies at once.

import type { TargetedSubmitEvent } from 'preact'
import type { CatalogQuery, Choices, SortKind } from '../../catalog/query.ts'

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
const contextSteps = [32_000, 128_000, 200_000, 1_000_000]

export function FilterForm({ query, choices, change }: FilterFormProps) {
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => event.preventDefault()
  const contextMin = query.contextMin === 0 ? '' : String(query.contextMin)
  return (
    <form class="filters" method="get" action="/" aria-label="Search and filter" onSubmit={submit}>
      {query.compared.map((id) => (
        <input key={id} type="hidden" name="m" value={id} />
      ))}
      <div class="search">
        <label for="q">Search</label>
        <input
          id="q"
          type="search"
          name="q"
          autocomplete="off"
          spellcheck={false}
          value={query.text}
          onInput={({ currentTarget }) => change({ text: currentTarget.value })}
        />
        <kbd title="Press / to search">/</kbd>
      </div>
      <div class="menus">
        <Menu name="creator" label="Creator" value={query.creator} onPick={(creator) => change({ creator })}>
          {choices.creators.map((each) => [each, each])}
        </Menu>
        <Menu name="provider" label="Provider" value={query.provider} onPick={(provider) => change({ provider })}>
          {choices.providers.map((each) => [each, each])}
        </Menu>
        <Menu name="max_input" label="Max price" value={query.inputMax} onPick={(inputMax) => change({ inputMax })}>
          {withValue(inputSteps, query.inputMax).map((each) => [each, `$${each}`])}
        </Menu>
        <Menu
          name="min_context"
          label="Min context"
          value={contextMin}
          onPick={(value) => change({ contextMin: Number(value) })}
        >
          {withValue(contextSteps.map(String), contextMin).map((each) => [each, contextName(Number(each))])}
        </Menu>
        <Menu
          name="sort"
          label="Sort by"
          value={query.sort}
          onPick={(sort) => change({ sort: sort as SortKind })}
          isFixed
        >
          {Object.entries(sortNames)}
        </Menu>
      </div>
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

function Toggles({ query, tags, change }: TogglesProps) {
  const toggle = (tag: string) =>
    change({ tags: query.tags.includes(tag) ? query.tags.filter((each) => each !== tag) : [...query.tags, tag] })
  const toggles = [
    ...tags.map((tag) => ({
      name: 'tag',
      value: tag,
      label: tag,
      isOn: query.tags.includes(tag),
      onChange: () => toggle(tag),
    })),
    {
      name: 'routes',
      value: '2',
      label: 'several routes',
      isOn: query.severalRoutes,
      onChange: () => change({ severalRoutes: !query.severalRoutes }),
    },
    { name: 'free', value: '1', label: 'free', isOn: query.free, onChange: () => change({ free: !query.free }) },
  ]
  return (
    <fieldset class="toggles">
      <legend>Only with</legend>
      {toggles.map(({ name, value, label, isOn, onChange }) => (
        <label key={`${name} ${value}`}>
          <input type="checkbox" name={name} value={value} checked={isOn} onChange={onChange} />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  )
}

interface MenuProps {
  readonly name: string
  readonly label: string
  readonly value: string
  /** Without the option "any". */
  readonly isFixed?: boolean
  /** Value and name. */
  readonly children: readonly (readonly [string, string])[]
  onPick(value: string): void
}

function Menu({ name, label, value, isFixed = false, children, onPick }: MenuProps) {
  return (
    <label class="menu">
      <span>{label}</span>
      <select name={name} value={value} onChange={({ currentTarget }) => onPick(currentTarget.value)}>
        {!isFixed && <option value="">any</option>}
        {children.map(([each, text]) => (
          <option key={each} value={each} selected={each === value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Adds a value from the address that is not among the steps. */
function withValue(steps: readonly string[], value: string): readonly string[] {
  return value === '' || steps.includes(value) ? steps : [...steps, value].sort((a, b) => Number(a) - Number(b))
}

function contextName(tokens: number): string {
  return tokens >= 1_000_000 ? `${tokens / 1_000_000}M` : `${tokens / 1000}K`
}
