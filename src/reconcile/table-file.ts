// Tables in files: finds the files, decodes their text and splits it into rows. What cannot be read for certain is named, never
// guessed: a byte that is not UTF-8 may be any letter in one of a dozen encodings.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { BillFault } from './bill.ts'

const bytesMax = 256 * 1024 * 1024
const rowsMax = 5_000_000

export interface Table {
  readonly name: string
  /** In lower case. */
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** The CSV files of a folder, or the one file. */
export function readTables(path: string): readonly Table[] {
  try {
    if (!statSync(path).isDirectory()) return [readTable(path)]
    const names = readdirSync(path).filter((name) => /\.csv(\.gz)?$/i.test(name))
    if (names.length === 0) throw new BillFault(`There is no CSV file in ${path}.`)
    return names.sort().map((name) => readTable(join(path, name)))
  } catch (error) {
    if (error instanceof BillFault) throw error
    const code = (error as NodeJS.ErrnoException).code ?? String(error)
    throw new BillFault(
      `${path} cannot be read (${code}). Check the path in \`bills\`, and that the gateway may read it.`,
    )
  }
}

function readTable(path: string): Table {
  if (statSync(path).size > bytesMax) throw new BillFault(`${path} is larger than 256 MB. Split it by month.`)
  const bytes = readFileSync(path)
  const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b
  return parseTable(path, isPacked ? gunzipSync(bytes, { maxOutputLength: bytesMax }) : bytes)
}

export function parseTable(name: string, bytes: Uint8Array): Table {
  const text = decodeText(name, bytes)
  const [header, ...rows] = splitRows(name, text)
  if (header === undefined) throw new BillFault(`${name} is empty.`)
  const wrong = rows.findIndex((row) => row.length !== header.length)
  if (wrong >= 0) {
    const message = `Row ${wrong + 2} of ${name} has ${rows[wrong]?.length} cells, and the first row names ${header.length}.`
    throw new BillFault(`${message} Nothing of the file was stored.`)
  }
  return { name, columns: header.map((column) => column.trim().toLowerCase()), rows }
}

/** UTF-8 and UTF-16, with or without a byte order mark. */
export function decodeText(name: string, bytes: Uint8Array): string {
  for (const encoding of encodingsOf(bytes)) {
    try {
      const text = new TextDecoder(encoding, { fatal: true }).decode(bytes)
      if (!text.includes('\0')) return text
    } catch {
      // Not in this encoding.
    }
  }
  throw new BillFault(
    `${name} is neither UTF-8 nor UTF-16; it may be Latin-1 or Windows-1252, and Tollgate does not guess. Save it as "CSV UTF-8".`,
  )
}

function encodingsOf(bytes: Uint8Array): readonly ('utf-8' | 'utf-16le' | 'utf-16be')[] {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return ['utf-16le']
  if (first === 0xfe && second === 0xff) return ['utf-16be']
  // Column names are ASCII, so that every other byte of them is zero.
  if (second === 0 && first !== 0) return ['utf-16le']
  if (first === 0 && second !== 0) return ['utf-16be']
  return ['utf-8']
}

const separators = [',', ';', '\t'] as const

function splitRows(name: string, text: string): readonly (readonly string[])[] {
  const [firstLine = ''] = text.split(/\r?\n/, 1)
  const separator = separators.toSorted((a, b) => firstLine.split(b).length - firstLine.split(a).length)[0] ?? ','
  const rows: string[][] = []
  let row: string[] = []
  let at = 0
  while (at < text.length) {
    const cell = text[at] === '"' ? quotedCell(name, text, at) : plainCell(text, at, separator)
    row.push(cell.text)
    at = cell.end
    if (text[at] === separator) {
      at++
      // A separator at the end of the file has an empty cell behind it.
      if (at < text.length) continue
      row.push('')
    }
    if (text[at] === '\r') at++
    if (text[at] === '\n') at++
    else if (at < text.length)
      throw new BillFault(`${name} has a letter behind a quoted cell, in row ${rows.length + 1}.`)
    if (row.length > 1 || row[0] !== '') rows.push(row)
    row = []
    if (rows.length > rowsMax) throw new BillFault(`${name} has more than ${rowsMax} rows. Split it by month.`)
  }
  return rows
}

function plainCell(text: string, start: number, separator: string) {
  let end = start
  while (end < text.length && text[end] !== separator && text[end] !== '\n' && text[end] !== '\r') end++
  return { text: text.slice(start, end), end }
}

function quotedCell(name: string, text: string, start: number) {
  let cell = ''
  for (let at = start + 1; ; ) {
    const quote = text.indexOf('"', at)
    if (quote < 0) throw new BillFault(`${name} ends inside a quoted cell: it may have been cut off.`)
    cell += text.slice(at, quote)
    if (text[quote + 1] !== '"') return { text: cell, end: quote + 1 }
    cell += '"'
    at = quote + 2
  }
}
