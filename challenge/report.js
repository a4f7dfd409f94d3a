#!/usr/bin/env node
// Writes the tables and the plot of README.md from files of results: node report.js results/*.jsonl

import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { attacks } from './attacks.js'
import { atLeastZero, dollars, nanos } from './money.js'

/**
 * @typedef {object} Row
 * @property {string} gateway
 * @property {string} attack
 * @property {string} [skipped]
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

const files = process.argv.slice(2)
if (files.length === 0) {
  console.error('Usage: node report.js results/*.jsonl')
  process.exit(2)
}
/** @type {Row[]} */
const rows = files.flatMap((file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line)),
)
const text = readFileSync(readme, 'utf8')
const [head, rest] = text.split(begin)
const tail = rest?.split(end)[1]
if (head === undefined || tail === undefined) throw new Error(`${readme} has no place for results`)
writeFileSync(readme, `${head}${begin}\n\n${report(rows)}\n${end}${tail}`)
writeFileSync(join(here, 'served.svg'), plot(rows))

/** @param {Row[]} all */
function report(all) {
  const names = [...new Set(all.map(({ gateway }) => gateway))]
  const tables = names.map((name) => gatewayTable(all.filter(({ gateway }) => gateway === name)))
  return [summary(all, names), '![Served, in percent of the limit](served.svg)\n', ...tables].join('\n')
}

/** @param {Row[]} all @param {string[]} names */
function summary(all, names) {
  const lines = names.map((name) => {
    const ran = all.filter(({ gateway, skipped }) => gateway === name && skipped === undefined)
    const worst = (/** @type {'over' | 'servedOver' | 'uncharged' | 'twice'} */ field) =>
      dollars(ran.map((row) => nanos(row[field])).reduce((most, amount) => (amount > most ? amount : most), 0n))
    const { version = '', setting = '' } = ran[0] ?? {}
    return `| ${name} | ${version} | ${setting} | ${ran.length} | ${worst('over')} | ${worst('uncharged')} | ${worst('twice')} | ${worst('servedOver')} |`
  })
  return `| gateway | version | setting | runs | charged over the limit | delivered, not charged | charged, not served | served over the limit |
|---|---|---|---|---|---|---|---|
${lines.join('\n')}

Each amount is the worst of all runs, in dollars, of a limit of $1.00.
`
}

/** @param {Row[]} rowsOfGateway */
function gatewayTable(rowsOfGateway) {
  const lines = Object.entries(attacks).flatMap(([name, { title }]) => {
    const runs = rowsOfGateway.filter(({ attack }) => attack === name)
    const skipped = runs.find((run) => run.skipped !== undefined)
    if (runs.length === 0) return []
    if (skipped) return [`| ${title} | not run: ${skipped.skipped} | | | | |`]
    const cells = [range(runs, 'allowed'), range(runs, 'served'), range(runs, 'spent'), worstOf(runs), `${runs.length}`]
    return [`| ${title} | ${cells.join(' | ')} |`]
  })
  return `### ${rowsOfGateway[0]?.gateway}

| attack | allowed | served | charged | | runs |
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
  return said.length === 0 ? 'exact' : said.join(', ')
}

// ── Plot ──

const size = { row: 22, left: 150, width: 760, top: 40 }

/** One line for each gateway, one mark for each run: what was served, in percent of what was allowed. @param {Row[]} all */
function plot(all) {
  const ran = all.filter(({ skipped }) => skipped === undefined)
  const names = [...new Set(ran.map(({ gateway }) => gateway))]
  const percent = (/** @type {Row} */ { served, allowed }) => Number((nanos(served) * 1000n) / nanos(allowed)) / 10
  const most = Math.max(200, ...ran.map(percent))
  const x = (/** @type {number} */ value) => size.left + (value / most) * (size.width - size.left - 20)
  const height = size.top + names.length * size.row + 30
  const marks = names.flatMap((name, index) => {
    const y = size.top + index * size.row
    const ofName = ran.filter(({ gateway }) => gateway === name)
    const dots = ofName.map((row) => {
      const isOver = atLeastZero(nanos(row.over)) + nanos(row.uncharged) + nanos(row.twice) > 0n
      return `<circle cx="${x(percent(row)).toFixed(1)}" cy="${y}" r="3.5" class="${isOver ? 'wrong' : 'right'}"><title>${name}, ${row.attack}: ${percent(row)} %</title></circle>`
    })
    return [`<text x="${size.left - 10}" y="${y + 4}" text-anchor="end">${name}</text>`, ...dots]
  })
  const ticks = Array.from({ length: Math.floor(most / 100) + 1 }, (_, index) => index * 100).map(
    (value) =>
      `<line x1="${x(value)}" x2="${x(value)}" y1="${size.top - 14}" y2="${height - 26}" class="${value === 100 ? 'limit' : 'tick'}"/><text x="${x(value)}" y="${height - 10}" text-anchor="middle">${value} %</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}" font-family="system-ui, sans-serif" font-size="12">
<style>text{fill:#57606a}.tick{stroke:#8888;stroke-dasharray:2 4}.limit{stroke:#57606a}.right{fill:#1a7f37;fill-opacity:.6}.wrong{fill:#cf222e;fill-opacity:.6}</style>
<text x="${size.left}" y="16">Served in each run, in percent of the limit; red: charged over the limit, not charged, or charged and not served</text>
${[...ticks, ...marks].join('\n')}
</svg>
`
}
