/** @jsxImportSource preact */
// Columns over time, drawn as SVG because the page's policy allows no styles from scripts, with the same figures as a
// table for who reads rather than looks.

import { useZone } from './zone.tsx'

export interface ChartColumn {
  /** Where it begins, epoch milliseconds. */
  readonly start: number
  readonly value: number
  /** A part of the value that is shown apart, such as errors. */
  readonly part?: number
  /** The exact value, as it stands in the table. */
  readonly text: string
}

export interface ColumnChartProps {
  readonly title: string
  /** What the marked part of a column is: `of it errors`. */
  readonly partName?: string
  readonly columns: readonly ChartColumn[]
  readonly unit: 'hour' | 'day'
}

const width = 600
const height = 120

export function ColumnChart({ title, partName, columns, unit }: ColumnChartProps) {
  const zone = useZone()
  const when = unit === 'hour' ? zone.hour : zone.day
  const highest = Math.max(...columns.map(({ value }) => value), 0)
  const step = width / Math.max(columns.length, 1)
  const tall = (value: number) => (highest === 0 ? 0 : Math.max(value > 0 ? 1.5 : 0, (value / highest) * height))
  const peak = columns.find(({ value }) => value === highest)
  const first = columns[0]
  const last = columns.at(-1)
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        {partName !== undefined && <small class="chart-legend">{partName}</small>}
        <small>{highest === 0 || !peak ? 'nothing yet' : `highest ${peak.text}, ${when(peak.start)}`}</small>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
        <path class="chart-ground" d={`M0 ${height}H${width}`} />
        {columns.map(({ start, value, part = 0, text }, at) => (
          <g key={start}>
            <title>{`${when(start)}: ${text}`}</title>
            <rect
              class="chart-all"
              x={at * step + step * 0.12}
              y={height - tall(value)}
              width={step * 0.76}
              height={tall(value)}
            />
            {part > 0 && (
              <rect
                class="chart-part"
                x={at * step + step * 0.12}
                y={height - tall(part)}
                width={step * 0.76}
                height={tall(part)}
              />
            )}
          </g>
        ))}
      </svg>
      <div class="chart-ends" aria-hidden="true">
        <small>{first && when(first.start)}</small>
        <small>{last && when(last.start)}</small>
      </div>
      <details>
        <summary>As a table</summary>
        <table class="chart-table">
          <caption class="visually-hidden">{title}</caption>
          <thead>
            <tr>
              <th scope="col">{`${unit === 'hour' ? 'Hour' : 'Day'} from (${zone.name})`}</th>
              <th scope="col">{title}</th>
              {partName !== undefined && <th scope="col">{partName}</th>}
            </tr>
          </thead>
          <tbody>
            {columns
              .filter(({ value }) => value > 0)
              .map(({ start, text, part = 0 }) => (
                <tr key={start}>
                  <th scope="row">{when(start)}</th>
                  <td>{text}</td>
                  {partName !== undefined && <td>{part}</td>}
                </tr>
              ))}
          </tbody>
        </table>
      </details>
    </figure>
  )
}
