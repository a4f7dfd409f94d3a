// Prints the summary for people: one table, every figure with its ratio to the bare proxy beside it, and below it the
// limits this project has set itself.

import type { Cell } from './cells.ts'
import { type Figure, type Measurement, type Metric, type Row, ratioBetween } from './summary.ts'

interface Column {
  readonly title: string
  readonly metric: Metric
  readonly decimals: number
}

const COLUMNS: readonly Column[] = [
  { title: 'requests/s', metric: 'requestsPerSecond', decimals: 0 },
  { title: 'CPU µs/request', metric: 'cpuMicrosPerRequest', decimals: 0 },
  { title: 'added p50 ms', metric: 'addedP50Ms', decimals: 2 },
  { title: 'added p99 ms', metric: 'addedP99Ms', decimals: 2 },
  { title: 'CPU µs/event', metric: 'cpuMicrosPerEvent', decimals: 1 },
  { title: 'events/read', metric: 'eventsPerRead', decimals: 2 },
  { title: 'RSS MB', metric: 'rssMegabytes', decimals: 0 },
]

interface Limit {
  readonly metric: Metric
  readonly cell: string
  /** `tollgate` where nothing is said. */
  readonly of?: string
  readonly to: string
  /** Undefined for a figure that is shown without being held to a limit. */
  readonly most?: number
  readonly text: string
}

const LIMITS: readonly Limit[] = [
  { metric: 'cpuMicrosPerRequest', cell: 'chat', to: 'bare', most: 1.5, text: 'CPU per request' },
  { metric: 'cpuMicrosPerRequest', cell: 'chat', to: 'unbilled', most: 1.25, text: 'CPU per request, billed' },
  {
    metric: 'requestsPerSecond',
    cell: 'chat',
    of: 'many-wallets',
    to: 'tollgate',
    most: 1 / 0.7,
    text: 'Throughput of many wallets against one hot wallet',
  },
  { metric: 'cpuMicrosPerEvent', cell: 'chat-stream', to: 'bare', most: 1.3, text: 'CPU per event, 100-event streams' },
  {
    metric: 'cpuMicrosPerEvent',
    cell: 'chat-stream',
    to: 'bare-rewrite',
    most: 1.3,
    text: 'CPU per event, 100-event streams',
  },
  { metric: 'cpuMicrosPerEvent', cell: 'chat-long-stream', to: 'bare', text: 'CPU per event, 1,000-event streams' },
  {
    metric: 'cpuMicrosPerEvent',
    cell: 'chat-long-stream',
    to: 'bare-rewrite',
    text: 'CPU per event, 1,000-event streams',
  },
  {
    metric: 'cpuMicrosPerRequest',
    cell: 'chat-20k',
    of: 'translated',
    to: 'tollgate',
    most: 3,
    text: 'CPU per request of 20 KB, translated',
  },
  {
    metric: 'cpuMicrosPerEvent',
    cell: 'chat-stream',
    of: 'translated',
    to: 'tollgate',
    most: 2,
    text: 'CPU per event, 100-event streams, translated',
  },
]

export function renderTable(rows: readonly Row[], cells: readonly Cell[]): string {
  const header = ['', ...COLUMNS.flatMap((column) => [column.title, '×'])]
  const lines: string[][] = [header]
  for (const cell of cells) {
    lines.push([describe(cell)])
    for (const row of rows) {
      if (row.cell !== cell.id) continue
      const label = row.errors > 0 ? `  ${row.contender} !` : `  ${row.contender}`
      lines.push([label, ...COLUMNS.flatMap((column) => figureCells(row.figures[column.metric], column.decimals))])
    }
  }
  return aligned(lines)
}

/** What went wrong in rows marked with `!`. */
export function renderErrors(rows: readonly Row[]): string[] {
  return rows
    .filter((row) => row.errors > 0)
    .map((row) => `! ${row.cell}, ${row.contender}: ${row.errors} errors, first: ${row.firstError}`)
}

export function renderLimits(measurements: readonly Measurement[], cells: readonly Cell[]): string[] {
  const lines: string[] = []
  for (const limit of LIMITS) {
    const cell = cells.find((candidate) => candidate.id === limit.cell)
    if (!cell) continue
    const ratio = ratioBetween(measurements, cell, limit.metric, { of: limit.of ?? 'tollgate', to: limit.to })
    const verdict = limit.most === undefined ? '' : `, limit ${limit.most}: ${ratio <= limit.most ? 'kept' : 'broken'}`
    if (Number.isFinite(ratio)) lines.push(`${limit.text}: ${ratio.toFixed(2)} × ${limit.to}${verdict}`)
  }
  return lines
}

function describe(cell: Cell): string {
  const reply = cell.events > 0 ? `streams of ${cell.events} events` : 'JSON'
  return `${cell.id}: ${reply}, ${cell.connections} connections, ${cell.promptBytes / 1000} KB prompt`
}

function figureCells(figure: Figure, decimals: number): [string, string] {
  return [
    Number.isFinite(figure.value) ? figure.value.toFixed(decimals) : '–',
    Number.isFinite(figure.ratio) ? figure.ratio.toFixed(2) : '',
  ]
}

/** First column to the left, figures to the right; a line of one cell is a heading and widens nothing. */
function aligned(lines: readonly string[][]): string {
  const widths: number[] = []
  for (const line of lines) {
    if (line.length === 1) continue
    line.forEach((text, index) => {
      widths[index] = Math.max(widths[index] ?? 0, text.length)
    })
  }
  return lines
    .map((line) => {
      if (line.length === 1) return line[0] ?? ''
      return line
        .map((text, index) => (index === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[index] ?? 0)))
        .join('  ')
        .trimEnd()
    })
    .join('\n')
}
