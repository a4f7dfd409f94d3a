/** @jsxImportSource preact */
// Prices and margin, for operators: what was earned, and the price lists by which workspaces pay.

import { isoTime } from '../../../kernel/clock.ts'
import { countOf, exactCount, percentText } from '../../catalog/format.ts'
import { marginQuery } from '../../first-calls.ts'
import type { WorkspacesData } from '../../page-data.ts'
import { type AnswerOf, callApi, type ItemOf, withQuery } from '../api.ts'
import { Amount, Percent } from '../components.tsx'
import { Field } from '../form.tsx'
import { useAddressQuery, useApi, useList } from '../hooks.ts'
import { amountColumn, type Column } from '../table.tsx'
import {
  actionsColumn,
  Card,
  emptyState,
  ListView,
  LongRead,
  LongTable,
  QueryView,
  Section,
  Tiles,
} from './components.tsx'
import { useWorkspaces } from './context.tsx'
import { dayMs, marginRanges } from './figures.ts'
import { navigate, useConsolePath } from './navigation.ts'
import { FormDialog, useOverlay } from './overlay.tsx'
import { UsageChart } from './usage-chart.tsx'
import { axisText, metricText, startsOf } from './usage-explorer.tsx'

type Margin = AnswerOf<'getMargin'>
type Group = Margin['groups'][number]
type PriceList = ItemOf<'listPriceLists'>

/** A quarter of a year by the day. */
const groupsListed = 100

const groupings = ['day', 'workspace', 'model', 'provider', 'route'].map((value) => ({
  value,
  label: capitalized(value),
}))

export function MarginView({ workspaceId, now }: WorkspacesData) {
  const [query, change] = useAddressQuery(['range', 'by'])
  const range = marginRanges.find(({ value }) => value === query.range)?.value ?? '30d'
  const by = groupings.find(({ value }) => value === query.by)?.value ?? 'day'
  const wanted = marginQuery(range, now, by, workspaceId)
  const report = useApi('getMargin', { query: wanted }, { keepPrevious: true })
  return (
    <>
      <div class="controls">
        <Field
          label="Time range"
          value={range}
          options={marginRanges.map(({ value, label }) => ({ value, label }))}
          onChange={(next) => change({ range: next })}
        />
        <Field label="Group by" value={by} options={groupings} onChange={(next) => change({ by: next })} />
      </div>
      <LongRead query={report} estimate={{ report: 'margin', ...wanted }} />
      <QueryView what="the margin" query={report}>
        {(margin) => <Report margin={margin} by={by} />}
      </QueryView>
      <PriceLists />
    </>
  )
}

function Report({ margin, by }: { readonly margin: Margin; readonly by: string }) {
  const { total, groups, groups_left_off: leftOff } = margin
  const share = shareOf(total)
  return (
    <>
      <Tiles
        tiles={[
          { label: 'Charged', value: <Amount usd={total.charged} />, note: countOf(total.requests, 'request') },
          {
            label: 'Provider cost',
            value: <Amount usd={total.upstream_cost} />,
            note: 'what providers bill for the answers',
          },
          {
            label: 'Failed attempts',
            value: <Amount usd={total.failed_cost} />,
            note: 'what providers probably bill for attempts without an answer',
          },
          {
            label: 'Margin',
            value: <Amount usd={total.margin} />,
            note: share === null ? 'no charges with a known cost' : `${percentText(share)} of charges`,
          },
        ]}
      />
      {total.requests_without_cost > 0 && (
        <p class="hint">
          The margin leaves out {countOf(total.requests_without_cost, 'request')}, charged{' '}
          <Amount usd={total.charged_without_cost} />, on routes without a known cost. Set <code>cost</code> of the
          route in the configuration file.
        </p>
      )}
      {by === 'day' && groups.length > 0 && <MarginChart margin={margin} />}
      <div class="table-box">
        <LongTable
          key={by}
          what={`${by}s`}
          listed={groupsListed}
          class="data-table summary-table"
          caption={`Margin by ${by}, ${by === 'day' ? 'newest' : 'most expensive'} first`}
          columns={marginColumns(by)}
          rows={by === 'day' ? groups.toReversed() : groups}
          keyOf={({ values }) => values.join(' ')}
          empty={emptyState('No requests in this period', 'Requests that were charged appear here.')}
        />
      </div>
      {leftOff > 0 && <p class="hint">{exactCount(leftOff)} more are not shown.</p>}
    </>
  )
}

const shortDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** What was charged and what it cost, by day in UTC. */
function MarginChart({ margin: { from, to, groups } }: { readonly margin: Margin }) {
  const period = { from: Date.parse(from), to: Date.parse(to) }
  const starts = startsOf(period.from, period.to, dayMs, 0)
  const byDay = new Map(groups.map((group) => [group.values[0], group]))
  const dayOf = (start: number) => isoTime(start).slice(0, 10)
  const valuesOf = (name: 'charged' | 'upstream_cost') =>
    starts.map((start) => Number(byDay.get(dayOf(start))?.[name] ?? 0))
  const open = (start: number) =>
    navigate(withQuery('/console/requests', { from: isoTime(start), to: isoTime(start + dayMs) }))
  return (
    <figure class="chart card stack">
      <ul class="plain row">
        <li class="series-name series-1">Charged</li>
        <li class="series-name series-2">Provider cost</li>
      </ul>
      <div class="small-chart">
        <UsageChart
          {...period}
          starts={starts}
          stepMs={dayMs}
          series={[
            { label: 'Charged', values: valuesOf('charged') },
            { label: 'Provider cost', values: valuesOf('upstream_cost') },
          ]}
          isStacked={false}
          before={undefined}
          text={(value) => metricText('spend', value)}
          axisText={(value) => axisText('spend', value)}
          when={(start) => shortDay.format(start)}
          onOpen={open}
        />
      </div>
    </figure>
  )
}

/** Of the charges whose cost is known; null = there are none. */
function shareOf({ charged, charged_without_cost, margin }: Omit<Margin['total'], 'requests'>): number | null {
  const known = Number(charged) - Number(charged_without_cost)
  return known > 0 ? Number(margin) / known : null
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const marginColumns = (by: string): readonly Column<Group>[] => [
  {
    label: by === 'day' ? 'Day (UTC)' : capitalized(by),
    isWhole: by === 'day',
    show: ({ values, names }) => names[0] ?? values[0] ?? `(no ${by})`,
  },
  amountColumn('Charged', ({ charged }) => charged),
  amountColumn('Provider cost', ({ upstream_cost }) => upstream_cost),
  amountColumn('Failed attempts', ({ failed_cost }) => failed_cost),
  amountColumn('Margin', ({ margin }) => margin),
  { label: 'Margin rate', isNumber: true, show: (group) => <Percent share={shareOf(group)} /> },
  { label: 'Requests', isNumber: true, show: ({ requests }) => exactCount(requests) },
]

function PriceLists() {
  const { chosen } = useWorkspaces()
  const paying = useApi('getWorkspace', chosen && { id: chosen.id })
  const lists = useList('listPriceLists', {})
  const { open, ask } = useOverlay()
  const to = useConsolePath()
  const onDone = () => {
    lists.reload()
    paying.reload()
  }
  const remove = ({ name, workspaces }: PriceList) =>
    ask({
      title: `Delete ${name}?`,
      label: 'Delete',
      intro:
        workspaces > 0
          ? 'Workspaces pay by this list. Give them another one first.'
          : 'Its explicit prices are deleted as well. Past charges keep their prices.',
      send: () => callApi('deletePriceList', { list: name }),
      onDone,
    })
  const columns: readonly Column<PriceList>[] = [
    { label: 'Price list', show: ({ name }) => <span class="row-name">{name}</span> },
    { label: 'Markup', isNumber: true, show: ({ markup_percent }) => markupText(markup_percent) },
    { label: 'Prices of its own', isNumber: true, show: ({ prices }) => exactCount(Object.keys(prices).length) },
    { label: 'Workspaces', isNumber: true, show: ({ workspaces }) => exactCount(workspaces) },
    actionsColumn((list) => [
      { label: 'Change', name: `Change ${list.name}`, run: () => open(<ListDialog {...{ list, onDone }} />) },
      { label: 'Delete', name: `Delete ${list.name}`, look: 'danger', run: () => remove(list) },
    ]),
  ]
  return (
    <>
      {chosen && (
        <QueryView what="the workspace" query={paying}>
          {(workspace) => (
            <Card
              title={`What ${workspace.name} pays`}
              action={{
                label: 'Change',
                run: () => open(<AssignDialog {...{ workspace, lists: lists.items, onDone }} />),
              }}
            >
              <p>
                {workspace.price_list === null
                  ? 'The prices of the catalog.'
                  : `The prices of the list ${workspace.price_list}.`}
              </p>
            </Card>
          )}
        </QueryView>
      )}
      <Section
        title="Price lists"
        action={{ label: 'New price list', look: 'primary', run: () => open(<ListDialog onDone={onDone} />) }}
      >
        <ListView
          what="price lists"
          list={lists}
          caption="Price lists"
          columns={columns}
          keyOf={({ name }) => name}
          hrefOf={({ name }) => to(`margin/${name}`)}
          empty={emptyState(
            'No price lists',
            'All workspaces pay the prices of the catalog. A list adds a markup to them, or a discount.',
          )}
        />
        {lists.items.length > 0 && <p class="hint">Open a list to see and change the price of each model.</p>}
      </Section>
    </>
  )
}

/** `+15 %`, `-10 %` */
export function markupText(percent: string): string {
  return `${percent.startsWith('-') ? `−${percent.slice(1)}` : `+${percent}`} %`
}

interface ListDialogProps {
  /** Absent = a new one. */
  readonly list?: PriceList
  onDone(): void
}

export function ListDialog({ list, onDone }: ListDialogProps) {
  return (
    <FormDialog
      title={list ? `Change ${list.name}` : 'New price list'}
      label={list ? 'Change' : 'Create price list'}
      intro="Applies from the next request on. Running requests keep their price."
      initial={{ name: list?.name ?? '', markup_percent: list?.markup_percent ?? '' }}
      rows={[
        {
          name: 'name',
          label: 'Name',
          isRequired: true,
          hint: 'Lower-case letters, digits and hyphens.',
          attributes: {
            readOnly: list !== undefined,
            pattern: '[a-z0-9\\-]{1,40}',
            title: 'Enter at most 40 lower-case letters, digits and hyphens.',
          },
        },
        {
          name: 'markup_percent',
          label: 'Markup on the catalog prices, in percent',
          isRequired: true,
          hint: 'With at most two decimals; -10 is a discount of 10 %.',
          attributes: { pattern: '-?[0-9]+([.][0-9]{1,2})?', title: 'Enter a percentage such as 15 or -10.' },
        },
        {
          name: 'allow_below_cost',
          label: 'Prices below the cost of a route',
          options: [
            { value: '', label: 'Refuse' },
            { value: 'true', label: 'Allow' },
          ],
        },
      ]}
      send={({ name, markup_percent, allow_below_cost }) =>
        callApi('putPriceList', {
          list: name,
          body: { markup_percent, ...(allow_below_cost === 'true' && { allow_below_cost: true }) },
        })
      }
      onDone={onDone}
    />
  )
}

interface AssignDialogProps {
  readonly workspace: AnswerOf<'getWorkspace'>
  readonly lists: readonly PriceList[]
  onDone(): void
}

function AssignDialog({ workspace, lists, onDone }: AssignDialogProps) {
  return (
    <FormDialog
      title={`What ${workspace.name} pays`}
      label="Change"
      intro="Applies from the next request on. Running requests keep their price."
      initial={{ list: workspace.price_list ?? '' }}
      rows={[
        {
          name: 'list',
          label: 'Prices',
          options: [
            { value: '', label: 'The catalog' },
            ...lists.map(({ name, markup_percent }) => ({
              value: name,
              label: `${name} (${markupText(markup_percent)})`,
            })),
          ],
        },
      ]}
      send={({ list }) => callApi('updateWorkspace', { id: workspace.id, body: { price_list: list ?? null } })}
      onDone={onDone}
    />
  )
}
