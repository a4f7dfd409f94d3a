// The details of an audit log entry as text: money in dollars, null by its meaning, and the raw value where nothing better is
// known.

import type { ItemOf } from '../../../api/client.ts'
import { usdText } from '../../catalog/format.ts'
import { limitKinds, limitText } from './figures.ts'

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
    return typeof value === 'number' || typeof value === 'string' ? [limitText(name, value)] : []
  })
  return texts.join(', ') || 'no limits'
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
