/** @jsxImportSource preact */
// The figures by model, project or key.

import { exactCount } from '../../../catalog/figures.ts'
import { Amount } from '../parts/amount.tsx'
import type { StatsAnswer } from '../parts/api-answers.ts'
import { withQuery } from '../parts/call-api.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { firstTokenText } from './first-token-text.ts'

type Group = StatsAnswer['groups'][number]

export interface StatGroupsProps {
  readonly stats: StatsAnswer
  /** model, project or key */
  readonly group: string
  choose(group: string): void
}

const figures: readonly Column<Group>[] = [
  { label: 'Spend', isNumber: true, show: ({ cost }) => <Amount usd={cost} /> },
  { label: 'Requests', isNumber: true, show: ({ requests }) => exactCount(requests) },
  { label: 'Errors', isNumber: true, show: ({ errors }) => exactCount(errors) },
  { label: 'In', isNumber: true, show: ({ input_tokens: tokens }) => exactCount(tokens) },
  { label: 'Out', isNumber: true, show: ({ output_tokens: tokens }) => exactCount(tokens) },
  {
    label: 'First token p50',
    isNumber: true,
    show: ({ first_event_ms: first }) =>
      first ? `${firstTokenText(first.p50)} (n = ${exactCount(first.count)})` : '–',
  },
]

export function StatGroups({ stats, group, choose }: StatGroupsProps) {
  const label = { model: 'Model', project: 'Project', key: 'Key' }[group] ?? 'Model'
  const { from, groups, groups_left_off: leftOff } = stats
  const filter = { model: 'model', project: 'project', key: 'key' }[group]
  // The log cannot be asked for requests of no model.
  const hrefOf = ({ id }: Group) =>
    filter === undefined || id === '' ? undefined : withQuery('/console/requests', { from, [filter]: id })
  return (
    <section class="card" aria-labelledby="groups">
      <div class="console-head">
        <h2 id="groups">By {label.toLowerCase()}</h2>
        <label class="field">
          <span>Group by</span>
          <select value={group} onChange={({ currentTarget }) => choose(currentTarget.value)}>
            <option value="model">model</option>
            <option value="project">project</option>
            <option value="key">key</option>
          </select>
        </label>
      </div>
      <DataTable
        caption={`Figures by ${label.toLowerCase()}, what cost most first`}
        columns={[{ label, show: ({ id, name }) => name ?? (id === '' ? 'no known model' : id) }, ...figures]}
        rows={groups}
        keyOf={({ id }) => id}
        hrefOf={hrefOf}
      />
      {leftOff > 0 && <p class="hint">{exactCount(leftOff)} more cost less than these.</p>}
    </section>
  )
}
