/** @jsxImportSource preact */
// Prices and margin, for operators: what was earned, and the price lists by which workspaces pay.

import { useState } from 'preact/hooks'
import { isoTime } from '../../../kernel/clock.ts'
import { exactCount, usdText } from '../../catalog/format.ts'
import type { WorkspacesData } from '../../page-data.ts'
import { type AnswerOf, callApi, type ItemOf } from '../api.ts'
import { Field } from '../form.tsx'
import { useApi, useList } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { actionsColumn, Card, emptyState, ListView, LongRead, QueryView, Section, Tiles } from './components.tsx'
import { useWorkspaces } from './context.tsx'
import { dayMs } from './figures.ts'
import { FormDialog, useOverlay } from './overlay.tsx'

type Margin = AnswerOf<'getMargin'>
type Group = Margin['groups'][number]
type PriceList = ItemOf<'listPriceLists'>

const periods = [7, 30, 90].map((days) => ({ value: String(days), label: `Last ${days} days` }))
const groupings = ['day', 'workspace', 'model', 'provider', 'route'].map((value) => ({ value, label: value }))

export function MarginView({ workspaceId, now }: WorkspacesData) {
  const [days, setDays] = useState('30')
  const [by, setBy] = useState('day')
  const from = isoTime(now - Number(days) * dayMs)
  const wanted = { from, group_by: by, workspace_id: workspaceId }
  const query = useApi('getMargin', { query: wanted }, { keepPrevious: true })
  return (
    <>
      <div class="row">
        <Field label="Time range" value={days} options={periods} onChange={setDays} />
        <Field label="Group by" value={by} options={groupings} onChange={setBy} />
      </div>
      <LongRead query={query} estimate={{ report: 'margin', ...wanted }} />
      <QueryView what="the margin" query={query}>
        {({ total, groups, groups_left_off }) => (
          <>
            <Tiles
              tiles={[
                { label: 'Charged', value: usdText(total.charged), note: `${exactCount(total.requests)} requests` },
                { label: 'Provider cost', value: usdText(total.upstream_cost), note: 'at the cost of the routes' },
                { label: 'Margin', value: usdText(total.margin), note: shareOf(total) },
              ]}
            />
            {total.requests_without_cost > 0 && (
              <p class="hint">
                The margin leaves out {exactCount(total.requests_without_cost)} requests, charged{' '}
                {usdText(total.charged_without_cost)}, on routes without a known cost. Set <code>cost</code> of the
                route in the configuration file.
              </p>
            )}
            <DataTable
              caption={`Margin by ${by}`}
              columns={marginColumns(by)}
              rows={groups}
              keyOf={({ values }) => values.join(' ')}
              empty={emptyState('No requests in this period', 'Requests that were charged appear here.')}
            />
            {groups_left_off > 0 && <p class="hint">{exactCount(groups_left_off)} more are not shown.</p>}
          </>
        )}
      </QueryView>
      <PriceLists />
    </>
  )
}

/** Of the charges whose cost is known. */
function shareOf({ charged, charged_without_cost, margin }: Margin['total']): string {
  const known = Number(charged) - Number(charged_without_cost)
  return known > 0 ? `${((100 * Number(margin)) / known).toFixed(1)} % of charges` : 'no charges with a known cost'
}

const marginColumns = (by: string): readonly Column<Group>[] => [
  {
    label: by === 'day' ? 'Day (UTC)' : by.charAt(0).toUpperCase() + by.slice(1),
    show: ({ values, names }) => names[0] ?? values[0] ?? 'none',
  },
  { label: 'Requests', isNumber: true, show: ({ requests }) => exactCount(requests) },
  { label: 'Charged', isNumber: true, show: ({ charged }) => usdText(charged) },
  { label: 'Provider cost', isNumber: true, show: ({ upstream_cost }) => usdText(upstream_cost) },
  { label: 'Margin', isNumber: true, show: ({ margin }) => usdText(margin) },
]

function PriceLists() {
  const { chosen } = useWorkspaces()
  const paying = useApi('getWorkspace', chosen && { id: chosen.id })
  const lists = useList('listPriceLists', {})
  const { open, ask } = useOverlay()
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
    { label: 'Markup', isNumber: true, show: ({ markup_percent }) => `${markup_percent} %` },
    { label: 'Explicit prices', show: ({ prices }) => Object.keys(prices).join(', ') || 'none' },
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
          empty={emptyState(
            'No price lists',
            'All workspaces pay the prices of the catalog. A list adds a markup to them, or a discount.',
          )}
        />
        <p class="hint">
          Set the price of a single model in a list with <code>tollgate prices set MODEL --list NAME</code>.
        </p>
      </Section>
    </>
  )
}

interface ListDialogProps {
  /** Absent = a new one. */
  readonly list?: PriceList
  onDone(): void
}

function ListDialog({ list, onDone }: ListDialogProps) {
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
          attributes: { readOnly: list !== undefined },
        },
        {
          name: 'markup_percent',
          label: 'Markup on the catalog prices, in percent',
          isRequired: true,
          hint: 'With at most two decimals; -10 is a discount of 10 %.',
        },
        {
          name: 'below_cost',
          label: 'Prices below the cost of a route',
          options: [
            { value: '', label: 'Refuse' },
            { value: 'allow', label: 'Allow' },
          ],
        },
      ]}
      send={({ name, markup_percent, below_cost }) =>
        callApi('putPriceList', {
          list: name,
          body: { markup_percent, ...(below_cost === 'allow' && { allow_below_cost: true }) },
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
            ...lists.map(({ name, markup_percent }) => ({ value: name, label: `${name} (${markup_percent} %)` })),
          ],
        },
      ]}
      send={({ list }) => callApi('updateWorkspace', { id: workspace.id, body: { price_list: list ?? null } })}
      onDone={onDone}
    />
  )
}
