// What the tokens of a model cost where its provider keeps the work in the United States, which Anthropic does for
// `inference_geo: "us"`: every price of a token, times a factor. Kept in hundredths of a percent.

const whole = 10_000n
const pattern = /^([1-9]|10)(?:\.([0-9]{1,4}))?$/

/** `"1.1"` → 11 000; undefined if it is not a decimal from 1 to 10 with at most four decimals. */
export function parseFactor(text: string): bigint | undefined {
  const match = pattern.exec(text)
  if (!match) return undefined
  const factor = BigInt(`${match[1]}${(match[2] ?? '').padEnd(4, '0')}`)
  return factor > 10n * whole ? undefined : factor
}

/** The reverse of parseFactor. */
export function formatFactor(factor: bigint): string {
  const decimals = String(factor % whole)
    .padStart(4, '0')
    .replace(/0+$/, '')
  return decimals === '' ? String(factor / whole) : `${factor / whole}.${decimals}`
}
