// Values of arguments and options that need more than their text: amounts, counts, spans and times. Each function returns
// the value or a refusal that names the option.

import { isoTime } from '../kernel/clock.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import type { CommandInput, OptionDefinition } from './command.ts'
import { type Refusal, usageRefusal } from './refusal.ts'

/** `label` is the argument or option as typed. */
export type ReadValue = (text: string, label: string, now: number) => string | number | Refusal

/** `25`, `$25.00` → `25.00`, as the API takes it. */
export function readAmount(text: string, label: string): string | Refusal {
  const amount = parseUsd(text.replace(/^\$/, ''))
  if (amount !== undefined && amount > 0n) return formatUsd(amount)
  if (amount !== undefined) return usageRefusal(`${label} must be above zero, not "${text}".`)
  return usageRefusal(`${label} must be an amount in USD such as 25 or 0.50, not "${text}".`)
}

export function readCount(text: string, label: string): number | Refusal {
  const count = /^[0-9]{1,15}$/.test(text) ? Number(text) : 0
  return count >= 1 ? count : usageRefusal(`${label} must be a whole number of at least 1, not "${text}".`)
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** `90s`, `15m`, `1h`, `7d`, `2w` → seconds. */
export function parseSpan(text: string): number | undefined {
  const match = /^([0-9]{1,6})([smhdw])$/.exec(text)
  const unit = unitSeconds[match?.[2] ?? '']
  return match && unit !== undefined ? Number(match[1]) * unit : undefined
}

export function readSpan(text: string, label: string): number | Refusal {
  return parseSpan(text) ?? usageRefusal(`${label} must be a span such as 15m, 1h or 7d, not "${text}".`)
}

/** A span from now, a day (its start, UTC) or a time → ISO 8601. */
export function readTime(text: string, label: string, now: number): string | Refusal {
  const seconds = parseSpan(text)
  if (seconds !== undefined) return isoTime(now + seconds * 1000)
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
  const at = isTime ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(at)) return isoTime(at)
  return usageRefusal(`${label} must be a span such as 30d, a day such as 2027-01-31 or a time with Z, not "${text}".`)
}

/** With the field of the API each sets. */
export const limitFields = {
  rpm: { value: 'N', help: 'requests per minute', field: 'requests_per_minute', read: readCount },
  tpm: { value: 'N', help: 'tokens per minute', field: 'tokens_per_minute', read: readCount },
  concurrent: { value: 'N', help: 'concurrent requests', field: 'concurrent_requests', read: readCount },
  'spend-per-day': { value: 'USD', help: 'spend per UTC day', field: 'spend_per_day', read: readAmount },
  'spend-per-month': { value: 'USD', help: 'spend per UTC month', field: 'spend_per_month', read: readAmount },
} as const

export const listLimitOption: OptionDefinition = { value: 'N', help: 'maximum number of items (20)' }

export function readListLimit(input: CommandInput): number | Refusal {
  const text = input.text('limit')
  return text === undefined ? 20 : readCount(text, '--limit')
}
