// Money in nano-dollars, as integers: no sum is rounded.

const perDollar = 1_000_000_000n
const decimal = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i

/**
 * Reads a decimal number of dollars. Digits beyond the ninth are rounded to the nearest; gateways that store binary
 * floating-point numbers have them.
 *
 * @param {string | number} dollars
 * @returns {bigint}
 */
export function nanos(dollars) {
  const match = decimal.exec(String(dollars).trim())
  if (!match) throw new Error(`not an amount: ${dollars}`)
  const [, sign, whole = '', fraction = '', exponent = '0'] = match
  const digits = whole + fraction
  const places = fraction.length - Number(exponent)
  const scaled =
    places <= 9 ? BigInt(digits) * 10n ** BigInt(9 - places) : rounded(BigInt(digits), 10n ** BigInt(places - 9))
  return sign === '-' ? -scaled : scaled
}

/** @param {bigint} value @param {bigint} divisor */
function rounded(value, divisor) {
  return (value + divisor / 2n) / divisor
}

/**
 * As a decimal number of dollars with at least two decimals.
 *
 * @param {bigint} amount
 */
export function dollars(amount) {
  const size = amount < 0n ? -amount : amount
  const fraction = (size % perDollar)
    .toString()
    .padStart(9, '0')
    .replace(/0{1,7}$/, '')
  return `${amount < 0n ? '-' : ''}${size / perDollar}.${fraction}`
}

/** @param {bigint} amount */
export function atLeastZero(amount) {
  return amount > 0n ? amount : 0n
}
