/** @jsxImportSource preact */
// What was chosen for a comparison. The checkboxes of the board belong to this form, so that it works without scripts.

import { comparedMax } from '../../catalog/query.ts'

export interface CompareBarProps {
  readonly chosen: readonly string[]
  /** Of them, those that a filter keeps off the board: without a box there, they come along from here. */
  readonly unseen: readonly string[]
  clear(): void
}

export function CompareBar({ chosen, unseen, clear }: CompareBarProps) {
  return (
    <form id="compare" class={`compare-bar${chosen.length > 0 ? ' filled' : ''}`} method="get" action="/compare">
      {unseen.map((id) => (
        <input key={id} type="hidden" name="m" value={id} />
      ))}
      <span role="status">
        {chosen.length === 0 ? 'Tick up to four models to compare them.' : `${chosen.length} of ${comparedMax} chosen`}
      </span>
      {chosen.length > 0 && (
        <button type="button" class="button quiet" onClick={clear}>
          Clear
        </button>
      )}
      <button type="submit" class="button">
        Compare
      </button>
    </form>
  )
}
