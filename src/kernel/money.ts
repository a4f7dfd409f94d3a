// Money in integers. Amounts are nano-dollars (10⁻⁹ $), prices pico-dollars (10⁻¹² $) per token or other unit. Neither ever
// becomes a float.

declare const unit: unique symbol
export type Nano = bigint & { readonly [unit]: 'nano-dollar' }
export type Pico = bigint & { readonly [unit]: 'pico-dollar per token' }

export const zeroNano = 0n as Nano

/** USD per million tokens × 10⁶ = pico-dollars per token, so six decimals are exact. A seventh is rejected. */
const pricePattern = /^(0|[1-9][0-9]{0,8})(?:\.([0-9]{1,6}))?$/

/** `"2.50"` (USD per million tokens) → 2 500 000 pico-dollars per token; undefined if it is not such a decimal. */
export function parsePrice(text: string): Pico | undefined {
  const match = pricePattern.exec(text)
  if (!match) return undefined
  return BigInt(`${match[1]}${(match[2] ?? '').padEnd(6, '0')}`) as Pico
}

/** The reverse of parsePrice, without trailing zeros beyond cents. */
export function formatPrice(price: Pico): string {
  return decimal(price, 6)
}

/** USD per `scale` units → pico-dollars per unit; undefined if it is not such a decimal, or the price of one unit is not exact. */
export function parsePricePer(scale: bigint, text: string): Pico | undefined {
  const price = parsePrice(text)
  if (price === undefined) return undefined
  const pico = price * 1_000_000n
  return pico % scale === 0n ? ((pico / scale) as Pico) : undefined
}

/** The reverse of parsePricePer. */
export function formatPricePer(scale: bigint, price: Pico): string {
  return decimal(price * scale, 12)
}

/** Rounds a sum of (tokens × price) up, once, to nano-dollars. */
export function picoToNano(pico: bigint): Nano {
  return ((pico + 999n) / 1000n) as Nano
}

/** At most ten digits before the point, so that no longer text is converted. Callers check tighter bounds. */
const usdPattern = /^(0|[1-9][0-9]{0,9})(?:\.([0-9]{1,9}))?$/

/** `"12.5"` → 12 500 000 000 nano-dollars, the reverse of formatUsd; undefined if it is not such a decimal. No sign. */
export function parseUsd(text: string): Nano | undefined {
  const match = usdPattern.exec(text)
  if (!match) return undefined
  return BigInt(`${match[1]}${(match[2] ?? '').padEnd(9, '0')}`) as Nano
}

/** `1234567n` → `"0.001234567"`: exact, without an exponent, at least two decimals. */
export function formatUsd(amount: Nano): string {
  return decimal(amount, 9)
}

/** A product of tokens and price, before it is rounded to nano-dollars; twelve decimals are exact. */
export function formatPico(pico: bigint): string {
  return decimal(pico, 12)
}

function decimal(value: bigint, scale: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, '0')
  const point = digits.length - scale
  let end = digits.length
  // Two decimals always stay.
  while (end > point + 2 && digits.charCodeAt(end - 1) === zeroDigit) end--
  const text = `${digits.slice(0, point)}.${digits.slice(point, end)}`
  return value < 0n ? `-${text}` : text
}

const zeroDigit = 0x30
