// Checks that the rows of every report go through: one row for each thing it counts, and amounts in US dollars.

import { BillFault, type ExactJson } from './bill.ts'
import { isObject, type JsonObject, malformed, type PageReader } from './fetch-pages.ts'

/** Drops rows that an overlapping page repeats word for word. Two rows of one name that differ contradict each other. */
export function uniqueRows(
  reader: Pick<PageReader, 'provider'>,
  items: readonly ExactJson[],
  nameOf: (row: JsonObject) => string,
): readonly JsonObject[] {
  const rows = new Map<string, JsonObject>()
  for (const item of items) {
    if (!isObject(item)) throw malformed(reader, 'has a row that is no object')
    const name = nameOf(item)
    const before = rows.get(name)
    if (before && JSON.stringify(before) !== JSON.stringify(item)) {
      throw malformed(reader, 'has two different rows for the same day and group')
    }
    rows.set(name, item)
  }
  return [...rows.values()]
}

export function checkCurrency({ provider }: Pick<PageReader, 'provider'>, currency: string): void {
  if (currency.toUpperCase() === 'USD') return
  const shown = currency.slice(0, 10)
  throw new BillFault(
    `The bill of ${provider} is in ${shown}, and Tollgate compares US dollars only. Convert it, and import it as CSV.`,
  )
}
