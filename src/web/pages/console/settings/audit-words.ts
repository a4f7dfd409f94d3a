// What an entry of the audit log says of a change, in words: money in dollars, absence by its meaning, and the raw value only
// where nothing better is known of it.

import { formatUsd, type Nano } from '../../../../kernel/money.ts'
import { type LimitName, limitNames } from '../manage/limit-names.ts'
import { shownLimit } from '../manage/shown-values.ts'
import type { AuditEntry } from '../manage/things.ts'
import { usdText } from '../parts/usd-text.ts'

export interface AuditLine {
  /** Empty where the text says it by itself. */
  readonly name: string
  readonly text: string
  /** As it stands in the log, such as an id. */
  readonly isRaw: boolean
}

/** `moment` writes a time, in epoch milliseconds. */
export function auditLines(
  { action, details }: Pick<AuditEntry, 'action' | 'details'>,
  moment: (at: number) => string,
): readonly AuditLine[] {
  if (action === 'limits.put') return [{ name: '', text: limitsText(details), isRaw: false }]
  return Object.entries(details).map(([name, value]) => {
    const words = wordsOf(name, value, action, moment)
    const raw = typeof value === 'string' ? value : JSON.stringify(value)
    return { name: name.replaceAll('_', ' '), text: words ?? raw, isRaw: words === undefined }
  })
}

/** undefined = nothing better is known of it. */
function wordsOf(name: string, value: unknown, action: string, moment: (at: number) => string): string | undefined {
  if (name === 'models' && value === null)
    return action.startsWith('key.') ? 'what its project may call' : 'every model'
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
  const texts = limitNames.flatMap(({ name }) => {
    const value = limits[name]
    if (typeof value === 'number') return [shownLimit(name, value)]
    return typeof value === 'string' ? [shownLimit(name, inUsd(name, value))] : []
  })
  return texts.join(', ') || 'no limits'
}

/** Entries that were written before amounts were dollars have whole nano-dollars; dollars always have a point. */
function inUsd(name: LimitName, value: string): string {
  return name.startsWith('spend_') && /^[0-9]+$/.test(value) ? formatUsd(BigInt(value) as Nano) : value
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
