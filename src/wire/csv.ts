// Cells and lines of a CSV file. A spreadsheet runs text that begins like a formula, so such a text
// gets an apostrophe before it, which keeps it a text.

export type CsvValue = string | number | boolean | null

/** Without a line end; null is an empty cell. */
export function csvLine(values: readonly CsvValue[]): string {
  return values.map(csvCell).join(',')
}

/** The full-width signs as well: some spreadsheets take them for the narrow ones. */
const formulaStart = /^[=+\-@\t\r\n＝＋－＠]/
/** An amount, which is a string because it is exact. */
const negativeAmount = /^-\d+\.\d+$/

export function csvCell(value: CsvValue): string {
  if (value === null) return ''
  // A number is what it looks like, and a minus before it is no formula.
  if (typeof value !== 'string') return String(value)
  const safe = formulaStart.test(value) && !negativeAmount.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
