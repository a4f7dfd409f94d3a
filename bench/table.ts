// Prints the summary for people: one table, every figure with its ratio to the bare proxy beside it, and below it what
// went wrong and what a contender cannot do.

import { type Cell, describeCell } from './cells.ts'
import type { Refusal } from './probe.ts'
import type { Figure, Metric, Row } from './summary.ts'

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

export function renderTable(rows: readonly Row[], cells: readonly Cell[], refusals: readonly Refusal[]): string {
  const header = ['', ...COLUMNS.flatMap((column) => [column.title, '×'])]
  const lines: string[][] = [header]
  for (const cell of cells) {
    lines.push([describeCell(cell)])
    for (const row of rows) {
      if (row.cell !== cell.id) continue
      const mark = (row.errors > 0 ? ' !' : '') + (row.unanswered > 0 ? ' …' : '')
      const figures = COLUMNS.flatMap((column) => figureCells(row.figures[column.metric], column.decimals))
      lines.push([`  ${row.contender}${mark}`, ...figures])
    }
    for (const [at, refusal] of refusals.entries()) {
      if (!refusal.cells.includes(cell.id)) continue
      lines.push([`  ${refusal.contender} (${at + 1})`, ...COLUMNS.flatMap(() => ['–', ''])])
    }
  }
  return aligned(lines)
}

/** The notes behind the marks of the table. */
export function renderNotes(rows: readonly Row[], refusals: readonly Refusal[]): string[] {
  return [
    ...refusals.map(({ contender, reason }, at) => `(${at + 1}) ${contender}: ${reason}`),
    ...rows
      .filter((row) => row.errors > 0)
      .map((row) => `! ${row.cell}, ${row.contender}: ${row.errors} errors, first: ${row.firstError}`),
    ...rows
      .filter((row) => row.unanswered > 0)
      .map(
        (row) => `… ${row.cell}, ${row.contender}: ${row.unanswered} without an answer 5 s later, latencies too low`,
      ),
  ]
}

function figureCells(figure: Figure | undefined, decimals: number): [string, string] {
  const shown = (value: number | null | undefined, places: number, without: string) =>
    typeof value === 'number' && Number.isFinite(value) ? value.toFixed(places) : without
  return [shown(figure?.value, decimals, '–'), shown(figure?.ratio, 2, '')]
}

/** First column to the left, figures to the right; a line of one cell is a heading and widens nothing. */
export function aligned(lines: readonly string[][]): string {
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
