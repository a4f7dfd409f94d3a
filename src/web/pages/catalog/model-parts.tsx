/** @jsxImportSource preact */
// How pages show a model: badges, capabilities, prices, measurements, and how attempts ended.

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
import { tagName } from '../../catalog/facets.ts'
import { countOf, exactCount, percentText, shortMs, spanText } from '../../catalog/format.ts'
import { busiestFigures, hasEnoughSamples, missingFigureText } from '../../catalog/status.ts'
import { Amount } from '../components.tsx'
import { amountColumn, type Column } from '../table.tsx'

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
        <li key={tag}>{tagName(tag)}</li>
      ))}
    </ul>
  )
}

const changedShownMs = 8_000

/** A price in USD, or a word such as `free`. A change on an open page is highlighted for a moment. */
export function Money({ amount, decimals }: { readonly amount: string; readonly decimals?: number | undefined }) {
  const last = useRef(amount)
  const [before, setBefore] = useState<string | undefined>(undefined)
  useEffect(() => {
    if (last.current === amount) return
    setBefore(last.current)
    last.current = amount
    const timer = setTimeout(() => setBefore(undefined), changedShownMs)
    return () => clearTimeout(timer)
  }, [amount])
  return (
    <Amount
      usd={amount}
      isExact
      decimals={decimals}
      look={before === undefined ? '' : 'changed'}
      title={before === undefined ? undefined : `was ${before}`}
    />
  )
}

/** A column of prices whose decimal points line up. */
export function priceColumn<Row>(label: string, priceOf: (row: Row) => string): Column<Row> {
  return {
    ...amountColumn(label, priceOf, { isExact: true }),
    show: (row, decimals) => <Money amount={priceOf(row)} decimals={decimals} />,
  }
}

export function priceText({ price }: CatalogEntry, kind: WholeBucket): string {
  return price === null ? '–' : price === 'free' ? 'free' : price[kind]
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
  if (isShort && (isSandbox(entry) || !hasEnoughSamples(figures))) {
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
  if (isUnmeasured || !hasEnoughSamples(figures)) {
    return (
      <span
        class="muted missing"
        title={isUnmeasured ? 'The sandbox is not measured: no provider is called.' : undefined}
      >
        {missingFigureText(figures, isUnmeasured)}
      </span>
    )
  }
  const text = (value: number) => (unit === 'time' ? shortMs(value) : `${exactCount(value)}/s`)
  return (
    <span class="measured" title={`Median; p95 is ${text(figures.p95)}. Measured by this gateway.`}>
      <span class="value">{text(figures.p50)}</span>
      <small>
        {countOf(figures.samples, 'call')} in the last {spanText(figures.window_ms)}
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
  const text = total === 0 ? 'no traffic' : `${percentText(ok / total)} ok`
  const width = buckets.length * 5
  return (
    <span class="attempt-bars">
      <svg viewBox={`0 0 ${width} ${barHeight}`} width={width} height={barHeight} aria-hidden="true">
        {(['none', 'ok', 'failed'] as const).map((kind) => (
          <path key={kind} class={kind} d={buckets.map((bucket, at) => barPath(kind, bucket, at * 5)).join('')} />
        ))}
      </svg>
      <small>
        {text}
        {total > 0 && `, ${countOf(total, 'attempt')}`}
      </small>
    </span>
  )
}

/** A part of one bar. All bars of a kind are one element, because a page can have a hundred rows of them. */
function barPath(kind: 'none' | 'ok' | 'failed', bucket: AttemptBuckets[number], x: number): string {
  const rect = (y: number, height: number) => (height > 0 ? `M${x} ${y}h4v${height}h-4z` : '')
  if (!bucket) return kind === 'none' ? rect(barHeight - 4, 4) : ''
  const [ok, failures] = bucket
  // A failure is at least two pixels high, so that one in a thousand is visible.
  const failed = failures === 0 ? 0 : Math.max(2, Math.round((failures / (ok + failures)) * barHeight))
  if (kind === 'none') return ''
  return kind === 'ok' ? rect(failed, barHeight - failed) : rect(0, failed)
}

function sumAt(buckets: AttemptBuckets, place: 0 | 1): number {
  return buckets.reduce((sum, bucket) => sum + (bucket?.[place] ?? 0), 0)
}
