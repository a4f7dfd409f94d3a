/** @jsxImportSource preact */
// What to look for. A plain form that sends itself without scripts; with them every change is shown at once.

import type { TargetedSubmitEvent } from 'preact'
import type { CatalogQuery, SortKind } from '../../catalog/query.ts'
import type { Choices } from '../../catalog/select-entries.ts'

export interface FilterFormProps {
  readonly query: CatalogQuery
  readonly choices: Choices
  change(part: Partial<CatalogQuery>): void
}

const sortNames: Readonly<Record<SortKind, string>> = {
  name: 'maker and name',
  price: 'input price',
  output: 'output price',
  context: 'context',
  newest: 'newest',
  'first-token': 'first token',
  speed: 'tokens/s',
}

const inputSteps = ['0.10', '0.50', '1.00', '3.00', '10.00']
const contextSteps = [32_000, 128_000, 200_000, 1_000_000]

export function FilterForm({ query, choices, change }: FilterFormProps) {
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => event.preventDefault()
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
        <kbd title="The key / leads here">/</kbd>
      </div>
      <div class="menus">
        <Menu name="creator" label="Maker" value={query.creator} onPick={(creator) => change({ creator })}>
          {choices.creators.map((each) => [each, each])}
        </Menu>
        <Menu name="provider" label="Provider" value={query.provider} onPick={(provider) => change({ provider })}>
          {choices.providers.map((each) => [each, each])}
        </Menu>
        <Menu name="max_input" label="Input up to" value={query.inputMax} onPick={(inputMax) => change({ inputMax })}>
          {withOwn(inputSteps, query.inputMax).map((each) => [each, `$${each}`])}
        </Menu>
        <Menu
          name="min_context"
          label="Context from"
          value={query.contextMin === 0 ? '' : String(query.contextMin)}
          onPick={(value) => change({ contextMin: Number(value) })}
        >
          {withOwn(contextSteps.map(String), query.contextMin === 0 ? '' : String(query.contextMin)).map((each) => [
            each,
            contextName(Number(each)),
          ])}
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
      <Ticks query={query} tags={choices.tags} change={change} />
      <button class="button without-script" type="submit">
        Apply
      </button>
    </form>
  )
}

function Ticks({
  query,
  tags,
  change,
}: {
  query: CatalogQuery
  tags: readonly string[]
  change: FilterFormProps['change']
}) {
  const toggle = (tag: string) =>
    change({ tags: query.tags.includes(tag) ? query.tags.filter((each) => each !== tag) : [...query.tags, tag] })
  return (
    <fieldset class="ticks">
      <legend>Only with</legend>
      {tags.map((tag) => (
        <label key={tag}>
          <input
            type="checkbox"
            name="tag"
            value={tag}
            checked={query.tags.includes(tag)}
            onChange={() => toggle(tag)}
          />
          <span>{tag}</span>
        </label>
      ))}
      <label>
        <input
          type="checkbox"
          name="routes"
          value="2"
          checked={query.severalRoutes}
          onChange={() => change({ severalRoutes: !query.severalRoutes })}
        />
        <span>two routes or more</span>
      </label>
      <label>
        <input
          type="checkbox"
          name="free"
          value="1"
          checked={query.free}
          onChange={() => change({ free: !query.free })}
        />
        <span>free</span>
      </label>
    </fieldset>
  )
}

interface MenuProps {
  readonly name: string
  readonly label: string
  readonly value: string
  /** Without the choice of none. */
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

/** A value from the address that the menu does not have by itself. */
function withOwn(steps: readonly string[], own: string): readonly string[] {
  return own === '' || steps.includes(own) ? steps : [...steps, own].sort((a, b) => Number(a) - Number(b))
}

function contextName(tokens: number): string {
  return tokens >= 1_000_000 ? `${tokens / 1_000_000}M` : `${tokens / 1000}K`
}
