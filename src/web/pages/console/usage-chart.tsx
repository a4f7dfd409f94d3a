/** @jsxImportSource preact */
// A chart over time on uPlot: stacked columns or lines, the previous period as a dashed line, partial intervals hatched, a
// card with all series at the pointer, and a click that opens an interval. The page shows the same figures as a table.

import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { chartScriptName } from '../../page-data.ts'

export interface ChartSeries {
  readonly label: string
  /** One for each start; null = nothing was measured. */
  readonly values: readonly (number | null)[]
  /** A token of the stylesheet; absent = by its place. */
  readonly color?: `--${string}`
}

export interface UsageChartProps {
  /** Epoch milliseconds. */
  readonly starts: readonly number[]
  readonly stepMs: number
  readonly series: readonly ChartSeries[]
  readonly isStacked: boolean
  /** Of the previous period, by place. */
  readonly before: readonly (number | null)[] | undefined
  /** `the period before` */
  readonly beforeName?: string | undefined
  /** The window: intervals that it cuts are hatched. */
  readonly from: number
  readonly to: number
  /** At the pointer. */
  text(value: number): string
  /** Beside the grid, shorter. */
  axisText(value: number): string
  /** Beside the plot, for those texts; absent = for amounts. */
  readonly axisPixels?: number
  when(start: number): string
  onOpen(start: number): void
}

/** Beyond it a series has the color of the rest. */
export const chartColors = 7

export function UsageChart(props: UsageChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const latest = useRef(props)
  latest.current = props
  const [at, setAt] = useState<{ readonly index: number; readonly left: number } | undefined>(undefined)
  const { starts, series, before, isStacked } = props
  const key = JSON.stringify([starts, series, before, isStacked, useColorScheme()])
  useEffect(() => {
    const root = place.current
    let chart: uPlot | undefined
    let isLeft = false
    const draw = async () => {
      const Plot = await loadChart()
      if (isLeft || !Plot || !root) return
      chart = new Plot(optionsOf(Plot, root, latest, setAt), dataOf(latest.current), root)
    }
    void draw()
    const observer = new ResizeObserver(() => {
      if (root && chart) chart.setSize({ width: root.clientWidth, height: root.clientHeight })
    })
    if (root) observer.observe(root)
    return () => {
      isLeft = true
      observer.disconnect()
      chart?.destroy()
    }
  }, [key])
  const start = at && starts[at.index]
  return (
    <div class="usage-chart">
      <div class="usage-plot" ref={place} aria-hidden="true" />
      {at && start !== undefined && (
        <div
          class={at.left > 0.6 ? 'usage-card card to-left' : 'usage-card card'}
          style={{ left: `${at.left * 100}%` }}
        >
          <strong>{props.when(start)}</strong>
          {isPartial(props, start) && <small class="muted">partial interval</small>}
          <ul class="plain">
            {isStacked && series.length > 1 && (
              <li>
                <span>Total</span>{' '}
                <b>{props.text(series.reduce((sum, { values }) => sum + (values[at.index] ?? 0), 0))}</b>
              </li>
            )}
            {series.map(({ label, values, color }, place) => {
              const value = values[at.index]
              return value === null || value === undefined || (value === 0 && isStacked) ? null : (
                <li key={label}>
                  <span class={`series-name series-${color?.slice(2) ?? colorOf(place, label)}`}>{label}</span>{' '}
                  <b>{props.text(value)}</b>
                </li>
              )
            })}
            {before?.[at.index] != null && (
              <li>
                <span>{props.beforeName}</span> <b>{props.text(before[at.index] ?? 0)}</b>
              </li>
            )}
          </ul>
        </div>
      )}
    </div>
  )
}

/** Changes with the theme: a canvas keeps the colors that it was drawn with. */
function useColorScheme(): string {
  const [scheme, setScheme] = useState('')
  useEffect(() => {
    const read = () => setScheme(`${document.documentElement.dataset.theme} ${dark.matches}`)
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', read)
    const observer = new MutationObserver(read)
    observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    read()
    return () => {
      dark.removeEventListener('change', read)
      observer.disconnect()
    }
  }, [])
  return scheme
}

export const restLabel = 'others'

export function colorOf(place: number, label: string): string {
  return place >= chartColors || label === restLabel ? 'rest' : String(place + 1)
}

function isPartial({ from, to, stepMs }: UsageChartProps, start: number): boolean {
  return start < from || start + stepMs > to
}

async function loadChart(): Promise<typeof uPlot | undefined> {
  const url = document.querySelector<HTMLMetaElement>(`meta[name=${chartScriptName}]`)?.content
  if (url === undefined) return undefined
  return ((await import(url)) as { readonly default: typeof uPlot }).default
}

/** Stacked columns are drawn from the highest sum to the lowest, each over the one before. */
function dataOf({ starts, series, before, isStacked }: UsageChartProps): uPlot.AlignedData {
  const shown = isStacked
    ? series
        .map((_, place) =>
          starts.map((__, at) => series.slice(0, place + 1).reduce((sum, { values }) => sum + (values[at] ?? 0), 0)),
        )
        .reverse()
    : series.map(({ values }) => [...values])
  return [
    starts.map((start) => start / 1000),
    ...shown,
    starts.map((_, at) => before?.[at] ?? null),
  ] as uPlot.AlignedData
}

const labelPixels = 110
/** Right of the plot. */
const paddingPixels = 8
/** `$0.00012345` */
const amountPixels = 84
const xAxisPixels = 28

type Latest = { readonly current: UsageChartProps }

function optionsOf(
  Plot: typeof uPlot,
  root: HTMLElement,
  latest: Latest,
  setAt: (at: { readonly index: number; readonly left: number } | undefined) => void,
): uPlot.Options {
  const { series, isStacked, stepMs, starts, axisPixels = amountPixels } = latest.current
  const style = getComputedStyle(root)
  // A canvas takes no light-dark(); the browser resolves it on an element.
  const probe = document.createElement('span')
  root.append(probe)
  const token = (name: string): string => {
    probe.style.color = `var(${name})`
    return getComputedStyle(probe).color
  }
  const [ink, line, paper] = [token('--ink-soft'), token('--line'), token('--surface')]
  const bars = Plot.paths.bars?.({ size: [0.8, 64], align: 1 })
  const each = series.map(({ label, color }, place): uPlot.Series => {
    const shade = token(color ?? `--data-${colorOf(place, label)}`)
    return isStacked
      ? { label, fill: shade, width: 0, points: { show: false }, ...(bars && { paths: bars }) }
      : { label, stroke: shade, width: 2, spanGaps: true, points: { size: 5 } }
  })
  const ghost = { label: 'previous', stroke: ink, width: 1.5, dash: [4, 4], spanGaps: true, points: { show: false } }
  const font = `12px ${style.fontFamily}`
  const axis = { stroke: ink, font, ticks: { show: false }, grid: { stroke: line, width: 1 } }
  const options: uPlot.Options = {
    width: root.clientWidth,
    height: root.clientHeight,
    legend: { show: false },
    padding: [12, paddingPixels, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { time: true, range: [(starts[0] ?? 0) / 1000, ((starts.at(-1) ?? 0) + stepMs) / 1000] },
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        size: xAxisPixels,
        grid: { show: false },
        // A label is centered below its place; one at the right edge would be cut.
        values: ({ width, scales: { x } }, splits) => {
          const [first = 0, last = 1] = [x?.min, x?.max]
          const pixels = (width - axisPixels) / (last - first)
          const isWhole = (at: number) => (last - at) * pixels > labelPixels / 2 - paddingPixels
          return splits.map((at) => (isWhole(at) ? latest.current.when(at * 1000) : ''))
        },
        space: labelPixels,
      },
      { ...axis, size: axisPixels, values: (_, splits) => splits.map((value) => latest.current.axisText(value)) },
    ],
    series: [{}, ...(isStacked ? each.reverse() : each), ghost],
    hooks: {
      draw: [(chart) => hatchPartial(chart, latest.current, paper)],
      setCursor: [
        ({ cursor, bbox, width }) => {
          const left = cursor.left ?? -1
          const index = chartIndex(latest.current, cursor.left ?? -1, bbox.width / devicePixelRatio)
          setAt(
            left < 0 || index === undefined
              ? undefined
              : { index, left: (left + bbox.left / devicePixelRatio) / width },
          )
        },
      ],
      ready: [
        (chart) =>
          chart.over.addEventListener('click', (event) => {
            const index = chartIndex(latest.current, event.offsetX, chart.over.clientWidth)
            const start = index === undefined ? undefined : latest.current.starts[index]
            if (start !== undefined) latest.current.onOpen(start)
          }),
      ],
    },
  }
  probe.remove()
  return options
}

/** The interval under the pointer; the library's own index is the nearest start. */
function chartIndex({ starts }: UsageChartProps, left: number, width: number): number | undefined {
  if (left < 0 || width <= 0 || starts.length === 0) return undefined
  return Math.min(starts.length - 1, Math.floor((left / width) * starts.length))
}

/** Stripes in the color of the surface: what is there is not all that the interval will have. */
function hatchPartial(chart: uPlot, props: UsageChartProps, paper: string): void {
  const { ctx, bbox } = chart
  for (const start of props.starts) {
    if (!isPartial(props, start)) continue
    const left = chart.valToPos(start / 1000, 'x', true)
    const right = chart.valToPos((start + props.stepMs) / 1000, 'x', true)
    ctx.save()
    ctx.beginPath()
    ctx.rect(left, bbox.top, right - left, bbox.height)
    ctx.clip()
    ctx.strokeStyle = paper
    ctx.lineWidth = 3 * devicePixelRatio
    ctx.beginPath()
    for (let x = left - bbox.height; x < right; x += 8 * devicePixelRatio) {
      ctx.moveTo(x, bbox.top + bbox.height)
      ctx.lineTo(x + bbox.height, bbox.top)
    }
    ctx.stroke()
    ctx.restore()
  }
}
