// Numbers as text. Amounts are exact, except in headlines (`headlineUsd`).

import { formatPrice, formatUsd, type Nano, type Pico } from '../../kernel/money.ts'

/** `1,048,576` → `1.05M`, `200,000` → `200K`. */
export function shortCount(count: number): string {
  if (count < 1000) return String(count)
  const [value, unit] = count < 999_500 ? [count / 1000, 'K'] : [count / 1_000_000, 'M']
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0
  return `${Number(value.toFixed(digits))}${unit}`
}

/** `1234567` → `1,234,567`. Not by locale, because server and browser must render the same. */
export function exactCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** `1 token`, `1,200 tokens`. */
export function countOf(count: number, what: string): string {
  return `${exactCount(count)} ${what}${count === 1 ? '' : 's'}`
}

export function usd(amount: Nano): string {
  return usdText(formatUsd(amount))
}

/** `1234.5` → `$1,234.50`, `-0.1` → `−$0.10`. Never rounded; a text that is no decimal stays as it is. */
export function usdText(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text)
  if (!match) return text
  const [, sign, whole = '0', fraction = ''] = match
  return `${sign === '-' ? '−' : ''}$${whole.replace(/\B(?=(\d{3})+$)/g, ',')}.${fraction.padEnd(2, '0')}`
}

/** `$1,234.56`, and below a cent `< $0.01`: for headlines. Never more than there is; the exact amount is never far away. */
export function headlineUsd(text: string): string {
  const [, sign = '', whole = '', cents = '', rest = ''] = /^(-?)(\d+)\.(\d\d)(\d*)$/.exec(text) ?? []
  if (whole === '') return usdText(text)
  const isBelowCent = whole === '0' && cents === '00' && /[1-9]/.test(rest)
  return isBelowCent ? `${sign === '-' ? '−' : ''}< $0.01` : usdText(`${sign}${whole}.${cents}`)
}

/** `840 ms`, `1.25 s`. */
export function shortMs(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${Number((milliseconds / 1000).toFixed(2))} s`
}

/** USD per million tokens to the cent, below ten cents to a tenth of a cent: `3.4375` → `3.44`, `0.0375` → `0.038`. */
export function roundPrice(price: Pico): string {
  const unit = price < 100_000n ? 1000n : 10_000n
  return formatPrice((((price + unit / 2n) / unit) * unit) as Pico)
}
