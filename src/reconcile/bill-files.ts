// Bills in files. CSV: one line for a day, model and bucket, in columns of our own, for every provider without a report that is
// read directly. FOCUS: what the clouds export, of any version, and what Tollgate exports itself.

import { type Bucket, buckets } from '../kernel/usage.ts'
import {
  BillFault,
  type BillLine,
  type BillReport,
  type DayRange,
  dayOf,
  mergedLines,
  picoOf,
  quantityOf,
  roundedQuotient,
} from './bill.ts'
import { checkCurrency } from './check-rows.ts'
import { readTables, type Table } from './table-file.ts'

interface FileSource {
  readonly provider: string
  readonly path: string
  /** The words of the file → a model, or `model bucket`. */
  readonly models: Readonly<Record<string, string>>
}

type Cells = (column: string) => string

// ── CSV ──

const csvColumns = ['day', 'model', 'amount_usd'] as const

export function readCsvBill(source: FileSource, range: DayRange): BillReport {
  return readFiles(source, range, csvColumns, (cell, fail) => {
    const day = dayOf(cell('day'))
    if (day === undefined) throw fail('day', 'a day such as 2026-11-03')
    const pico = cell('amount_usd') === '' ? undefined : picoOf(cell('amount_usd'), 'usd')
    if (pico === undefined && cell('amount_usd') !== '') throw fail('amount_usd', 'dollars such as 12.345678')
    const bucket = cell('bucket')
    if (bucket !== '' && !(bucket in buckets))
      throw fail('bucket', `empty or one of ${Object.keys(buckets).join(', ')}`)
    const count = (column: string): bigint | undefined => {
      const quantity = quantityOf(cell(column))
      if (quantity === undefined && cell(column) !== '') throw fail(column, 'a whole number')
      return quantity
    }
    checkCurrency(source, cell('currency') || 'USD')
    const place = { day, key: cell('key'), tier: cell('tier'), region: cell('region') }
    const model = source.models[cell('model')] ?? cell('model')
    return [{ ...place, model, bucket, quantity: count('quantity'), pico, requests: count('requests') }]
  })
}

// ── FOCUS ──

const focusColumns = ['chargeperiodstart', 'billedcost', 'billingcurrency'] as const
/** Where a meter may be named, from the most precise one. */
const meterColumns = ['skumeter', 'skuid', 'chargedescription', 'resourcename', 'resourceid']
const modelService = 'AI and Machine Learning'

export function readFocusBill(source: FileSource, range: DayRange): BillReport {
  return readFiles(source, range, focusColumns, (cell, fail) => {
    // Taxes, credits and purchases are not for tokens.
    if (cell('chargecategory') !== '' && cell('chargecategory') !== 'Usage') return []
    const meter = meterOf(source, cell)
    if (meter === undefined) return []
    const day = dayOf(cell('chargeperiodstart'))
    if (day === undefined) throw fail('ChargePeriodStart', 'a time such as 2026-11-03T00:00:00Z')
    checkCurrency(source, cell('billingcurrency'))
    const pico = picoOf(cell('billedcost'), 'usd')
    if (pico === undefined) throw fail('BilledCost', 'a decimal')
    const place = { day, key: cell('x_providerkey'), tier: cell('x_tier'), region: '' }
    return [{ ...place, ...meter, quantity: quantityIn(cell, fail), pico, requests: undefined }]
  })
}

/** undefined = the row is for something else. */
function meterOf({ models }: FileSource, cell: Cells): Pick<BillLine, 'model' | 'bucket'> | undefined {
  if (cell('x_upstreammodel') !== '') return { model: cell('x_upstreammodel'), bucket: cell('x_bucket') }
  const texts = meterColumns.map(cell).filter((text) => text !== '')
  const [words, named] = Object.entries(models).find(([part]) => texts.some((text) => text.includes(part))) ?? []
  if (words === undefined || named === undefined) {
    const isModel = cell('servicecategory') === modelService && texts[0] !== undefined
    return isModel ? { model: texts[0] ?? '', bucket: 'other' } : undefined
  }
  const [model = '', bucket] = named.split(' ')
  return { model, bucket: bucket ?? texts.map(bucketIn).find((found) => found !== undefined) ?? '' }
}

function bucketIn(text: string): Bucket | undefined {
  const words = text.toLowerCase().replace(/[^a-z0-9]+/g, ' ')
  if (/cache(d)? (write|creation)|write cache/.test(words)) return 'cache_write'
  if (/cache|cached/.test(words)) return 'cache_read'
  if (/\b(output|completion|response|outp|otpt)\b/.test(words)) return 'output'
  return /\b(input|prompt|inp|inpt)\b/.test(words) ? 'input' : undefined
}

/** Tokens, of a quantity in tokens, thousands or millions of them. */
function quantityIn(cell: Cells, fail: Fail): bigint | undefined {
  const [column, unit] =
    cell('consumedquantity') === '' ? ['pricingquantity', 'pricingunit'] : ['consumedquantity', 'consumedunit']
  if (cell(column) === '') return undefined
  const quantity = picoOf(cell(column), 'usd')
  if (quantity === undefined || quantity < 0n) throw fail(column, 'a number')
  const words = cell(unit).toLowerCase().replace(/[,_]/g, '')
  const scale = /\b(1m|1000000|million|mtok\w*)\b/.test(words)
    ? 1_000_000n
    : /\b(1k|1000|thousand|ktok\w*)\b/.test(words)
      ? 1000n
      : 1n
  return roundedQuotient(quantity * scale, 10n ** 12n)
}

// ── Both ──

type Fail = (column: string, expected: string) => BillFault

function readFiles(
  { provider, path }: FileSource,
  range: DayRange,
  needed: readonly string[],
  linesOf: (cell: Cells, fail: Fail) => readonly BillLine[],
): BillReport {
  const lines = readTables(path).flatMap((table) => {
    const lacking = needed.find((column) => !table.columns.includes(column))
    if (lacking !== undefined) {
      throw new BillFault(`${table.name} has no column ${lacking}. The bill of ${provider} needs ${needed.join(', ')}.`)
    }
    return rowsOf(table).flatMap(([cell, number]) =>
      linesOf(cell, (column, expected) => {
        const found = cell(column.toLowerCase()).slice(0, 40)
        const message = `Row ${number} of ${table.name} has "${found}" in ${column}, and ${expected} was expected.`
        return new BillFault(`${message} Nothing of the file was stored.`)
      }),
    )
  })
  const days = new Set(lines.map(({ day }) => day))
  return {
    lines: mergedLines(lines.filter(({ day }) => day >= range.from && day < range.to)),
    missing: (day) => (days.has(day) ? undefined : 'the file has no row for this day'),
  }
}

function rowsOf({ columns, rows }: Table): readonly (readonly [Cells, number])[] {
  const at = new Map(columns.map((name, index) => [name, index]))
  return rows.map((row, index) => [(column) => row[at.get(column) ?? -1]?.trim() ?? '', index + 2] as const)
}
