// Numbers as text: amounts, percentages, counts and times. Amounts are exact in `usdText` and shortened in `amountText`.

import { formatPrice, formatUsd, type Nano, type Pico } from '../../kernel/money.ts'
import { askedTierNames, type Tier, tiers } from '../../kernel/usage.ts'

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

/**
 * `$1,234.56`; below a cent with its first two digits, `$0.000045`. Rounded half up, so that the rows of a table add up to
 * about their total: cutting off would lose half a cent a row. Components show the exact amount on hover.
 */
export function amountText(text: string): string {
  const match = /^(-?)(\d+)\.(\d\d)(\d*)$/.exec(text)
  if (!match) return usdText(text)
  const [, sign = '', whole = '', cents = '', rest = ''] = match
  const fraction = cents + rest
  const kept = Math.max(2, /^0+$/.test(whole + cents) ? fraction.search(/[1-9]/) + 2 : 2)
  const cut = BigInt(whole + fraction.slice(0, kept).padEnd(kept, '0'))
  const digits = String(cut + (Number(fraction[kept] ?? 0) >= 5 ? 1n : 0n)).padStart(kept + 1, '0')
  const below = digits.slice(-kept).slice(2).replace(/0+$/, '')
  return usdText(`${sign}${digits.slice(0, -kept)}.${digits.slice(-kept).slice(0, 2)}${below}`)
}

/** Digits after the point. */
export function decimalsOf(text: string): number {
  const point = text.indexOf('.')
  return point < 0 ? 0 : text.length - point - 1
}

/** `12.3 %`. Only nothing is `0.0 %` and only all is `100.0 %`: one failure in a million stays visible. */
export function percentText(share: number): string {
  const percent = share * 100
  if (percent > 0 && percent < 0.1) return '< 0.1 %'
  if (percent > 99.9 && percent < 100) return '> 99.9 %'
  return `${percent < 0 ? '−' : ''}${Math.abs(percent).toFixed(1)} %`
}

const spans = [
  // An expiry in 90 days is still counted in days.
  { unit: 'months', ms: 30.44 * 86_400_000, fromMs: 120 * 86_400_000 },
  { unit: 'days', ms: 86_400_000, fromMs: 2 * 86_400_000 },
  { unit: 'h', ms: 3_600_000, fromMs: 2 * 3_600_000 },
  { unit: 'min', ms: 60_000, fromMs: 2 * 60_000 },
] as const

/** `41 s`, `12 min`, `3 h`, `5 days`, `7 months`. */
export function spanText(milliseconds: number): string {
  const span = spans.find(({ fromMs }) => milliseconds >= fromMs)
  return span ? `${Math.floor(milliseconds / span.ms)} ${span.unit}` : `${Math.ceil(milliseconds / 1000)} s`
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

type TierPrices = { readonly [Name in Tier]?: { readonly input: string; readonly output: string } | undefined }

/** `Flex $1.25 in, $5.00 out; Priority …`; '' without prices of tiers that callers can ask for. */
export function tierTexts(price: 'free' | null | { readonly tiers?: TierPrices | undefined }): string {
  if (price === null || price === 'free') return ''
  const texts = askedTierNames.flatMap((name) => {
    const tier = price.tiers?.[name]
    return tier ? `${tiers[name].label} ${usdText(tier.input)} in, ${usdText(tier.output)} out` : []
  })
  return texts.join('; ')
}
