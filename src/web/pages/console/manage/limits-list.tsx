/** @jsxImportSource preact */
// The limits that hold for something, and whose each is.

import { effectiveLimits, type LimitHolder } from './effective-limits.ts'
import { shownLimit } from './shown-values.ts'

export interface LimitsListProps {
  /** The thing itself first: what it sets by itself needs no owner beside it. */
  readonly holders: readonly LimitHolder[]
}

export function LimitsList({ holders }: LimitsListProps) {
  const limits = effectiveLimits(holders)
  if (limits.length === 0) return <span class="muted">none</span>
  return (
    <ul class="limits">
      {limits.map(({ name, value, who }) => (
        <li key={name}>
          {shownLimit(name, value)} {who !== holders[0]?.who && <small>by {who}</small>}
        </li>
      ))}
    </ul>
  )
}
