// Parses values that people type and formats values for display. A parser throws a refusal that names the option.
// Columns are aligned by display width, not by the number of characters, and text from outside cannot move the cursor or
// colour the screen. Amounts stay exact to the last digit.

import type { AnswerOf } from '../api/client.ts'
import { type SpendState, stateText } from '../api/spend-state.ts'
import { isTag } from '../kernel/attribution.ts'
import { isoTime } from '../kernel/clock.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import { usageRefusal } from './refusal.ts'

/** `label` is the argument or option as typed. */
export type ReadValue = (
  text: string,
  label: string,
  now: number,
) => string | number | boolean | readonly number[] | Readonly<Record<string, string>>

/** `25`, `$25.00` → `25.00`, as the API takes it. */
export function readAmount(text: string, label: string): string {
  const amount = parseUsd(text.replace(/^\$/, ''))
  if (amount !== undefined && amount > 0n) return formatUsd(amount)
  if (amount !== undefined) throw usageRefusal(`${label} must be above zero, not "${text}".`)
  if (/^\$?[1-9][0-9]{10,}(\.[0-9]{1,9})?$/.test(text)) {
    throw usageRefusal(`${label} must be below 10000000000 (USD), not "${text}".`)
  }
  throw usageRefusal(`${label} must be an amount in USD such as 25 or 0.50, not "${text}".`)
}

/** `team=web=100,job=nightly=5` → amounts by tag. */
export function readTagAmounts(text: string, label: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(',').map((part) => {
      const at = part.lastIndexOf('=')
      const tag = part.slice(0, at).trim()
      if (isTag(tag)) return [tag, readAmount(part.slice(at + 1).trim(), label)]
      throw usageRefusal(`${label} must be tags with amounts in USD such as team=web=100,job=nightly=5, not "${part}".`)
    }),
  )
}

/** `group:design acme/* month 500 then other/small slow-down 6`, several separated by commas. */
export function readSpendLimits(text: string, label: string) {
  return text.split(',').map((part) => {
    const words = part.trim().split(/ +/)
    const atLimit: { then?: string; slow_down?: number } = {}
    for (let word = words.at(-2); word === 'then' || word === 'slow-down'; word = words.at(-2)) {
      const [, value = ''] = words.splice(-2)
      if (word === 'then') atLimit.then = value
      else atLimit.slow_down = readCount(value, `${label}: slow-down`)
    }
    const [limit, window] = [words.pop() ?? '', words.pop() ?? '']
    const models = /^[^:]+\//.test(words.at(-1) ?? '') ? words.pop() : undefined
    if (words.length === 0) {
      throw usageRefusal(
        `${label} must be a subject, models if not all, a window and USD, such as 'group:design acme/* month 500' or 'all acme/* day 5 then other/small', not "${part.trim()}".`,
      )
    }
    return { subject: words.join(' '), ...(models && { models }), window, limit: readAmount(limit, label), ...atLimit }
  })
}

export function readCount(text: string, label: string): number {
  const count = /^[0-9]{1,15}$/.test(text) ? Number(text) : 0
  if (count >= 1) return count
  throw usageRefusal(`${label} must be a whole number of at least 1, not "${text}".`)
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** `90s`, `15m`, `1h`, `7d`, `2w` → seconds. */
export function parseSpan(text: string): number | undefined {
  const match = /^([0-9]{1,6})([smhdw])$/.exec(text)
  const unit = unitSeconds[match?.[2] ?? '']
  return match && unit !== undefined ? Number(match[1]) * unit : undefined
}

export function readSpan(text: string, label: string): number {
  const seconds = parseSpan(text)
  if (seconds !== undefined) return seconds
  throw usageRefusal(`${label} must be a span such as 15m, 1h or 7d, not "${text}".`)
}

/** A span from now, a day (its start, UTC) or a time → ISO 8601. */
export function readTime(text: string, label: string, now: number): string {
  const seconds = parseSpan(text)
  if (seconds !== undefined) return isoTime(now + seconds * 1000)
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
  const at = isTime ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(at)) return isoTime(at)
  throw usageRefusal(`${label} must be a span such as 30d, a day such as 2027-01-31 or a time with Z, not "${text}".`)
}

/** A day, UTC. */
export function readDate(text: string, label: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))) return text
  throw usageRefusal(`${label} must be a day such as 2027-01-31, not "${text}".`)
}

const periods = [
  ['day', 'per UTC day', 5],
  ['week', 'per week from Monday', 25],
  ['month', 'per UTC month', 100],
] as const

/** The limits: option, its value and help, field of the API, and how each is shown, such as `60 rpm`. */
const limits = [
  ['rpm', 'N', 'requests per minute', 'requests_per_minute', readCount, ' rpm'] as const,
  ['tpm', 'N', 'tokens per minute', 'tokens_per_minute', readCount, ' tpm'] as const,
  ['concurrent', 'N', 'concurrent requests', 'concurrent_requests', readCount, ' at once'] as const,
  ...periods.map(([period, per]) => {
    const help = `spend ${per}${period === 'week' ? ', UTC' : ''}`
    return [`spend-per-${period}`, 'USD', help, `spend_per_${period}`, readAmount, `/${period}`] as const
  }),
  [
    'starts-at',
    'DAY',
    'spend limits apply from this UTC day on; earlier charges do not count',
    'starts_at',
    readDate,
    '',
  ] as const,
  ...periods.map(([period, per]) => {
    const option = `user-spend-per-${period}` as const
    const field = `user_spend_per_${period}` as const
    return [option, 'USD', `spend of each end user ${per}`, field, readAmount, `/${period} per user`] as const
  }),
  ...periods.map(([period, per, example]) => {
    const option = `tag-spend-per-${period}` as const
    const help = `spend ${per} by tag: team=web=${example}`
    return [option, 'LIST', help, `tag_spend_per_${period}`, readTagAmounts, `/${period}`] as const
  }),
  [
    'spend-limit',
    'LIST',
    "spend of a subject, with some models, in a window: 'person:ada@example.com acme/* day 5,group:design month 500'",
    'spend_limits',
    readSpendLimits,
    '',
  ] as const,
]

type LimitField = (typeof limits)[number][3]

/** `fieldOf` says where the value goes. */
export function limitOptions<Field extends string>(fieldOf: (field: LimitField) => Field) {
  return Object.fromEntries(
    limits.map(([option, value, help, field, read]) => [option, { value, help, field: fieldOf(field), read }] as const),
  )
}

type Cell<Item> = (item: Item) => string | number | null | undefined
/** `right` aligns numbers; a missing value is shown as a dash. */
export type TitledColumn<Item> = readonly [title: string, cell: Cell<Item>, align?: 'right']
/** A field alone is shown under its name: `created_at` is the column CREATED (UTC). */
export type Columns<Item> = readonly (TitledColumn<Item> | (keyof Item & string))[]

function titled<Item>(column: Columns<Item>[number]): TitledColumn<Item> {
  if (typeof column !== 'string') return column
  const title = column
    .replace(/_(at|id)$/, '')
    .replaceAll('_', ' ')
    .toUpperCase()
  const cell: Cell<Item> = (item) => item[column] as string | number | null
  if (!column.endsWith('_at')) return [title, cell]
  return [`${title} (UTC)`, (item) => shownTime(cell(item) as string | null)]
}

/** The last column is not padded. */
export function renderTable<Item>(
  columns: Columns<Item>,
  items: readonly Item[],
  { color }: { readonly color: boolean },
): string {
  const titles = columns.map(titled)
  const cells = items.map((item) => titles.map(([, cell]) => cleanText(String(cell(item) ?? '–'))))
  const widths = titles.map(([title], at) =>
    Math.max(...[title, ...cells.map((row) => row[at] ?? '')].map((text) => Bun.stringWidth(text))),
  )
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, at) => padded(text, widths[at] ?? 0, titles[at]?.[2]))
      .join('  ')
      .trimEnd()
  const head = line(titles.map(([title]) => title))
  return [color ? bold(head) : head, ...cells.map(line), ''].join('\n')
}

/** One indented line per name and value. */
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

/** `4.50` → `$4.50`, `-4.50` → `-$4.50`; absent = a dash. */
export function shownUsd(amount: string | null | undefined): string {
  return amount == null || amount === '' ? '–' : amount.replace(/^-?/, '$&$$')
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

/** With the state of spend limits: `60 rpm, $3.20 of $5.00/day (resets in 4 h)`. */
export function shownState(
  { limits: given, spend }: Pick<AnswerOf<'getKey'>, 'limits' | 'spend'>,
  now: number,
): string {
  const states = spend.map((state) => {
    const { spent, limit, period, subject, models } = state
    const whose = [subject, models].filter((each) => each !== undefined).map((each) => `${each} `)
    const set = given.spend_limits?.find((each) => isStateOf(state, each))
    const shown = `${whose.join('')}$${spent} of $${limit}/${period} (${stateText(state, now)})`
    return [shown, ...(set ? shownAtLimit(set) : [])].join(' ')
  })
  const { spend_per_day, spend_per_week, spend_per_month, starts_at, spend_limits, ...others } = given
  // Those of each end user or person have no state of their own.
  const each = spend_limits?.filter(({ subject = 'all' }) => subject !== 'all' && !subject.includes(':'))
  const rest = shownLimits({ ...others, ...(each?.length && { spend_limits: each }) })
  return [...(rest === 'none' && states.length > 0 ? [] : [rest]), ...states].join(', ')
}

type GivenSpendLimit = NonNullable<GivenLimits['spend_limits']>[number]

/** An operator and an admin may limit the same, which is one counter: the amount tells them apart. */
function isStateOf({ subject = 'all', models, period, limit }: SpendState, set: GivenSpendLimit): boolean {
  const { subject: whose = 'all', models: pattern, window, limit: amount } = set
  return whose === subject && (pattern ?? undefined) === models && window === period && amount === limit
}

/** `group:design acme/* $500.00/month then other/small` */
function shownSpendLimit(given: GivenSpendLimit): string {
  const { subject = 'all', models, window, limit } = given
  return [subject, models, `$${limit}/${window}`, ...shownAtLimit(given)].filter(Boolean).join(' ')
}

function shownAtLimit({ then, slow_down, set_by }: GivenSpendLimit): readonly string[] {
  return [
    ...(then != null ? [`then ${then}`] : []),
    ...(slow_down != null ? [`slow-down ${slow_down}`] : []),
    ...(set_by != null ? [`(set by an ${set_by})`] : []),
  ]
}

type GivenLimits = NonNullable<AnswerOf<'putKeyLimits'>>

/** `60 rpm, $5.00/day`, or `none`. */
export function shownLimits(given: AnswerOf<'putKeyLimits'> | null | undefined): string {
  const parts = limits.flatMap(([, , , field, , unit]) => {
    const value = given?.[field]
    if (value == null) return []
    if (field === 'starts_at') return [`from ${value}`]
    if (Array.isArray(value)) return value.map(shownSpendLimit)
    if (typeof value === 'object') return Object.entries(value).map(([tag, amount]) => `${tag} $${amount}${unit}`)
    return [`${typeof value === 'number' ? shownCount(value) : `$${value}`}${unit}`]
  })
  return parts.length === 0 ? 'none' : parts.join(', ')
}
