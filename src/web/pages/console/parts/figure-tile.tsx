/** @jsxImportSource preact */
// One figure with its name, what it is made from, and where its parts can be seen.

import type { ComponentChildren } from 'preact'

export interface FigureTileProps {
  readonly label: string
  readonly value: ComponentChildren
  /** Its window, sample or meaning. */
  readonly note?: ComponentChildren
  readonly href?: string
}

export function FigureTile({ label, value, note, href }: FigureTileProps) {
  return (
    <div class="figure-tile">
      <dt>{href === undefined ? label : <a href={href}>{label}</a>}</dt>
      <dd>
        <strong>{value}</strong>
        {note !== undefined && <small>{note}</small>}
      </dd>
    </div>
  )
}
