/** @jsxImportSource preact */
// The columns of the request log: which there are, which are shown, and which sort it. The choice is kept in the browser.

import { useEffect, useState } from 'preact/hooks'
import { totalInputInJson } from '../../../kernel/usage.ts'
import { countOf, exactCount, shortMs } from '../../catalog/format.ts'
import type { CallOf, RequestItem } from '../api.ts'
import { Menu, Status } from '../components.tsx'
import { Field } from '../form.tsx'
import { Icon } from '../icons.tsx'
import { amountColumn, type Column } from '../table.tsx'
import { Outcome, outcomeLevel, outcomeText } from './components.tsx'
import { Moment } from './context.tsx'

export type RequestSort = NonNullable<NonNullable<CallOf<'listRequests'>['query']>['sort']>

interface RequestColumn extends Column<RequestItem> {
  readonly sort?: RequestSort
  /** Only shown if it is chosen. */
  readonly isExtra?: true
}

const model: RequestColumn = {
  label: 'Model',
  show: ({ model: found, requested_model: wanted }) => found ?? <span class="muted">{wanted ?? '(no model)'}</span>,
  note: ({ provider, attempts: { length } }) =>
    provider !== null && `at ${provider}${length > 1 ? `, ${length} attempts` : ''}`,
}
const time: RequestColumn = { label: 'Time', sort: 'started_at', show: ({ started_at: at }) => <Moment at={at} /> }
const duration: RequestColumn = {
  label: 'Duration',
  isNumber: true,
  sort: 'total_ms',
  show: ({ total_ms: ms }) => shortMs(ms),
  note: ({ first_event_ms: ms }) => ms !== null && `first token ${shortMs(ms)}`,
}
const cost: RequestColumn = { ...amountColumn('Cost', ({ cost: usd }: RequestItem) => usd), sort: 'cost' }
const number = (value: number | null | undefined) => (value == null ? '–' : exactCount(value))

/** Of the newest requests of a key or a project. */
export const recentColumns: readonly Column<RequestItem>[] = [
  time,
  { label: 'Outcome', show: (request) => <Outcome {...request} /> },
  model,
  duration,
  cost,
]

/** `keyNames`: names of keys by id. */
function allColumns(keyNames: ReadonlyMap<string, string>): readonly RequestColumn[] {
  return [
    time,
    { label: 'Status', show: (request) => <Status level={outcomeLevel(request)} text={String(request.status)} /> },
    {
      label: 'Cause',
      show: (request) => {
        const text = outcomeText(request)
        return text === '' ? <span class="muted">–</span> : <span title={request.reason ?? undefined}>{text}</span>
      },
    },
    model,
    { label: 'Provider', isExtra: true, show: ({ provider }) => provider ?? '–' },
    { label: 'Attempts', isExtra: true, isNumber: true, show: ({ attempts }) => attempts.length },
    { label: 'Endpoint', isExtra: true, show: ({ path, stream }) => (stream ? `${path}, streamed` : path) },
    {
      label: 'Key',
      show: ({ key_id: id }) => keyNames.get(id) ?? <code>…{id.slice(-6)}</code>,
      note: ({ agent, client, session }) => (
        <span title={client ?? undefined}>
          {[
            agent ?? (client === null ? '' : (client.split(/[ /]/)[0] ?? '')),
            session === null ? '' : `session ${session.slice(0, 12)}`,
          ]
            .filter((text) => text !== '')
            .join(', ')}
        </span>
      ),
    },
    { label: 'Client', isExtra: true, show: ({ agent, client }) => agent ?? client ?? '–' },
    { label: 'Session', isExtra: true, show: ({ session }) => session ?? '–' },
    { label: 'End user', isExtra: true, show: ({ end_user: user }) => user ?? '–' },
    {
      label: 'Tags',
      isExtra: true,
      show: ({ tags }) =>
        Object.entries(tags)
          .map((pair) => pair.join('='))
          .join(', ') || '–',
    },
    {
      label: 'Tokens',
      isNumber: true,
      sort: 'input_tokens',
      show: ({ usage }) => (usage ? exactCount(totalInputInJson(usage)) : '–'),
      note: ({ usage }) => usage && `${exactCount(usage.output_tokens)} out`,
    },
    {
      label: 'Output tokens',
      isExtra: true,
      isNumber: true,
      sort: 'output_tokens',
      show: ({ usage }) => number(usage?.output_tokens),
    },
    {
      label: 'First token',
      isExtra: true,
      isNumber: true,
      sort: 'first_event_ms',
      show: ({ first_event_ms: ms }) => (ms === null ? '–' : shortMs(ms)),
    },
    duration,
    cost,
  ]
}

export interface Sorting {
  readonly sort: RequestSort
  readonly order: 'desc' | 'asc'
}

/** Of the address; anything else is newest first. */
export function sortingOf({ sort, order }: { readonly sort: string; readonly order: string }): Sorting {
  const found = allColumns(new Map()).find((column) => column.sort === sort)?.sort
  return { sort: found ?? 'started_at', order: order === 'asc' ? 'asc' : 'desc' }
}

export function isNewestFirst({ sort, order }: Sorting): boolean {
  return sort === 'started_at' && order === 'desc'
}

/** The labels of the columns that the browser shows. */
const columnsStorage = 'tollgate-request-columns'

export interface ShownColumns {
  readonly columns: readonly Column<RequestItem>[]
  readonly sorting: Sorting
  readonly choices: readonly { readonly label: string; readonly isTicked: boolean; run(): void }[]
  onSort(sorting: Sorting): void
}

/** The first column, the time, is always shown: it links to the request. */
export function useColumns(
  keyNames: ReadonlyMap<string, string>,
  sorting: Sorting,
  onSort: (sorting: Sorting) => void,
): ShownColumns {
  const [chosen, setChosen] = useState<readonly string[] | undefined>(undefined)
  useEffect(() => {
    const kept = localStorage.getItem(columnsStorage)
    if (kept !== null) setChosen(kept.split(','))
  }, [])
  const all = allColumns(keyNames)
  const isShown = ({ label, isExtra }: RequestColumn) =>
    label === time.label || (chosen ? chosen.includes(label) : !isExtra)
  const put = (labels: readonly string[]) => {
    localStorage.setItem(columnsStorage, labels.join(','))
    setChosen(labels)
  }
  const shown = all.filter(isShown)
  const choices = all.slice(1).map((column) => ({
    label: column.label,
    isTicked: isShown(column),
    run() {
      const labels = shown.map(({ label }) => label)
      put(isShown(column) ? labels.filter((label) => label !== column.label) : [...labels, column.label])
    },
  }))
  return { columns: shown.map((column) => withSort(column, sorting, onSort)), sorting, choices, onSort }
}

function withSort(
  { sort, isExtra: _, ...column }: RequestColumn,
  sorting: Sorting,
  onSort: ShownColumns['onSort'],
): Column<RequestItem> {
  if (sort === undefined) return column
  const isSorted = sorting.sort === sort
  const isDescending = sorting.order === 'desc'
  return {
    ...column,
    ...(isSorted && { sorted: isDescending ? 'descending' : 'ascending' }),
    head: (
      <button
        type="button"
        class="sort-head"
        onClick={() => onSort({ sort, order: isSorted && isDescending ? 'asc' : 'desc' })}
      >
        {column.label}
        {isSorted && <Icon name={isDescending ? 'descending' : 'ascending'} size={14} />}
      </button>
    ),
  }
}

const sortOptions = [
  { value: 'started_at desc', label: 'Newest first' },
  { value: 'started_at asc', label: 'Oldest first' },
  { value: 'cost desc', label: 'Highest cost' },
  { value: 'total_ms desc', label: 'Longest' },
  { value: 'input_tokens desc', label: 'Most input tokens' },
] as const

/** How many there are, the same requests as a file, and what the table shows of them. */
export function RequestTools({
  total,
  exportHref,
  shown: { sorting, choices, onSort },
}: {
  /** undefined = not counted yet. */
  readonly total: number | undefined
  exportHref(format: 'csv' | 'jsonl'): string
  readonly shown: ShownColumns
}) {
  const link = (format: 'csv' | 'jsonl', label: string) => (
    <a href={exportHref(format)} download={`requests.${format}`}>
      {label}
    </a>
  )
  const current = `${sorting.sort} ${sorting.order}`
  const isListed = sortOptions.some(({ value }) => value === current)
  return (
    <div class="request-tools">
      <p class="row">
        <span class="hint">Export {total === undefined ? 'these requests' : countOf(total, 'request')}:</span>{' '}
        {link('csv', 'CSV')} {link('jsonl', 'JSON lines')}
      </p>
      <div class="row">
        <div class="sort-field">
          <Field
            label="Sort by"
            value={current}
            options={[...sortOptions, ...(isListed ? [] : [{ value: current, label: 'Another column' }])]}
            onChange={(value) => {
              const [sort = '', order = ''] = value.split(' ')
              onSort(sortingOf({ sort, order }))
            }}
          />
        </div>
        <Menu name="Columns" look="button quiet small" items={choices}>
          Columns
          <Icon name="down" size={14} />
        </Menu>
      </div>
    </div>
  )
}
