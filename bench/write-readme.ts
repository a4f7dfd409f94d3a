// Writes the generated parts of bench/README.md and the plots from the files in bench/results. What stands between a
// `<!-- generated: name -->` and its `<!-- end -->` is its; everything else is a person's.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CELLS } from './cells.ts'
import { renderVerdicts } from './limits.ts'
import { type Bars, drawBars, drawLines } from './plot.ts'
import {
  type GrowthReport,
  machineLine,
  RESULTS_FOLDER,
  type RequestsReport,
  readResult,
  type StreamsReport,
} from './results.ts'
import type { Metric } from './summary.ts'
import { aligned, renderNotes, renderTable } from './table.ts'

export function writeReadme(): void {
  const path = join(import.meta.dir, 'README.md')
  let readme = readFileSync(path, 'utf8')
  const requests = readResult('requests')
  const streams = readResult('streams')
  const growth = readResult('growth')
  if (requests) readme = replaced(readme, 'requests', requestsPart(requests))
  if (streams) readme = replaced(readme, 'streams', streamsPart(streams))
  if (growth) readme = replaced(readme, 'growth', growthPart(growth))
  writeFileSync(path, readme)
}

export function replaced(readme: string, name: string, part: string): string {
  const pattern = new RegExp(`(<!-- generated: ${name} -->\n)[^]*?(<!-- end -->)`)
  return readme.replace(pattern, (_all, start: string, end: string) => `${start}\n${part}\n\n${end}`)
}

function requestsPart(report: RequestsReport): string {
  const measured = CELLS.filter((cell) => report.cells.includes(cell.id))
  const facts = [
    `${machineLine(report)}; ${report.method}`,
    report.versions.join(' · '),
    ...report.absent.map((line) => `skipped ${line}`),
  ]
  const whole = (cells: typeof measured) => {
    const shown = new Set(cells.map(({ id }) => id))
    const rows = report.rows.filter((row) => shown.has(row.cell))
    const notes = [...renderNotes(rows, report.refusals), ...(report.cold ?? []), ...renderVerdicts(report.verdicts)]
    return [...facts, '', renderTable(report.rows, cells, report.refusals), '', ...notes].join('\n')
  }
  writeFileSync(join(RESULTS_FOLDER, 'requests.txt'), `${whole(measured)}\n`)
  const plots = [
    plotBars(report, 'cpu-per-request', 'CPU of one request (chat → chat, 32 connections, 1 KB)', 'µs', 'chat', [
      'cpuMicrosPerRequest',
    ]),
    plotBars(report, 'cpu-per-event', 'CPU of one event of a stream (chat → chat)', 'µs', 'chat-stream', [
      'cpuMicrosPerEvent',
    ]),
    plotBars(report, 'open-loop', 'Latency at 1,000 requests begun per second', 'ms', 'chat-open', ['p50Ms', 'p99Ms']),
  ]
  const usual = measured.filter((cell) => cell.byDefault)
  return [...plots.filter((plot) => plot !== ''), fenced(whole(usual)), WHOLE_TABLE].join('\n\n')
}

const WHOLE_TABLE =
  'Every measured cell: [results/requests.txt](results/requests.txt), [results/requests.json](results/requests.json).'

function plotBars(
  report: RequestsReport,
  name: string,
  title: string,
  unit: string,
  cell: string,
  metrics: readonly Metric[],
): string {
  const bars: Bars['bars'] = report.rows
    .filter((row) => row.cell === cell && (row.contender !== 'direct' || metrics.length > 1))
    .map((row) => ({
      label: row.contender,
      values: metrics.map((metric) => row.figures[metric]?.value ?? 0),
      isOurs: row.contender === 'tollgate',
    }))
  if (bars.length === 0) return ''
  const values = metrics.map((metric) => (metric === 'p50Ms' ? 'p50' : metric === 'p99Ms' ? 'p99' : 'CPU'))
  writeFileSync(join(RESULTS_FOLDER, `${name}.svg`), drawBars({ title, unit, values, bars }))
  return `![${title}](results/${name}.svg)`
}

function streamsPart(report: StreamsReport): string {
  const streams = aligned([
    ['', 'streams', 'errors', 'RSS before', 'at', 'after MB', 'KB/stream'],
    ...report.rows.map((row) => [
      row.name,
      row.streams === row.wanted ? String(row.streams) : `${row.streams} of ${row.wanted}`,
      String(row.errors),
      row.rssMegabytesBefore.toFixed(0),
      row.rssMegabytesAt.toFixed(0),
      row.rssMegabytesAfter.toFixed(0),
      row.kilobytesPerStream.toFixed(1),
    ]),
  ])
  const beside = aligned([
    ['', 'p50 ms', 'p99 ms', 'errors'],
    ...report.beside.map((row) => [row.name, shown(row.p50Ms), shown(row.p99Ms), String(row.errors)]),
  ])
  return fenced([machineLine(report), '', streams, '', beside, '', ...report.verdicts, ...report.notes].join('\n'))
}

function growthPart(report: GrowthReport): string {
  const title = 'CPU of one request as things grow'
  const series = report.curves
    .filter(({ most }) => most !== undefined)
    .map(({ name, points }) => ({ name, points: points.map(({ size, ratio }) => ({ x: size, y: ratio })) }))
  const plots: string[] = []
  if (series.length > 0) {
    const yUnit = 'ratio to the smallest'
    const svg = drawLines({ title, xUnit: 'how many, logarithmic', yUnit, limit: 1.1, series })
    writeFileSync(join(RESULTS_FOLDER, 'growth.svg'), svg)
    plots.push(`![${title}](results/growth.svg)`)
  }
  const lines = report.curves.map((curve) => [
    curve.name,
    ...curve.points.map(
      ({ size, cpuMicros, ratio }) => `${size.toLocaleString('en')}: ${cpuMicros.toFixed(0)} µs ${ratio.toFixed(2)} ×`,
    ),
    curve.most === undefined ? '' : (curve.points.at(-1)?.ratio ?? 0) <= curve.most ? 'kept' : `broken (${curve.most})`,
  ])
  const table = lines.map((line) => line.filter((text) => text !== '').join(' · ')).join('\n')
  return [...plots, fenced(`${machineLine(report)}; ${report.method}\n\n${table}`)].join('\n\n')
}

function shown(value: number | null): string {
  return value === null ? '–' : value.toFixed(2)
}

function fenced(text: string): string {
  return `\`\`\`\n${text}\n\`\`\``
}
