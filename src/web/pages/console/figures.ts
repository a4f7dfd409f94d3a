// Figures and texts that the console computes: which of several limits applies, the balance after each transfer, chart
// columns, the runway, and the details of the audit log. Without components, so that tests can use it outside a browser.

import type { AnswerOf, ItemOf } from '../../../api/client.ts'
import type { SpendState } from '../../../api/spend-state.ts'
import { formatUsd, type Nano, parseUsd } from '../../../kernel/money.ts'
import { firstEventBounds } from '../../../store/request-rows.ts'
import { csvLine } from '../../../wire/csv.ts'
import { exactCount, shortMs, usdText } from '../../catalog/format.ts'

export type Limits = ItemOf<'listKeys'>['limits']
export type Transfer = ItemOf<'listTransfers'>
export type Stats = AnswerOf<'getStats'>

const hourMs = 3_600_000
export const dayMs = 24 * hourMs

const lastTime = Date.parse('9999-12-31T23:59:59.999Z')

/** As the API takes it, from 1970 to 9999; empty for any other text, since anyone can edit the address. */
export function isoTimeOf(text: string): string {
  const time = Date.parse(text)
  return time >= 0 && time <= lastTime ? new Date(time).toISOString() : ''
}

export const ranges = [
  { value: '24h', label: 'Last 24 hours', days: 1 },
  { value: '7d', label: 'Last 7 days', days: 7 },
  { value: '30d', label: 'Last 30 days', days: 30 },
] as const

/** Months in UTC, as spend limits and statements count them. */
export const monthRanges = [
  { value: 'month', label: 'This month (UTC)' },
  { value: 'last-month', label: 'Last month (UTC)' },
] as const

export interface UsagePeriod {
  readonly from: number
  readonly to: number
  /** What it is compared with. */
  readonly before: { readonly from: number; readonly to: number; readonly name: string }
}

/** Of one of the ranges; any other text is the first one. */
export function usagePeriod(range: string, now: number): UsagePeriod {
  const [month, last, earlier] = [0, 1, 2].map((back) => monthStart(now, back)) as [number, number, number]
  if (range === 'last-month') {
    return { from: last, to: month, before: { from: earlier, to: last, name: 'the month before' } }
  }
  if (range === 'month') {
    // At least a millisecond, for the moment in which a month begins.
    const elapsed = Math.max(1, now - month)
    const to = Math.min(month, last + elapsed)
    return { from: month, to: month + elapsed, before: { from: last, to, name: 'the same days of last month' } }
  }
  const { days } = ranges.find(({ value }) => value === range) ?? ranges[0]
  return withPeriodBefore(now - days * dayMs, now)
}

export function withPeriodBefore(from: number, to: number): UsagePeriod {
  return { from, to, before: { from: from - (to - from), to: from, name: 'the period before' } }
}

export const marginRanges = [
  ...[7, 30, 90].map((days) => ({ value: `${days}d`, label: `Last ${days} days (UTC)`, days })),
  ...monthRanges,
]

/** Whole days in UTC, and today so far. */
export function marginPeriod(range: string, now: number): { readonly from: number; readonly to: number } {
  if (monthRanges.some(({ value }) => value === range)) return usagePeriod(range, now)
  const days = marginRanges.flatMap((each) => ('days' in each && each.value === range ? [each.days] : []))[0] ?? 30
  return { from: now - (now % dayMs) - (days - 1) * dayMs, to: now }
}

/** In UTC; `back` months before that of `at`. */
export function monthStart(at: number, back = 0): number {
  const date = new Date(at)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - back, 1)
}

/** USD at the end of the month: what is spent so far, and the rest of the month at the rate. */
export function forecastOf(spent: string, { perDay }: SpendRate, now: number): string {
  return (Number(spent) + (perDay * (monthStart(now, -1) - now)) / dayMs).toFixed(2)
}

/** In the order in which pages list them. */
export const limitKinds = [
  { name: 'requests_per_minute', label: 'Requests per minute', kind: 'whole', unit: ' requests/min' },
  { name: 'spend_per_month', label: 'Spend per month (UTC), USD', kind: 'decimal', unit: '/month' },
  { name: 'spend_per_day', label: 'Spend per day (UTC), USD', kind: 'decimal', unit: '/day' },
  { name: 'spend_per_week', label: 'Spend per week (from Monday, UTC), USD', kind: 'decimal', unit: '/week' },
  {
    name: 'starts_at',
    label: 'Spend limits start on (UTC)',
    kind: 'date',
    unit: '',
    hint: 'Empty = they apply at once.',
  },
  { name: 'tokens_per_minute', label: 'Tokens per minute', kind: 'whole', unit: ' tokens/min' },
  { name: 'concurrent_requests', label: 'Concurrent requests', kind: 'whole', unit: ' concurrent' },
  ...(['day', 'week', 'month'] as const).map((period) => ({
    name: `user_spend_per_${period}` as const,
    label: `Spend of each end user per ${period}, USD`,
    kind: 'decimal' as const,
    unit: `/${period} per user`,
  })),
  ...(['day', 'week', 'month'] as const).map((period) => ({
    name: `tag_spend_per_${period}` as const,
    label: `Spend by tag per ${period}, USD`,
    kind: 'tags' as const,
    unit: `/${period}`,
  })),
] as const satisfies readonly { name: keyof Limits; label: string; kind: string; unit: string; hint?: string }[]

/** In forms the first two are in view; the others are under a fold. */
export const limitRows = limitKinds.map((row, at) => ({ ...row, isFolded: at > 1 }))

export type LimitName = (typeof limitKinds)[number]['name']

type LimitValue = number | string | Readonly<Record<string, string>>

/** `60 requests/min`, `$5.00/day`, `team=web $100.00/month` */
export function limitText(name: LimitName, value: LimitValue): string {
  if (name === 'starts_at') return `from ${value}`
  const unit = limitKinds.find((each) => each.name === name)?.unit ?? ''
  if (typeof value === 'object') {
    return Object.entries(value)
      .map(([tag, amount]) => `${tag} ${usdText(amount)}${unit}`)
      .join(', ')
  }
  return `${typeof value === 'string' ? usdText(value) : exactCount(value)}${unit}`
}

type FurtherLimit = NonNullable<Limits['spend_limits']>[number]

/** `group:design acme/* $500.00/month, then other/small` */
function furtherText({ subject = 'all', models, window, limit, then, slow_down, set_by }: FurtherLimit): string {
  const text = [subject, models, `${usdText(limit)}/${window}`].filter((part) => part != null).join(' ')
  const atLimit = [
    slow_down != null && `slowed to ${slow_down}/min from 80 %`,
    then != null && `then ${then}`,
    set_by != null && `set by an ${set_by}`,
  ]
  return [text, ...atLimit.filter((part) => part !== false)].join(', ')
}

/** Spend limits that are in no field of their own: of people, groups, models and the last hours or days. */
export function furtherLimits(holders: readonly LimitHolder[]) {
  return holders.flatMap(({ who, limits, spend = [] }) =>
    (limits.spend_limits ?? []).map((limit) => {
      const { subject = 'all', models, window } = limit
      const state = spend.find(
        (each) =>
          each.period === window && (each.subject ?? 'all') === subject && each.models === (models ?? undefined),
      )
      return { text: furtherText(limit), who, state }
    }),
  )
}

/** A limit of one person or group, with what they have spent of it. */
export function subjectLimit(state: AnswerOf<'getSubjectLimits'>['limits'][number]) {
  const { set_in, period, subject, is_of_each } = state
  const text = furtherText({ ...state, window: period, subject: is_of_each ? `each ${subject}` : subject })
  return { text, who: `${set_in.kind} ${set_in.name}`, state }
}

export interface LimitHolder {
  /** `this key`, `the project` */
  readonly who: string
  readonly limits: Limits
  /** The state of its spend limits. */
  readonly spend?: readonly SpendState[]
}

export interface EffectiveLimit {
  readonly name: LimitName
  readonly value: LimitValue
  readonly who: string
  /** Of a spend limit. */
  readonly state?: SpendState | undefined
}

/** The tightest limit of each kind and who sets it; of equal limits the first holder is named. Tags are listed by holder. */
export function effectiveLimits(holders: readonly LimitHolder[]): readonly EffectiveLimit[] {
  return limitKinds.flatMap(({ name }) => {
    let tightest: EffectiveLimit | undefined
    const ofTags: EffectiveLimit[] = []
    for (const { who, limits, spend } of holders) {
      const value = limits[name]
      if (value === undefined || value === null || name === 'starts_at') continue
      const state = spend?.filter(countsAll).find(({ period }) => name === `spend_per_${period}`)
      if (typeof value === 'object') ofTags.push({ name, value, who })
      else if (!tightest || sizeOf(value) < sizeOf(tightest.value)) tightest = { name, value, who, state }
    }
    return tightest ? [tightest] : ofTags
  })
}

/** Whether a spend limit counts every request, not only those of a person, group or tag or with some models. */
function countsAll({ subject, models }: SpendState): boolean {
  return subject === undefined && models === undefined
}

/** What a workspace may spend in a month in total. */
export function monthLimitOf(spend: readonly SpendState[]): string | undefined {
  return spend.filter(countsAll).find(({ period }) => period === 'month')?.limit
}

function sizeOf(value: LimitValue): bigint {
  // The gateway only sends amounts; anything else must not be the tightest.
  return typeof value === 'number' ? BigInt(value) * 1_000_000_000n : (parseUsd(String(value)) ?? 10n ** 30n)
}

export interface LedgerRow extends Transfer {
  /** USD, after this transfer. */
  readonly balance: string
}

/** `transfers` newest first, starting with the latest; `balance` is the one after it. */
export function withBalances(balance: string, transfers: readonly Transfer[]): readonly LedgerRow[] {
  let after = nanoOf(balance)
  return transfers.map((transfer) => {
    const row = { ...transfer, balance: formatUsd(after as Nano) }
    const size = nanoOf(transfer.amount)
    if (transfer.direction === 'in') after -= size
    if (transfer.direction === 'out') after += size
    return row
  })
}

function nanoOf(usd: string): bigint {
  return parseUsd(usd) ?? 0n
}

export function sumOf(amounts: readonly string[]): string {
  return formatUsd(amounts.reduce((sum, usd) => sum + nanoOf(usd), 0n) as Nano)
}

const csvColumns = [
  'created_at',
  'id',
  'kind',
  'direction',
  'amount',
  'balance',
  'request_id',
  'reference',
  'price_version',
  'estimated',
] as const satisfies readonly (keyof LedgerRow)[]

export function csvText(rows: readonly LedgerRow[]): string {
  const lines = rows.map((row) => csvLine(csvColumns.map((column) => row[column])))
  return `${[csvColumns.join(','), ...lines].join('\r\n')}\r\n`
}

/**
 * `≈ 420 ms`, `under 25 ms`. Times to the first token are counted in buckets, so a value in the lowest bucket is only
 * known to be below its bound.
 */
export function firstTokenText(milliseconds: number): string {
  const lowest = firstEventBounds[0]
  return milliseconds <= lowest ? `under ${shortMs(lowest)}` : `≈ ${shortMs(milliseconds)}`
}

export interface SpendRate {
  /** USD; approximate. */
  readonly perDay: number
  /** What it was measured over: `7 days`, `5 hours`, `hour`. */
  readonly span: string
}

export const spendRateDays = 7

type SpendSums = Pick<Stats, 'from' | 'counted_until'> & {
  readonly total: Pick<Stats['total'], 'cost'>
  readonly hours: readonly Pick<Stats['hours'][number], 'start'>[]
}

/**
 * The average spend per day over the statistics' period, or since its first request where that is shorter. undefined =
 * nothing was charged.
 */
export function spendRateOf({ total, hours, from, counted_until: until }: SpendSums): SpendRate | undefined {
  const spent = Number(total.cost)
  if (!(spent > 0)) return undefined
  const first = Math.max(Date.parse(hours[0]?.start ?? from), Date.parse(from))
  // At least an hour: a burst of a minute says nothing about a day.
  const spanMs = Math.max(hourMs, Date.parse(until) - first)
  const days = Math.min(spendRateDays, Math.round(spanMs / dayMs))
  const wholeHours = Math.round(spanMs / hourMs)
  const span = days >= 2 ? `${days} days` : wholeHours === 1 ? 'hour' : `${wholeHours} hours`
  return { perDay: spent / (spanMs / dayMs), span }
}

/** How long the available amount lasts at the current rate: `≈ 12 days`. */
export function runwayText(available: string, { perDay }: SpendRate): string {
  const days = Math.max(0, Number(available)) / perDay
  if (days > 999) return 'more than 999 days'
  if (days >= 2) return `≈ ${Math.round(days)} days`
  const hours = Math.round(days * 24)
  return hours < 1 ? 'less than an hour' : hours === 1 ? '≈ 1 hour' : `≈ ${hours} hours`
}

export interface AuditLine {
  /** Empty where the text needs no name. */
  readonly name: string
  readonly text: string
  /** The value as it is in the log, such as an id. */
  readonly isRaw: boolean
}

/** `moment` formats a time in epoch milliseconds. */
export function auditLines(
  { action, details }: Pick<ItemOf<'listAudit'>, 'action' | 'details'>,
  moment: (at: number) => string,
): readonly AuditLine[] {
  if (action === 'limits.put') return [{ name: '', text: limitsText(details), isRaw: false }]
  return Object.entries(details).map(([name, value]) => {
    const text = detailText(name, value, action, moment)
    const raw = typeof value === 'string' ? value : JSON.stringify(value)
    return { name: name.replaceAll('_', ' '), text: text ?? raw, isRaw: text === undefined }
  })
}

/** undefined = show the raw value. */
function detailText(name: string, value: unknown, action: string, moment: (at: number) => string): string | undefined {
  if (name === 'models' && value === null) return action.startsWith('key.') ? 'all project models' : 'all models'
  if (name === 'limits' && isRecord(value)) return limitsText(value)
  if (name === 'expires_at') return typeof value === 'number' ? moment(value) : 'never'
  if (name === 'amount' && typeof value === 'string') return usdText(value)
  if (name === 'price' && isRecord(value)) return priceText(value)
  if (name === 'overlap_seconds') return value === 0 ? 'none' : `${value} s`
  if (value === null) return 'none'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(', ')
  return undefined
}

function limitsText(limits: Readonly<Record<string, unknown>>): string {
  const texts = limitKinds.flatMap(({ name }) => {
    const value = limits[name]
    const isLimit = typeof value === 'number' || typeof value === 'string' || isRecord(value)
    return isLimit ? [limitText(name, value as LimitValue)] : []
  })
  const further = Array.isArray(limits.spend_limits) ? limits.spend_limits.map(furtherText) : []
  return [...texts, ...further].join(', ') || 'no limits'
}

/** Per million tokens. */
function priceText(price: Readonly<Record<string, unknown>>): string {
  return Object.entries(price)
    .map(([kind, value]) => {
      const text = typeof value === 'string' ? usdText(value) : JSON.stringify(value)
      return `${kind.replaceAll('_', ' ')} ${text}`
    })
    .join(', ')
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
