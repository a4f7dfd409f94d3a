/** @jsxImportSource preact */
// How pages show a model: badges, capabilities, prices, measurements, and how attempts ended.

import { Fragment } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { WholeBucket } from '../../../kernel/usage.ts'
import {
  type CatalogEntry,
  type Figures,
  hasNewPrice,
  isNew,
  isOwnKeyOnly,
  isSandbox,
  type RouteDay,
} from '../../catalog/entry.ts'
import { exactCount, shortMs } from '../../catalog/format.ts'
import { busiestFigures, hasEnoughSamples, missingFigureText, spanText } from '../../catalog/status.ts'

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

interface BusiestProps {
  readonly entry: CatalogEntry
  readonly kind: FigureKind
  /** A dash in place of words: in a long list. */
  readonly isShort?: boolean
}

/** The measurement of the route with the most traffic. */
export function Busiest({ entry, kind, isShort = false }: BusiestProps) {
  const unit = kind === 'first_event_ms' ? 'time' : 'tokens'
  const figures = busiestFigures(entry.routes, kind)
  if (isShort && !hasEnoughSamples(figures)) {
    const text = missingFigureText(figures, isSandbox(entry))
    return (
      <span class="muted" role="img" aria-label={text} title={text}>
        –
      </span>
    )
  }
  return <Measured figures={figures} unit={unit} isSandbox={isSandbox(entry)} />
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

export type AttemptBuckets = RouteDay['hours']

const barHeight = 20

/** A bar for each bucket, the current one last: the failed share in red above the rest, gray without attempts. */
export function AttemptBars({ buckets }: { readonly buckets: AttemptBuckets }) {
  const ok = sumAt(buckets, 0)
  const total = ok + sumAt(buckets, 1)
  const text = total === 0 ? 'no traffic' : `${Math.floor((1000 * ok) / total) / 10} % ok`
  const width = buckets.length * 5
  return (
    <span class="attempt-bars">
      <svg viewBox={`0 0 ${width} ${barHeight}`} width={width} height={barHeight} aria-hidden="true">
        {buckets.map((bucket, at) => {
          const x = at * 5
          if (!bucket) return <rect key={x} class="none" x={x} y={barHeight - 4} width="4" height="4" />
          // A failure is at least two pixels high, so that one in a thousand is visible.
          const share = bucket[1] / (bucket[0] + bucket[1])
          const failed = bucket[1] === 0 ? 0 : Math.max(2, Math.round(share * barHeight))
          return (
            <Fragment key={x}>
              <rect class="ok" x={x} y={failed} width="4" height={barHeight - failed} />
              {failed > 0 && <rect class="failed" x={x} y="0" width="4" height={failed} />}
            </Fragment>
          )
        })}
      </svg>
      <small>
        {text}
        {total > 0 && `, n ${exactCount(total)}`}
      </small>
    </span>
  )
}

function sumAt(buckets: AttemptBuckets, place: 0 | 1): number {
  return buckets.reduce((sum, bucket) => sum + (bucket?.[place] ?? 0), 0)
}
