/** @jsxImportSource preact */
// How the catalog's pages show a model: badges, capabilities, prices and measurements.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { WholeBucket } from '../../../kernel/usage.ts'
import { type CatalogEntry, type Figures, hasNewPrice, isNew, isSandbox } from '../../catalog/entry.ts'
import { shortMs } from '../../catalog/format.ts'
import { busiestFigures, hasEnoughSamples, missingFigureText, spanText } from '../../catalog/status.ts'
import { isOwnKeyOnly } from '../../catalog/usable-models.ts'

export interface BadgesProps {
  readonly entry: CatalogEntry
  /** `YYYY-MM-DD` in UTC. */
  readonly today: string
}

export function Badges({ entry, today }: BadgesProps) {
  const { released, retires } = entry
  return (
    <>
      {isNew(entry, today) && (
        <span class="badge ok" title={`Released ${released}`}>
          new
        </span>
      )}
      {hasNewPrice(entry, today) && <span class="badge warn">price changed today</span>}
      {retires !== undefined && (
        <span class="badge warn" title={`Its creator ${retires > today ? 'retires' : 'retired'} it on ${retires}`}>
          deprecated
        </span>
      )}
      {isSandbox(entry) && (
        <span class="badge" title="Answered by the gateway itself; no provider is called">
          sandbox
        </span>
      )}
      {entry.price === 'free' && <span class="badge">free</span>}
      {entry.own_key && (
        <span class="badge" title="Served with the workspace’s own provider key">
          own key
        </span>
      )}
      {entry.price === null && !isOwnKeyOnly(entry) && <span class="badge danger">no price (not callable)</span>}
    </>
  )
}

export function Capabilities({ tags }: { readonly tags: readonly string[] }) {
  if (tags.length === 0) return <span class="muted">–</span>
  return (
    <ul class="plain tags row" aria-label="Capabilities">
      {tags.map((tag) => (
        <li key={tag}>{tag}</li>
      ))}
    </ul>
  )
}

const changedShownMs = 8_000

/**
 * A decimal amount of USD, or a word such as `free`. Decimal points line up in a column; a change on an open page is
 * highlighted for a moment.
 */
export function Money({ amount }: { readonly amount: string }) {
  const last = useRef(amount)
  const [before, setBefore] = useState<string | undefined>(undefined)
  useEffect(() => {
    if (last.current === amount) return
    setBefore(last.current)
    last.current = amount
    const timer = setTimeout(() => setBefore(undefined), changedShownMs)
    return () => clearTimeout(timer)
  }, [amount])
  const point = amount.indexOf('.')
  const changed = before === undefined ? '' : ' changed'
  if (point < 0) return <span class={`money word${changed}`}>{amount}</span>
  return (
    <span class={`money${changed}`} title={before === undefined ? undefined : `was ${before}`}>
      <span class="whole">${amount.slice(0, point)}</span>
      <span class="fraction">{amount.slice(point)}</span>
    </span>
  )
}

export function ModelPrice({ entry, kind }: { readonly entry: CatalogEntry; readonly kind: WholeBucket }) {
  const { price } = entry
  return <Money amount={price === null ? '–' : price === 'free' ? 'free' : price[kind]} />
}

type FigureKind = 'first_event_ms' | 'tokens_per_second'

/** The measurement of the route with the most traffic. */
export function Busiest({ entry, kind }: { readonly entry: CatalogEntry; readonly kind: FigureKind }) {
  const unit = kind === 'first_event_ms' ? 'time' : 'tokens'
  return <Measured figures={busiestFigures(entry.routes, kind)} unit={unit} isSandbox={isSandbox(entry)} />
}

export interface MeasuredProps {
  readonly figures: Figures | null
  readonly unit: 'time' | 'tokens'
  readonly isSandbox: boolean
}

/** A median with its sample size; without enough samples, why there is no number. */
export function Measured({ figures, unit, isSandbox: isUnmeasured }: MeasuredProps) {
  if (!hasEnoughSamples(figures)) {
    return (
      <span
        class="muted missing"
        title={isUnmeasured ? 'The sandbox is not measured: no provider is called.' : undefined}
      >
        {missingFigureText(figures, isUnmeasured)}
      </span>
    )
  }
  const text = (value: number) => (unit === 'time' ? shortMs(value) : `${value}/s`)
  return (
    <span class="measured" title={`Median; p95 is ${text(figures.p95)}. Measured by this gateway.`}>
      <span class="value">{text(figures.p50)}</span>
      <small>
        n {figures.samples}, {spanText(figures.window_ms)}
      </small>
    </span>
  )
}
