#!/usr/bin/env node
// Tables from files of results, on standard output: node report.js results/*.jsonl. With --readme they are written into
// README.md, and the plot beside it.

import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { attacks } from './attacks.js'
import { dollars, nanos } from './money.js'

/**
 * @typedef {object} Row
 * @property {string} gateway
 * @property {string} attack
 * @property {string} [skipped] why it was not run
 * @property {string} [failed] why it had no end
 * @property {string} [version]
 * @property {string} [setting]
 * @property {string} served
 * @property {string} delivered
 * @property {string} spent
 * @property {string} allowed
 * @property {string} over
 * @property {string} servedOver
 * @property {string} uncharged
 * @property {string} twice
 */

const here = dirname(fileURLToPath(import.meta.url))
const readme = join(here, 'README.md')
const begin = '<!-- Results: written by report.js -->'
const end = '<!-- End of the results -->'
/** Of the plot. */
const size = { row: 22, left: 150, width: 760, top: 40 }

const { values, positionals: files } = parseArgs({ allowPositionals: true, options: { readme: { type: 'boolean' } } })
if (files.length === 0) {
  console.error('Usage: node report.js [--readme] results/*.jsonl')
  process.exit(2)
}
/** @type {Row[]} */
const rows = files.flatMap((file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line)),
)
/** @type {Row[]} */
const ended = rows.filter(({ skipped, failed }) => skipped === undefined && failed === undefined)
const names = [...new Set(rows.map(({ gateway }) => gateway))]
if (values.readme) writeReadme()
else console.log(report())

function writeReadme() {
  const text = readFileSync(readme, 'utf8')
  const [head, rest] = text.split(begin)
  const tail = rest?.split(end)[1]
  if (head === undefined || tail === undefined) throw new Error(`${readme} has no place for results`)
  const plotLink = '![What the provider served in each run, in percent of the limit](served.svg)'
  writeFileSync(readme, `${head}${begin}\n\n${plotLink}\n\n${report()}\n${end}${tail}`)
  writeFileSync(join(here, 'served.svg'), plot())
}

function report() {
  const details = names.map(
    (name) => `<details><summary>${name}: every attack</summary>\n\n${gatewayTable(name)}\n</details>\n`,
  )
  return [summary(), comparison(), ...details].join('\n')
}

function summary() {
  const lines = names.map((name) => {
    const ran = ended.filter(({ gateway }) => gateway === name)
    const worst = (/** @type {'over' | 'servedOver' | 'uncharged' | 'twice'} */ field) =>
      dollars(ran.map((row) => nanos(row[field])).reduce((most, amount) => (amount > most ? amount : most), 0n))
    const { setting = '' } = ran[0] ?? {}
    const versions = [...new Set(ran.map(({ version = '' }) => version))].sort().join(', ')
    return `| ${name} | ${versions} | ${setting} | ${runsOf(ran)} | ${worst('over')} | ${worst('uncharged')} | ${worst('twice')} | ${worst('servedOver')} |`
  })
  return `| gateway | version | setting | attacks × runs | charged over the limit | delivered, not charged | charged, not served | served over the limit |
|---|---|---|---|---|---|---|---|
${lines.join('\n')}

Each amount is the worst of all runs, in dollars, of a limit of $1.00.
`
}

/** @param {Row[]} ran */
function runsOf(ran) {
  const kinds = [...new Set(ran.map(({ attack }) => attack))]
  const counts = kinds.map((kind) => ran.filter(({ attack }) => attack === kind).length).sort((a, b) => a - b)
  const [least, most] = [counts[0] ?? 0, counts.at(-1) ?? 0]
  return `${kinds.length} × ${least === most ? least : `${least}–${most}`}`
}

/** The worst run of each attack on each gateway. */
function comparison() {
  const lines = Object.entries(attacks).flatMap(([attack, { title }]) => {
    const cells = names.map((name) => {
      const runs = ended.filter((row) => row.gateway === name && row.attack === attack)
      const [worst] = runs.sort((a, b) => faultOf(b) - faultOf(a) || Number(b.served) - Number(a.served))
      if (!worst)
        return rows.some((row) => row.gateway === name && row.attack === attack && row.failed) ? 'failed' : '–'
      const text = `${cents(nanos(worst.served))} / ${cents(nanos(worst.spent))}`
      return faultOf(worst) > 0 ? `**${text}**` : text
    })
    return cells.every((cell) => cell === '–') ? [] : [`| ${title} | ${cells.join(' | ')} |`]
  })
  return `Served / charged in the worst run of each attack, in dollars; bold: charged over the limit, delivered and not charged, or charged and not served; –: not run.

| attack | ${names.join(' | ')} |
|---|${names.map(() => '---|').join('')}
${lines.join('\n')}
`
}

/** @param {Row} row */
function faultOf({ over, uncharged, twice }) {
  return Number(nanos(over) + nanos(uncharged) + nanos(twice))
}

/** @param {string} name */
function gatewayTable(name) {
  const lines = Object.entries(attacks).flatMap(([attack, { title }]) => {
    const all = rows.filter((row) => row.gateway === name && row.attack === attack)
    const runs = all.filter((row) => ended.includes(row))
    const failures = all.flatMap(({ failed }) => failed ?? [])
    const rest = failures.length === 0 ? '' : `; ${failures.length} without an end: ${failures[0]}`
    if (runs.length > 0) {
      const cells = [range(runs, 'allowed'), range(runs, 'served'), range(runs, 'spent'), worstOf(runs) + rest]
      return [`| ${title} | ${cells.join(' | ')} | ${runs.length} |`]
    }
    if (all.length === 0) return []
    return [`| ${title} | | | | ${rest === '' ? `not run: ${all[0]?.skipped}` : rest.slice(2)} | 0 |`]
  })
  return `| attack | allowed | served | charged | | runs |
|---|---|---|---|---|---|
${lines.join('\n')}
`
}

/** @param {Row[]} runs @param {'allowed' | 'served' | 'spent'} field */
function range(runs, field) {
  const amounts = runs.map((run) => nanos(run[field])).sort((a, b) => (a < b ? -1 : 1))
  const [least, most] = [cents(amounts[0] ?? 0n), cents(amounts.at(-1) ?? 0n)]
  return least === most ? least : `${least}–${most}`
}

/** @param {bigint} amount */
function cents(amount) {
  return (Number(amount / 100_000n) / 10_000).toFixed(3)
}

/** What was wrong in the worst run. @param {Row[]} runs */
function worstOf(runs) {
  const faults = /** @type {const} */ ([
    ['over', 'over the limit'],
    ['uncharged', 'not charged'],
    ['twice', 'charged and not served'],
  ])
  const said = faults.flatMap(([field, words]) => {
    const most = runs.map((run) => nanos(run[field])).reduce((a, b) => (a > b ? a : b), 0n)
    return most === 0n ? [] : [`**$${cents(most)} ${words}**`]
  })
  return said.length === 0 ? 'kept' : said.join(', ')
}

// ── Plot ──

/** One line for each gateway, one mark for each run: what was served, in percent of what was allowed. */
function plot() {
  const percent = (/** @type {Row} */ { served, allowed }) => Number((nanos(served) * 1000n) / nanos(allowed)) / 10
  const most = Math.max(200, ...ended.map(percent))
  const x = (/** @type {number} */ value) => size.left + (value / most) * (size.width - size.left - 20)
  const drawn = names.filter((name) => ended.some(({ gateway }) => gateway === name))
  const height = size.top + drawn.length * size.row + 30
  const marks = drawn.flatMap((name, index) => {
    const y = size.top + index * size.row
    const dots = ended
      .filter(({ gateway }) => gateway === name)
      .map(
        (row) =>
          `<circle cx="${x(percent(row)).toFixed(1)}" cy="${y}" r="3.5" class="${faultOf(row) > 0 ? 'wrong' : 'right'}"><title>${name}, ${row.attack}: ${percent(row)} %</title></circle>`,
      )
    return [`<text x="${size.left - 10}" y="${y + 4}" text-anchor="end">${name}</text>`, ...dots]
  })
  const ticks = Array.from({ length: Math.floor(most / 100) + 1 }, (_, index) => index * 100).map(
    (value) =>
      `<line x1="${x(value)}" x2="${x(value)}" y1="${size.top - 14}" y2="${height - 26}" class="${value === 100 ? 'limit' : 'tick'}"/><text x="${x(value)}" y="${height - 10}" text-anchor="middle">${value} %</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}" font-family="system-ui, sans-serif" font-size="12">
<style>text{fill:#57606a}.tick{stroke:#8888;stroke-dasharray:2 4}.limit{stroke:#57606a}.right{fill:#1a7f37;fill-opacity:.6}.wrong{fill:#cf222e;fill-opacity:.6}@media(prefers-color-scheme:dark){text{fill:#9198a1}.limit{stroke:#9198a1}.right{fill:#3fb950}.wrong{fill:#f85149}}</style>
<text x="10" y="16">Served in each run, in percent of the limit. Red: over the limit, not charged, or charged and not served.</text>
${[...ticks, ...marks].join('\n')}
</svg>
`
}
