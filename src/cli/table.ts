// Tables and values as people read them. Columns are aligned by display width, not by the number of characters, and text
// from outside cannot move the cursor or colour the screen. Amounts stay exact to the last digit.

import type { AnswerOf } from '../api/client.ts'

export interface Column {
  readonly title: string
  readonly align?: 'right'
}

const gap = '  '

/** The last column is not padded. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { color }: { readonly color: boolean },
): string {
  const cells = rows.map((row) => columns.map((_, at) => cleanText(row[at] ?? '')))
  const widths = columns.map(({ title }, at) =>
    Math.max(Bun.stringWidth(title), ...cells.map((row) => Bun.stringWidth(row[at] ?? ''))),
  )
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, at) => padded(text, widths[at] ?? 0, columns[at]?.align))
      .join(gap)
      .trimEnd()
  const head = line(columns.map(({ title }) => title))
  return [color ? bold(head) : head, ...cells.map(line), ''].join('\n')
}

/** Names and values below each other, indented. */
export function renderFacts(facts: readonly (readonly [name: string, value: string | undefined])[]): string {
  const known = facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  const width = Math.max(...known.map(([name]) => Bun.stringWidth(name)))
  return known.map(([name, value]) => `  ${padded(name, width, undefined)}  ${cleanText(value)}\n`).join('')
}

export function padded(text: string, width: number, align: 'right' | undefined): string {
  const space = ' '.repeat(Math.max(0, width - Bun.stringWidth(text)))
  return align === 'right' ? space + text : text + space
}

/** Makes control characters and those that change the writing direction visible. */
export function cleanText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach the terminal
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\ufffd')
}

export function bold(text: string): string {
  return `\u001b[1m${text}\u001b[22m`
}

/** `4.5` → `$4.50`; absent = a dash. */
export function shownUsd(amount: string | null | undefined): string {
  return amount == null || amount === '' ? '–' : `$${amount}`
}

/** `2026-11-15T01:02:03.004Z` → `2026-11-15 01:02:03`; the gateway's times are UTC. */
export function shownTime(iso: string | null | undefined): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(iso ?? '')
  return match ? `${match[1]} ${match[2]}` : '–'
}

/** 12345 → `12,345`, the same on every machine. */
export function shownCount(count: number | bigint | null | undefined): string {
  return count == null ? '–' : String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** `1 wallet`, `2 wallets`. */
export function counted(count: number | bigint, noun: string): string {
  return `${shownCount(count)} ${noun}${count === 1 || count === 1n ? '' : 's'}`
}

export function shownMs(milliseconds: number | null | undefined): string {
  if (milliseconds == null) return '–'
  return milliseconds < 10_000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`
}

export function shownModels({ models }: { readonly models?: readonly string[] | null }): string {
  return models == null ? 'all' : models.join(', ')
}

type Limits = AnswerOf<'putKeyLimits'>

/** `60 rpm, $5.00/day`, or `none`. */
export function shownLimits(limits: Limits | null | undefined): string {
  const { requests_per_minute: rpm, tokens_per_minute: tpm, concurrent_requests: concurrent } = limits ?? {}
  const { spend_per_day: day, spend_per_month: month } = limits ?? {}
  const parts = [
    rpm != null && `${shownCount(rpm)} rpm`,
    tpm != null && `${shownCount(tpm)} tpm`,
    concurrent != null && `${shownCount(concurrent)} at once`,
    day != null && `$${day}/day`,
    month != null && `$${month}/month`,
  ].filter((part) => part !== false)
  return parts.length === 0 ? 'none' : parts.join(', ')
}
