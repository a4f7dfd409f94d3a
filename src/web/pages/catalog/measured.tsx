/** @jsxImportSource preact */
// A measurement with what it rests on. Without enough of it the number is left out, and the page says why.

import type { Figures } from '../../catalog/entry.ts'
import { shortMs } from '../../catalog/figures.ts'
import { isTelling, missingFigure, spanText } from '../../catalog/standing.ts'

export interface MeasuredProps {
  readonly figures: Figures | null
  readonly unit: 'time' | 'tokens'
  /** All of it is served from inside the gateway. */
  readonly isRehearsed: boolean
}

export function Measured({ figures, unit, isRehearsed }: MeasuredProps) {
  if (!isTelling(figures)) {
    return (
      <span class="muted missing" title={isRehearsed ? 'The sandbox is not measured: nobody is called.' : undefined}>
        {missingFigure(figures, isRehearsed)}
      </span>
    )
  }
  const value = unit === 'time' ? shortMs(figures.p50) : `${figures.p50}/s`
  const p95 = unit === 'time' ? shortMs(figures.p95) : `${figures.p95}/s`
  return (
    <span class="measured" title={`Median; 95 % are within ${p95}. Measured by this gateway.`}>
      <span class="value">{value}</span>
      <small>
        n {figures.samples}, {spanText(figures.window_ms)}
      </small>
    </span>
  )
}
