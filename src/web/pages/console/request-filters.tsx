/** @jsxImportSource preact */
// The filters of the request log: the period, what one filters by most, and the rest under "More". They are in the address.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { isoTime } from '../../../kernel/clock.ts'
import { exactCount } from '../../catalog/format.ts'
import type { AnswerOf } from '../api.ts'
import { Button, LiveStatus } from '../components.tsx'
import { Checkbox, CommittedField, Field } from '../form.tsx'
import type { AddressQuery } from '../hooks.ts'
import type { LiveState } from '../live-catalog.ts'
import { causeText, NameOf } from './components.tsx'
import { TimeField } from './context.tsx'
import { dayMs, isoTimeOf, monthRanges, usagePeriod } from './figures.ts'

/** Names in the address, and the parameters of the API. */
export const parameters = {
  project: 'project_id',
  key: 'key_id',
  model: 'model',
  outcome: 'outcome',
  session: 'session',
  agent: 'agent',
  user: 'end_user',
  tag: 'tag',
  provider: 'provider',
  cause: 'cause',
  batch: 'batch_id',
} as const
type FilterName = keyof typeof parameters
export const filterNames = Object.keys(parameters) as FilterName[]
export type Filters = AddressQuery<FilterName | 'range' | 'from' | 'to' | 'sort' | 'order' | 'live' | 'request'>
type Facets = AnswerOf<'getRequestFacets'>['facets']

const periods = [
  { value: '1h', label: 'Last hour', ms: dayMs / 24 },
  { value: '', label: 'Last 24 hours', ms: dayMs },
  { value: '7d', label: 'Last 7 days', ms: 7 * dayMs },
  { value: '30d', label: 'Last 30 days', ms: 30 * dayMs },
  { value: '90d', label: 'Last 90 days', ms: 90 * dayMs },
] as const
const periodOptions = [...periods, ...monthRanges, { value: 'custom', label: 'From … to …' }].map(
  ({ value, label }) => ({
    value,
    label,
  }),
)

export interface RequestPeriod {
  /** ISO 8601. */
  readonly from: string
  /** undefined = it goes on. */
  readonly to: string | undefined
  /** `in the last 24 hours`; empty = between two times that are shown. */
  readonly name: string
}

/** What the page shows, and what its export contains. A time that is missing is a day from the other one. */
export function periodOf({ range, from, to }: Filters, now: number): RequestPeriod {
  const [start, end] = [isoTimeOf(from), isoTimeOf(to)]
  if (start !== '' || end !== '') {
    const last = end === '' ? undefined : end
    return { from: start || isoTime(Math.max(0, Date.parse(end) - dayMs)), to: last, name: '' }
  }
  if (monthRanges.some(({ value }) => value === range)) {
    const { from: first, to: last } = usagePeriod(range, now)
    if (range === 'month') return { from: isoTime(first), to: undefined, name: 'this month' }
    return { from: isoTime(first), to: isoTime(last), name: 'last month' }
  }
  const period = periods.find(({ value }) => value === range) ?? periods[1]
  return { from: isoTime(now - period.ms), to: undefined, name: `in the ${period.label.toLowerCase()}` }
}

interface RequestFiltersProps {
  readonly query: Filters
  readonly period: RequestPeriod
  /** Epoch milliseconds. */
  readonly now: number
  readonly facets: Facets | undefined
  readonly keyNames: ReadonlyMap<string, string>
  readonly live: LiveState | undefined
  /** Why the list has no live updates, whatever is chosen. */
  readonly whyNotLive: string | undefined
  change(change: Partial<Filters>): void
}

const outcomes = [
  { value: '', label: 'All' },
  { value: 'ok', label: 'Succeeded' },
  { value: 'failed', label: 'Failed' },
] as const

const moreNames = ['project', 'provider', 'agent', 'session', 'user', 'tag', 'batch'] as const

export function RequestFilters(props: RequestFiltersProps) {
  const { query, period, now, facets, keyNames, live, whyNotLive, change } = props
  const [isMore, setMore] = useState(false)
  const isCustom = period.name === ''
  const chooseRange = (range: string) => {
    if (range === 'custom') change({ range: '', from: period.from, to: period.to ?? isoTime(now) })
    else change({ range, from: '', to: '' })
  }
  const facet = (name: keyof Facets, label: string, shownName = (value: string) => value) => (
    <Field
      label={label}
      value={query[name]}
      options={facetOptions(facets?.[name] ?? [], query[name], shownName)}
      onChange={(value) => change({ [name]: value })}
    />
  )
  const text = (name: 'session' | 'user' | 'tag' | 'batch', label: string, placeholder: string) => (
    <CommittedField
      label={label}
      value={query[name]}
      attributes={{ placeholder }}
      onChange={(value) => change({ [name]: value })}
    />
  )
  const set = moreNames.filter((name) => query[name] !== '').length
  return (
    <section class="request-filters stack tight" aria-label="Filters">
      <div class="controls">
        <Field
          label="Time"
          value={isCustom ? 'custom' : (periodOptions.find(({ value }) => value === query.range)?.value ?? '')}
          options={periodOptions}
          onChange={chooseRange}
        />
        {isCustom && (
          <>
            <TimeField label="From" at={Date.parse(period.from)} onChange={(from) => change({ from })} />
            <TimeField label="To" at={Date.parse(period.to ?? isoTime(now))} onChange={(to) => change({ to })} />
          </>
        )}
        <Field
          label="Status"
          value={outcomes.find(({ value }) => value === query.outcome)?.value ?? ''}
          options={outcomes}
          onChange={(outcome) => change({ outcome })}
        />
        <ModelField models={facets?.model ?? []} model={query.model} onChoose={(model) => change({ model })} />
        {facet('key', 'Key', (value) => keyNames.get(value) ?? value)}
        {facet('cause', 'Cause', causeText)}
        <Button look="quiet more-filters" aria-expanded={isMore} onClick={() => setMore(!isMore)}>
          More{set > 0 && ` (${set})`}
        </Button>
        <Checkbox
          label="Live"
          isChecked={query.live !== 'off' && whyNotLive === undefined}
          attributes={{ disabled: whyNotLive !== undefined, title: whyNotLive }}
          onChange={(isLive) => change({ live: isLive ? '' : 'off' })}
        />
        {live && <LiveStatus state={live} />}
      </div>
      {isMore && (
        <div class="controls">
          {facet('project', 'Project')}
          {facet('provider', 'Provider')}
          {facet('agent', 'Client')}
          {text('session', 'Session', 'all')}
          {text('user', 'End user', 'all')}
          {text('tag', 'Tag', 'team=web')}
          {text('batch', 'Batch', 'batch_…')}
          <FindRequest />
        </div>
      )}
      <Chips query={query} change={change} />
    </section>
  )
}

/** The value of the address is among them, even without a request in the period. */
function facetOptions(
  values: Facets[keyof Facets],
  chosen: string,
  shownName: (value: string) => string,
): readonly { readonly value: string; readonly label: string }[] {
  const isListed = chosen === '' || values.some(({ value }) => value === chosen)
  return [
    { value: '', label: 'All' },
    ...(isListed ? [] : [{ value: chosen, label: shownName(chosen) }]),
    ...values.map(({ value, name, requests }) => ({
      value,
      label: `${name ?? shownName(value)} (${exactCount(requests)})`,
    })),
  ]
}

/** What is set under "More", and times that are none, each with a button that removes it. */
function Chips({ query, change }: Pick<RequestFiltersProps, 'query' | 'change'>) {
  const wrongTime = (word: string, text: string) =>
    text !== '' && isoTimeOf(text) === '' && `${word} “${text}”: not a time, ignored`
  const chips = [
    { name: 'project', text: query.project !== '' && <>project {<NameOf kind="Project" id={query.project} />}</> },
    { name: 'provider', text: query.provider !== '' && `provider ${query.provider}` },
    { name: 'session', text: query.session !== '' && `session ${query.session}` },
    { name: 'agent', text: query.agent !== '' && `client ${query.agent}` },
    { name: 'user', text: query.user !== '' && `end user ${query.user}` },
    { name: 'tag', text: query.tag !== '' && `tag ${query.tag}` },
    { name: 'batch', text: query.batch !== '' && `batch ${query.batch}` },
    { name: 'from', text: wrongTime('from', query.from) },
    { name: 'to', text: wrongTime('before', query.to) },
  ] as const
  const shown = chips.filter(({ text }) => text !== false)
  if (shown.length === 0) return null
  return (
    <div class="row">
      {shown.map(({ name, text }) => (
        <Button key={name} look="quiet small" onClick={() => change({ [name]: '' })}>
          {text} <span aria-hidden="true">×</span>
          <span class="visually-hidden">: remove this filter</span>
        </Button>
      ))}
    </div>
  )
}

/** A text field with suggestions, because only the most used models are counted. */
function ModelField({
  models,
  model,
  onChoose,
}: {
  readonly models: Facets['model']
  readonly model: string
  onChoose(model: string): void
}) {
  const list = 'request-models'
  return (
    <>
      <CommittedField
        label="Model"
        value={model}
        attributes={{ type: 'search', 'data-search': true, list, placeholder: 'All' }}
        onChange={onChoose}
      />
      <datalist id={list}>
        {models.map(({ value }) => (
          <option key={value} value={value} />
        ))}
      </datalist>
    </>
  )
}

function FindRequest() {
  const [id, setId] = useState('')
  const open = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (id.trim() !== '') location.assign(`/console/requests/${encodeURIComponent(id.trim())}`)
  }
  return (
    <form onSubmit={open} class="field wide">
      <Field label="Request id" value={id} attributes={{ placeholder: 'req_…' }} onChange={setId} />
    </form>
  )
}
