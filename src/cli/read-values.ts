// Values of options that need more than their text: amounts, counts, spans of time. Each answers with the value or with
// what was expected, in the option's own name.

import { isoTime } from '../kernel/clock.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import type { CommandInput, OptionDefinition } from './command.ts'
import type { JsonObject } from './json-members.ts'
import { Refusal, usageRefusal } from './refusal.ts'

/** `25`, `$25.00` → `25.00`, as the API takes it. */
export function readAmount(text: string, what: string): string | Refusal {
  const amount = parseUsd(text.replace(/^\$/, ''))
  if (amount !== undefined && amount > 0n) return formatUsd(amount)
  if (amount !== undefined) return usageRefusal(`${what} must be above zero, not "${text}".`)
  return usageRefusal(`${what} must be an amount in USD such as 25 or 0.50, not "${text}".`)
}

export function readCount(text: string, what: string): number | Refusal {
  const count = /^[0-9]{1,15}$/.test(text) ? Number(text) : 0
  return count >= 1 ? count : usageRefusal(`${what} must be a whole number of at least 1, not "${text}".`)
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** `90s`, `15m`, `1h`, `7d`, `2w` → seconds. */
export function readSpan(text: string): number | undefined {
  const match = /^([0-9]{1,6})([smhdw])$/.exec(text)
  const unit = unitSeconds[match?.[2] ?? '']
  return match && unit !== undefined ? Number(match[1]) * unit : undefined
}

/** A span from now, a day (its beginning, UTC) or a time → ISO 8601. */
export function readTime(text: string, what: string, now: number): string | Refusal {
  const seconds = readSpan(text)
  if (seconds !== undefined) return isoTime(now + seconds * 1000)
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
  const at = isTime ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(at)) return isoTime(at)
  return usageRefusal(`${what} must be a span such as 30d, a day such as 2027-01-31 or a time with Z, not "${text}".`)
}

export const limitOptions: Readonly<Record<string, OptionDefinition>> = {
  rpm: { value: 'N', help: 'requests per minute' },
  tpm: { value: 'N', help: 'tokens per minute' },
  concurrent: { value: 'N', help: 'requests at the same time' },
  'spend-per-day': { value: 'USD', help: 'spend in a UTC day' },
  'spend-per-month': { value: 'USD', help: 'spend in a UTC month' },
}

const limitFields = [
  ['rpm', 'requests_per_minute', readCount],
  ['tpm', 'tokens_per_minute', readCount],
  ['concurrent', 'concurrent_requests', readCount],
  ['spend-per-day', 'spend_per_day', readAmount],
  ['spend-per-month', 'spend_per_month', readAmount],
] as const

/** The options by the API's names; `at` is where it has them. */
export function limitsTyped(at: 'limits.' | ''): Readonly<Record<string, string>> {
  return Object.fromEntries(limitFields.map(([option, field]) => [at + field, `--${option}`]))
}

/** As the API takes them; empty when none of the options was given. */
export function readLimits(input: CommandInput): JsonObject | Refusal {
  const limits: Record<string, string | number> = {}
  for (const [option, field, read] of limitFields) {
    const text = input.text(option)
    if (text === undefined) continue
    const value = read(text, `--${option}`)
    if (value instanceof Refusal) return value
    limits[field] = value
  }
  return limits
}

export const listLimitOption: OptionDefinition = { value: 'N', help: 'how many at most (20)' }

export function readListLimit(input: CommandInput): number | Refusal {
  const text = input.text('limit')
  return text === undefined ? 20 : readCount(text, '--limit')
}
