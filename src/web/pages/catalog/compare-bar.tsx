/** @jsxImportSource preact */
// What was chosen for a comparison. The checkboxes of the board belong to this form, so that it works without scripts.

export const comparedMax = 4

export interface CompareBarProps {
  readonly chosen: readonly string[]
  clear(): void
}

export function CompareBar({ chosen, clear }: CompareBarProps) {
  return (
    <form id="compare" class={`compare-bar${chosen.length > 0 ? ' filled' : ''}`} method="get" action="/compare">
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
